#!/usr/bin/python3
"""Measures proxies on modelled slow disks. The plan (JSON) has the rows and all settings."""
import json, os, re, shutil, signal, subprocess, sys, threading, time
HERE = os.path.dirname(os.path.abspath(__file__))
FOXY = os.environ.get("FOXY", "foxy")
CGROUP = "/sys/fs/cgroup/memory"
TRACE = "/sys/kernel/tracing/instances"
# mkfs.xfs refuses file systems below 300 MB, unless these names are set.
SMALL_XFS = {"TEST_DIR": "/", "TEST_DEV": "/", "QA_CHECK_FS": "1"}
SYSCTL = ["vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs", "fs.xfs.xfssyncd_centisecs"]


def sh(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout.strip()


def read(path):
    with open(path) as f:
        return f.read()


class Disks:
    """Modelled disks, each with a loop device, a file system and a mount."""
    def __init__(self, place, plan, row, seed):
        self.place, self.loops, self.mounts, self.server = place, [], [], None
        self.plan, self.row, self.seed = plan, row, seed

    def up(self):
        plan, row = self.plan, self.row
        os.makedirs(f"{self.place}/m", exist_ok=True)
        self.server = subprocess.Popen(
            ["short", "0", FOXY, "disk", "serve", f"{self.place}/m", "--time", plan["time"], "--disks",
             str(row["disks"]), "--size", plan["disk-size"], "--backing", plan["backing"], "--seed", str(self.seed),
             "--json", f"{self.place}/disk.jsonl"], stdout=subprocess.DEVNULL)
        for number in range(1, row["disks"] + 1):
            file = f"{self.place}/m/disk{number}"
            for _ in range(100):
                if os.path.exists(file):
                    break
                time.sleep(0.1)
            loop = sh("losetup", "--find", "--show", "--direct-io=on", file)
            self.loops.append(loop)
            fs = row.get("fs", "ext2")
            make = plan["mkfs-xfs"] if fs == "xfs" else plan["mkfs"]
            subprocess.run([f"mkfs.{fs}", *make.split(), loop], check=True, capture_output=True, env=os.environ | SMALL_XFS)
            mount = f"{self.place}/{number}"
            os.makedirs(mount, exist_ok=True)
            sh("mount", "-t", fs, "-o", row["options"], loop, mount)
            self.mounts.append(mount)
            queue = f"/sys/block/{os.path.basename(loop)}/queue"
            for name in ("wbt_lat_usec", "read_ahead_kb"):
                with open(f"{queue}/{name}", "w") as f:
                    f.write(str(plan[name]))
            bdi = "/sys/class/bdi/" + sh("lsblk", "-ndo", "MAJ:MIN", loop)
            for name, value in (("strict_limit", 1), ("max_bytes", plan["dirty-bytes"])):
                with open(f"{bdi}/{name}", "w") as f:
                    f.write(str(value))
        return self.mounts

    def layout(self):
        """Places of the metadata of each disk, in sectors of 512 bytes."""
        found = {}
        for loop in self.loops:
            text = subprocess.run(["dumpe2fs", loop], capture_output=True, text=True).stdout
            found[os.path.basename(loop)] = {
                kind: [[int(a) * 8, (int(b) + 1) * 8] for a, b in re.findall(pattern, text)]
                for kind, pattern in (("inode-table", r"Inode table at (\d+)-(\d+)"),)}
            bitmaps = re.findall(r"(?:bitmap at|superblock at) (\d+)", text)
            found[os.path.basename(loop)]["bitmap"] = [[int(a) * 8, int(a) * 8 + 8] for a in bitmaps]
        return found

    def down(self):
        for mount in self.mounts:
            subprocess.run(["umount", mount], check=False) if os.path.ismount(mount) else None
        for loop in self.loops:
            subprocess.run(["losetup", "-d", loop], check=False)
        if self.server:
            time.sleep(0.3)
            self.server.send_signal(signal.SIGTERM)
            try:
                self.server.wait(20)
            except subprocess.TimeoutExpired:
                subprocess.run(["umount", "-l", f"{self.place}/m"], check=False)
                self.server.kill()


class PageCache(threading.Thread):
    """Keeps the page cache of the proxy's control group at a size, as a small memory would."""
    def __init__(self, group, size):
        super().__init__(daemon=True)
        self.group, self.size, self.done, self.seen = group, size, threading.Event(), []

    def run(self):
        while not self.done.wait(0.2):
            try:
                stat = dict(line.split() for line in read(f"{self.group}/memory.stat").splitlines())
                cache = int(stat["total_cache"])
                self.seen.append(cache)
                if cache > self.size:
                    usage = int(read(f"{self.group}/memory.usage_in_bytes"))
                    self.limit(usage - (cache - self.size))
                    self.limit(1 << 40)
            except (OSError, KeyError):
                continue

    def limit(self, size):
        try:
            with open(f"{self.group}/memory.limit_in_bytes", "w") as f:
                f.write(str(size))
        except OSError:
            pass


def snapshot(loops):
    found = {"at": time.time()}
    for line in read("/proc/diskstats").splitlines():
        f = line.split()
        if f[2] in loops:
            found[f[2]] = {"reads": int(f[3]), "read-sectors": int(f[5]), "writes": int(f[7]),
                           "written-sectors": int(f[9]), "busy-ms": int(f[12])}
    cpu = [int(x) for x in read("/proc/stat").split("\n")[0].split()[1:]]
    found["cpu"] = {"user": cpu[0], "nice": cpu[1], "system": cpu[2], "idle": cpu[3], "iowait": cpu[4],
                    "irq": cpu[5] + cpu[6], "steal": cpu[7]}
    return found


class Tracer:
    """Records each operation of the disks, between start and stop."""
    def __init__(self, name, loops):
        self.folder, self.loops = f"{TRACE}/slow-disk-{name}", loops
        os.makedirs(self.folder, exist_ok=True)

    def start(self):
        devices = [os.stat(f"/dev/{loop}").st_rdev for loop in self.loops]
        kernel = [(os.major(d) << 20) | os.minor(d) for d in devices]
        self.names = {f"{os.major(d)},{os.minor(d)}": loop for d, loop in zip(devices, self.loops)}
        self.write("buffer_size_kb", "8192")
        self.write("trace", "")
        self.write("events/block/block_rq_issue/filter", " || ".join(f"dev == {d}" for d in kernel))
        self.write("events/block/block_rq_issue/enable", "1")
        self.write("tracing_on", "1")

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as f:
            f.write(text)

    def stop(self, layout):
        self.write("events/block/block_rq_issue/enable", "0")
        counts = {}
        for line in read(f"{self.folder}/trace").splitlines():
            m = re.search(r"block_rq_issue: (\d+,\d+) (\w+) \d+ \(.*?\) (\d+) \+ (\d+)", line)
            if not m or m[1] not in self.names:
                continue
            kinds = layout.get(self.names[m[1]], {})
            sector = int(m[3])
            kind = next((k for k, ranges in kinds.items() if any(a <= sector < b for a, b in ranges)), "data")
            way = "write" if "W" in m[2] else "read" if "R" in m[2] else "other"
            key = f"{way} {kind}"
            one = counts.setdefault(key, {"operations": 0, "sectors": 0})
            one["operations"] += 1
            one["sectors"] += int(m[4])
        return counts

    def end(self):
        try:
            os.rmdir(self.folder)
        except OSError:
            pass


def arguments(plan, row, seed, mounts, out):
    size = row.get("cache-mib", plan["cache-mib-per-disk"] * row["disks"]) * plan["time-scale"]
    low, high = row.get("window", plan["window"])
    args = [FOXY, "peak", "--start", row["start"], "--cache-size", f"{size}MiB", "--time-scale", str(plan["time-scale"]),
            "--delay-scale", str(plan["delay-scale"]), "--first-rate", str(row["first-rate"]),
            "--most-rate", str(plan["most-rate"]), "--robot-rate", str(plan["robot-rate"]), "--servers", str(plan["servers"]), "--hold", str(row.get("hold", plan["hold"])),
            "--low", str(low), "--high", str(high), "--sample", str(row.get("sample", plan["sample"])), "--limit", str(row.get("limit", plan["limit"])),
            "--memory", plan["memory"], "--memory-limit", "8GiB", "--seed", str(seed), "--json", out]
    for mount in mounts:
        args += ["--folder", mount]
    return plan["priority"].split() + args


def measure(plan, row, seed, out):
    place = f"/tmp/slow-disk-{os.getpid()}-{row['name']}-{seed}"
    os.makedirs(place)
    name = f"{out}/{row['name']}-{seed}"
    disks = Disks(place, plan, row, seed)
    tracer, cache, tail, facts = None, None, [], {"row": row["name"], "seed": seed, "samples": []}
    try:
        mounts = disks.up() if row["disks"] else [place]
        loops = [os.path.basename(loop) for loop in disks.loops]
        layout = disks.layout()
        tracer = Tracer(f"{row['name']}-{seed}", loops) if loops else None
        peak = subprocess.Popen(arguments(plan, row, seed, mounts, f"{name}.jsonl"), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        tracing = False
        drain = threading.Thread(target=lambda: facts.update(table=peak.stdout.read()), daemon=True)
        drain.start()
        for line in peak.stderr:
            tail = (tail + [line.rstrip()])[-6:]
            found = re.match(r"peak: (\d+) s, fill ([\d.]+): ([\d.]+)/s asked, ([\d.]+)/s answered in (\S+)", line)
            if not found:
                continue
            if cache is None:
                cache = PageCache(f"{CGROUP}/foxy-lab-{peak.pid}", plan["page-cache"])
                cache.start()
            if len(facts["samples"]) % 10 == 9:
                print(row["name"], seed, line.rstrip(), flush=True)
            facts["samples"].append({"fill": float(found[2]), "asked": float(found[3]), "answered": float(found[4]),
                                     "response": found[5], **snapshot(loops)})
            if tracer and not tracing and float(found[2]) >= 1.5:
                tracing = True
                tracer.start()
        if tracing:
            facts["traced"] = tracer.stop(layout)
        peak.wait()
        facts["exit"], facts["last-words"] = peak.returncode, tail
        if cache:
            cache.done.set()
            seen = sorted(cache.seen) or [0]
            facts["page-cache"] = {"median": seen[len(seen) // 2], "most": seen[-1]}
        drain.join(5)
    finally:
        if tracer:
            tracer.end()
        disks.down()
        if os.path.exists(f"{place}/disk.jsonl"):
            shutil.copy(f"{place}/disk.jsonl", f"{name}.disk.jsonl")
        if not any(os.path.ismount(f"{place}/{n}") for n in ["m", *range(1, 5)]):
            shutil.rmtree(place, ignore_errors=True)
        with open(f"{name}.facts.json", "w") as f:
            json.dump(facts, f)
    print("\n".join(f"{row['name']} {seed} {line}" for line in tail), flush=True)


def lane(plan, names, seed, out):
    for name in names:
        name, _, own = name.partition("@")
        seed = int(own) if own else seed
        row = next(row for row in plan["rows"] if row["name"] == name)
        print("==", name, "seed", seed, time.strftime("%H:%M:%S"), flush=True)
        try:
            measure(plan, row, seed, out)
        except Exception as error:
            print("!!", name, seed, repr(error), flush=True)


def main():
    """run.py PLAN OUT SEEDS LANES...: a lane is a list of rows; `a,b+c` runs a, b beside c, `a@2` with seed 2 only.
    run.py PLAN hold: sets the system's write-back times, until a signal comes."""
    plan = json.loads(read(sys.argv[1]))
    if sys.argv[2] == "hold":
        before = {key: sh("sysctl", "-n", key) for key in SYSCTL}
        for key in SYSCTL:
            sh("sysctl", "-q", f"{key}={plan[key]}")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
        for key, value in before.items():
            sh("sysctl", "-q", f"{key}={value}")
        return
    os.makedirs(sys.argv[2], exist_ok=True)
    for seed in map(int, sys.argv[3].split(",")):
        for group in sys.argv[4:]:
            lanes = [threading.Thread(target=lane, args=(plan, names.split(","), seed, sys.argv[2])) for names in group.split("+")]
            [one.start() for one in lanes]
            [one.join() for one in lanes]


if __name__ == "__main__":
    main()
