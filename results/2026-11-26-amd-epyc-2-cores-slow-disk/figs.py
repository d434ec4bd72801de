#!/usr/bin/python3
"""Figs 18 to 20 of paper 001 on slow disks: figs.py PLAN OUT SEED SUBJECT... Rates rise until the proxy breaks."""
import json, os, shutil, signal, subprocess, sys, time
import run
from run import FOXY, Disks, PageCache, sh, read, snapshot

SQUID = """http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1:{origin}
{peers}
http_access allow all
never_direct allow all
{caches}
cache_mem {memory} MB
maximum_object_size 1 GB
access_log none
cache_store_log none
cache_log {folder}/messages
coredump_dir {folder}
pid_filename none
netdb_filename none
pinger_enable off
shutdown_lifetime 1 seconds
{more}
"""
PORT, ORIGIN = int(os.environ.get('PORT', 3911)), int(os.environ.get('ORIGIN', 3921))


def start(subject, plan, mounts, folder):
    caches = []
    for number, mount in enumerate(mounts, 1):
        cache = f"{mount}/cache"
        os.makedirs(cache)
        os.chmod(mount, 0o755)
        shutil.chown(cache, "nobody")
        caches.append(cache)
    size = plan["cache-mib-per-disk"]
    if subject["proxy"] == "squid":
        lines = "\n".join(f"cache_dir {subject['store']} {cache} {size} 16 16" for cache in caches)
        peers = f"cache_peer 127.0.0.1 parent {ORIGIN} 0 no-query no-digest no-netdb-exchange originserver name=o0"
        text = SQUID.format(port=PORT, origin=ORIGIN, peers=peers, caches=lines, memory=plan["memory-mb"], folder=folder, more=subject.get("more", ""))
        with open(f"{folder}/squid.conf", "w") as f:
            f.write(text)
        shutil.chown(folder, "nobody")
        user = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
        subprocess.run([*user, "squid", "-N", "-z", "-f", f"{folder}/squid.conf"], check=True, capture_output=True)
        args = ["chrt", "-f", "10", *user, "squid", "-N", "-f", f"{folder}/squid.conf"]
    else:
        args = ["chrt", "-f", "10", FOXY, "serve", "--admin", "off", "--listen", f"127.0.0.1:{PORT}", "--origin", f"http://127.0.0.1:{ORIGIN}",
                "--scheme", subject["store"], "--size", f"{size}MiB", "--memory", f"{plan['memory-mb']}MiB", "--access-log", "off", *subject.get("more", [])]
        for cache in caches:
            args += ["--store", cache]
    out = open(f"{folder}/output", "w")
    proxy = subprocess.Popen(args, stdout=out, stderr=out, cwd=folder)
    time.sleep(2.5)
    if proxy.poll() is not None:
        raise RuntimeError(read(f"{folder}/output")[-600:])
    return proxy


def measure(plan, subject, seed, out):
    place = f"/tmp/slow-disk-{os.getpid()}-{subject['name']}"
    os.makedirs(place)
    os.chmod(place, 0o755)
    disks = Disks(place, plan, {"disks": subject.get("disks", plan["disks"]), "options": "noatime"}, seed)
    group = f"{run.CGROUP}/slow-disk-{subject['name']}"
    proxy = cache = None
    points = []
    try:
        mounts = disks.up()
        loops = [os.path.basename(loop) for loop in disks.loops]
        folder = f"/tmp/slow-disk-{os.getpid()}-{subject['name']}/proxy"
        os.makedirs(folder)
        os.chmod(folder, 0o755)
        proxy = start(subject, plan, mounts, folder)
        os.makedirs(group, exist_ok=True)
        with open(f"{group}/cgroup.procs", "w") as f:
            f.write(str(proxy.pid))
        cache = PageCache(group, plan["page-cache"])
        cache.start()
        for number, rate in enumerate(subject["rates"]):
            bytes_per_request = 0.6 * 5 * 1024
            total = plan["cache-mib-per-disk"] * len(loops) * (1 << 20)
            seconds = max(10.0, plan["fills"] * total / (bytes_per_request * rate))
            name = f"{out}/{subject['name']}-{rate}-{seed}.jsonl"
            before = snapshot(loops)
            subprocess.run(["chrt", "-f", "10", FOXY, "load", "--proxy", f"127.0.0.1:{PORT}", "--reverse", "--workload", f"{out}/table3.toml", "--rate", str(rate),
                            "--seconds", f"{seconds:.0f}", "--time-limit", "20s", "--seed", str(seed * 100 + number), "--pid", str(proxy.pid),
                            "--origin", f"127.0.0.1:{ORIGIN}", "--subject", subject["name"], "--json", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            after = snapshot(loops)
            found = {}
            for line in open(name):
                record = json.loads(line)
                if record["kind"] == "measure":
                    found[record["name"]] = record["value"]
            span = after["at"] - before["at"]
            point = {"rate": rate, "seconds": seconds, "answered": found.get("requests_per_second"), "mean-s": found.get("latency_mean_us", 0) / 1e6,
                     "hit": found.get("hit_ratio"), "offered": found.get("offered_hit_ratio"), "errors": found.get("errors"),
                     "busy": [round((after[d]["busy-ms"] - before[d]["busy-ms"]) / 1000 / span, 2) for d in loops],
                     "idle": round((after["cpu"]["idle"] - before["cpu"]["idle"]) / sum(after["cpu"][k] - before["cpu"][k] for k in after["cpu"]), 2),
                     "cpu-us": found.get("cpu_us_per_request")}
            points.append(point)
            print(subject["name"], json.dumps(point), flush=True)
            if (point["answered"] or 0) < 0.6 * rate:
                break
    finally:
        if cache:
            cache.done.set()
        if proxy:
            proxy.send_signal(signal.SIGTERM)
            try:
                proxy.wait(15)
            except subprocess.TimeoutExpired:
                proxy.kill()
                proxy.wait()
        time.sleep(1)
        disks.down()
        try:
            os.rmdir(group)
        except OSError:
            pass
        shutil.rmtree(place, ignore_errors=True)
        with open(f"{out}/{subject['name']}-{seed}.points.json", "w") as f:
            json.dump(points, f)


def main():
    plan, out, seed, wanted = json.loads(read(sys.argv[1])), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/table3.toml", "w") as f:
        f.write(plan["workload"])
    origin = subprocess.Popen(["chrt", "-f", "10", FOXY, "origin", "--listen", f"127.0.0.1:{ORIGIN}", "--servers", "4"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        for subject in plan["subjects"]:
            if subject["name"] in wanted:
                try:
                    measure(plan, subject, seed, out)
                except Exception as error:
                    print("!!", subject["name"], repr(error), flush=True)
    finally:
        origin.send_signal(signal.SIGTERM)
        origin.wait()


main()
