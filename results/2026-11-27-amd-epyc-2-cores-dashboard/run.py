"""Measures what an open dashboard costs a busy foxy: CPU time of foxy for each memory hit, while a
page polls its admin address as the dashboard does. For comparison, the page polls the admin address
of another foxy, which is idle, so that the page itself takes the same CPU time. The cases alternate.

usage: run.py FOXY LOAD FILE [PAIRS [SECONDS [OPTIONS OF FOXY]]]
LOAD is a foxy with the lab.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

FOXY, LOAD, FILE = sys.argv[1:4]
PAIRS = int(sys.argv[4]) if len(sys.argv) > 4 else 12
SECONDS = sys.argv[5] if len(sys.argv) > 5 else "8"
BUSY, IDLE = 33128, 33138


def ask(port, path):
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, headers={"Foxy-Dashboard": "1"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read()


class Page(threading.Thread):
    """Polls as the page with the disk map does: each second, and the map every two seconds."""

    def __init__(self, port):
        super().__init__()
        self.port = port
        self.is_open, self.answers, self.bytes = True, 0, 0

    def ask(self, path):
        answer = ask(self.port, path)
        self.answers, self.bytes = self.answers + 1, self.bytes + len(answer)
        return json.loads(answer)

    def run(self):
        seconds, shown, last = 0, 0, 0
        while self.is_open:
            self.ask("/data/live")
            if seconds % 2 == 0:
                shown = self.ask(f"/data/map?store=0&after={shown}").get("time_ms", shown)
                snapshots = self.ask(f"/data/map-history?store=0&after={last}")["snapshots"]
                last = snapshots[-1]["time_ms"] if snapshots else last
            seconds += 1
            time.sleep(1)


def threads(pid):
    """Returns the CPU time in seconds of the process's threads, by name."""
    times = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            used = int(file.read().split()[0]) / 1e9
        with open(f"/proc/{pid}/task/{task}/comm") as file:
            name = file.read().strip()
        times[name] = times.get(name, 0) + used
    return times


def load(pid, is_open, folder):
    page = Page(BUSY + 1 if is_open else IDLE + 1)
    page.start()
    time.sleep(1)
    before = threads(pid)
    records = os.path.join(folder, "records.jsonl")
    subprocess.run(
        [LOAD, "load", "--proxy", f"127.0.0.1:{BUSY}", "--pid", str(pid), "--workload", "memory-hit",
         "--clients", "32", "--seconds", SECONDS, "--json", records],
        check=True, stdout=subprocess.DEVNULL)
    after = threads(pid)
    page.is_open = False
    page.join()
    measures = {}
    with open(records) as file:
        for line in file:
            record = json.loads(line)
            if record["kind"] == "measure":
                measures[record["name"]] = record["value"]
    spent = {name: round(used - before.get(name, 0), 4) for name, used in after.items()}
    names = ["cpu_us_per_request", "requests_per_second", "latency_p99_us", "hit_ratio"]
    return {"dashboard": is_open, **{name: measures.get(name) for name in names},
            "threads": spent, "answers": page.answers, "bytes": page.bytes}


def start(folder, port):
    store = os.path.join(folder, str(port))
    os.mkdir(store)
    return subprocess.Popen(
        [FOXY, "serve", "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{port + 1}",
         "--store", store, "--size", "1G", "--memory", "64M",
         "--allow-destination", "127.0.0.0/8", *sys.argv[6:]],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    with tempfile.TemporaryDirectory() as folder:
        foxy, idle = start(folder, BUSY), start(folder, IDLE)
        try:
            time.sleep(2)
            load(foxy.pid, False, folder)
            rows = []
            with open(FILE, "w") as file:
                for pair in range(PAIRS):
                    for is_open in [False, True] if pair % 2 == 0 else [True, False]:
                        if not is_open:
                            time.sleep(11)
                        row = load(foxy.pid, is_open, folder)
                        rows.append(row)
                        file.write(json.dumps(row) + "\n")
                        file.flush()
        finally:
            for process in [foxy, idle]:
                process.send_signal(signal.SIGTERM)
                process.wait()
    cost = {is_open: [row["cpu_us_per_request"] for row in rows if row["dashboard"] == is_open]
            for is_open in [False, True]}
    ratios = sorted(opened / closed - 1 for closed, opened in zip(cost[False], cost[True]))
    print(f"without: median {statistics.median(cost[False]):.3f} us a request")
    print(f"with:    median {statistics.median(cost[True]):.3f} us a request")
    print(f"ratio of the medians {statistics.median(cost[True]) / statistics.median(cost[False]) - 1:+.2%}; "
          f"of the pairs: median {statistics.median(ratios):+.2%}, from {ratios[0]:+.2%} to {ratios[-1]:+.2%}")


main()
