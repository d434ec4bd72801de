"""Replays a trace through `foxy serve` and writes the what-if report of each run as JSON.

usage: run.py FOXY LOAD TRACE MEBIBYTES OUT FACTOR…   LOAD is a foxy with the lab
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


def run(factor):
    folder, kib = tempfile.mkdtemp(), int(float(BASE) * factor * 1024)
    server = subprocess.Popen([
        FOXY, "serve", "--listen", f"127.0.0.1:{PORT}", "--admin", f"127.0.0.1:{PORT + 1}",
        "--store", f"{folder}/store", "--size", f"{kib}K", "--memory", f"{kib // 8}K",
        "--access-log", "off", "--allow-destination", "127.0.0.0/8", "--workers", "1"])
    admin = f"http://127.0.0.1:{PORT + 1}"
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{admin}/healthz")
                break
            except OSError:
                time.sleep(0.1)
        began = time.time()
        subprocess.run([LOAD, "load", "--proxy", f"127.0.0.1:{PORT}", "--trace", TRACE,
                        "--clients", "4", "--time-limit", "60s"], check=True)
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
    for factor in map(float, sys.argv[6:]):
        json.dump({"trace": os.path.basename(TRACE), "factor": factor} | run(factor), out)
        out.write("\n")
