"""Replays a trace through `foxy serve` and writes the what-if report of each run as JSON.

usage: run.py FOXY LOAD TRACE MEBIBYTES OUT DISK:MEMORY…   LOAD is a foxy with the lab
DISK and MEMORY are factors of the present sizes: MEBIBYTES, and an eighth of it.
"""
import json, os, shutil, subprocess, sys, tempfile, time, urllib.request

FOXY, LOAD, TRACE, BASE, OUT = sys.argv[1:6]
PORT = 20000 + os.getpid() * 4 % 10000


def cpu_seconds(process):
    """Returns the CPU time of the process, and of the thread that simulates the sample."""
    total = simulation = 0.0
    for task in os.listdir(f"/proc/{process}/task"):
        path = f"/proc/{process}/task/{task}"
        seconds = int(open(f"{path}/schedstat").read().split()[0]) / 1e9
        total += seconds
        if open(f"{path}/comm").read().strip() == "foxy-whatif":
            simulation = seconds
    return total, simulation


def run(disk, memory):
    folder, kib = tempfile.mkdtemp(), float(BASE) * 1024
    server = subprocess.Popen([
        FOXY, "serve", "--listen", f"127.0.0.1:{PORT}", "--admin", f"127.0.0.1:{PORT + 1}",
        "--store", f"{folder}/store", "--size", f"{int(kib * disk)}K",
        "--memory", f"{int(kib * memory / 8)}K",
        "--access-log", "off", "--allow-destination", "127.0.0.0/8", "--workers", "1"])
    admin = f"http://127.0.0.1:{PORT + 1}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{admin}/healthz")
                break
            except OSError:
                time.sleep(0.1)
        began = time.time()
        subprocess.run([LOAD, "load", "--proxy", f"127.0.0.1:{PORT}", "--trace", TRACE,
                        "--rate", os.environ.get("RATE", "1000"), "--time-limit", "60s"], check=True)
        time.sleep(1.5)
        report = json.loads(urllib.request.urlopen(f"{admin}/data/whatif").read())
        report["seconds"] = time.time() - began
        report["cpu_seconds"], report["whatif_cpu_seconds"] = cpu_seconds(server.pid)
        return report
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


with open(OUT, "a") as out:
    for text in sys.argv[6:]:
        disk, memory = map(float, text.split(":"))
        run_of = {"trace": os.path.basename(TRACE), "disk": disk, "memory": memory}
        json.dump(run_of | run(disk, memory), out)
        out.write("\n")
