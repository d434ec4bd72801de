#!/usr/bin/env python3
"""Measures a fleet of three nodes on this machine: the cost of a hit at the owner and through
another node, the load of a hot key's owner, the origin's part of one cold object, and the loss of a
node. Prints a JSON object per measurement. Takes about four minutes. Needs openssl.

Usage: scenarios/fleet.py [MEASUREMENT…]     FOXY=path/to/foxy  ROUNDS=5  SECONDS_EACH=5
                                             CLIENTS=1000  SIZE=1e8
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

FOXY = pathlib.Path(os.environ.get("FOXY", "target/release/foxy")).resolve()
ROUNDS = int(os.environ.get("ROUNDS", "5"))
SECONDS = int(os.environ.get("SECONDS_EACH", "5"))
NODES = ["a", "b", "c"]
# Ports below the range from which the system itself takes ports.
FIRST_PORT = 15000 + os.getpid() % 1000 * 10
ORIGIN = f"127.0.0.1:{FIRST_PORT + 9}"
TICK = os.sysconf("SC_CLK_TCK")
# A rate that no key reaches: no node keeps copies.
NO_COPIES = "1000000"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Fleet:
    """Three running nodes with empty stores, and their origin."""

    def __init__(self, folder, hot_rate, memory="128M"):
        self.folder = folder
        self.options = ["--fleet-hot-rate", hot_rate, "--memory", memory, "--fleet-ramp", "0s"]
        self.processes = {}
        (folder / "logs").mkdir(exist_ok=True)
        self.make_certificates()
        self.begin("origin", "origin", "--listen", ORIGIN)
        for node in NODES:
            self.start(node)
        for node in NODES:
            self.wait_for(node)
        time.sleep(3)  # Each node pings the others once a second.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()

    def make_certificates(self):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        at = str(self.folder) + "/"
        ca = ["-CA", at + "ca.pem", "-CAkey", at + "ca.key"]
        run("openssl", "req", "-x509", *key, "-subj", "/CN=fleet",
            "-keyout", at + "ca.key", "-out", at + "ca.pem")
        for node in NODES:
            run("openssl", "req", "-x509", *key, *ca, "-subj", f"/CN={node}",
                "-addext", f"subjectAltName=DNS:{node}", "-addext", "basicConstraints=CA:FALSE",
                "-keyout", f"{at}{node}.key", "-out", f"{at}{node}.pem")
            os.chmod(f"{at}{node}.key", 0o600)

    def begin(self, name, *arguments):
        log = open(self.folder / "logs" / name, "a", encoding="utf-8")
        self.processes[name] = subprocess.Popen(
            [FOXY, *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder)

    def start(self, node):
        members = [f"{name} https://{address(name, 'fleet')}" for name in NODES]
        self.begin(
            node, "serve", "--listen", address(node, "proxy"), "--admin", address(node, "admin"),
            "--store", node, "--size", "10G", "--access-log", "off", "--what-if", "off",
            "--workers", "1", "--allow-destination", "127.0.0.0/8", "--fleet-node", node,
            "--fleet-listen", address(node, "fleet"), "--fleet-certificate", f"{node}.pem",
            "--fleet-key", f"{node}.key", "--fleet-ca", "ca.pem", *self.options,
            *[word for member in members for word in ("--fleet-member", member)])

    def wait_for(self, node):
        for _ in range(300):
            try:
                return urllib.request.urlopen(f"http://{address(node, 'admin')}/healthz").read()
            except OSError:
                time.sleep(0.1)
        sys.exit(f"node {node} did not start: {(self.folder / 'logs' / node).read_text()}")

    def cpu(self, *names):
        """Returns the CPU time of processes in seconds."""
        def ticks(name):
            stat = pathlib.Path(f"/proc/{self.processes[name].pid}/stat").read_text()
            return sum(int(field) for field in stat.rsplit(")", 1)[1].split()[11:13])
        return sum(ticks(name) for name in names) / TICK

    def owner(self, url):
        """Returns the owner and the second of a URL."""
        text = run(FOXY, "explain", url, "--admin", address("a", "admin"))
        return re.search(r"node (\w) owns the key, and node (\w) is the second", text).groups()

    def load(self, node, *arguments):
        """Sends a load to a node. Returns the values of its records by name."""
        records = self.folder / f"load-{node}-{threading.get_ident()}.jsonl"
        done = subprocess.run(
            [FOXY, "load", "--proxy", address(node, "proxy"), "--origin", ORIGIN,
             "--json", records, *arguments], capture_output=True, text=True)
        if done.returncode not in (0, 3):
            sys.exit(f"the load failed: {done.stderr}")
        parsed = [json.loads(line) for line in records.read_text().splitlines()]
        return {record["name"]: record["value"] for record in parsed if record["kind"] == "measure"}

    def loads(self, nodes, *arguments):
        """Sends a load to several nodes at the same time."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return list(pool.map(lambda node: self.load(node, *arguments), nodes))


def address(node, purpose):
    port = FIRST_PORT + NODES.index(node) * 3 + ["proxy", "admin", "fleet"].index(purpose)
    return f"127.0.0.1:{port}"


def report(measurement, **values):
    print(json.dumps({"measurement": measurement, **values}), flush=True)


def hits(folder):
    """The cost of a hit in memory at the owner, and through another node."""
    with Fleet(folder, NO_COPIES) as fleet:
        owner, other = fleet.owner(f"http://{ORIGIN}/o/0/1000/1")
        for round_ in range(ROUNDS):
            for place, node in (("owner", owner), ("other", other)):
                before = fleet.cpu(*NODES)
                values = fleet.load(node, "--workload", "memory-hit", "--size", "1000",
                                    "--clients", "16", "--seconds", str(SECONDS))
                cpu = fleet.cpu(*NODES) - before
                report("hits", round=round_, asked=place,
                       cpu_us=round(cpu / values["requests"] * 1e6, 2),
                       hit_ratio=values["hit_ratio"], per_second=values["requests_per_second"])
        rate = values["requests_per_second"] / 2
        for round_ in range(ROUNDS):
            for place, node in (("owner", owner), ("other", other)):
                values = fleet.load(node, "--workload", "memory-hit", "--size", "1000",
                                    "--rate", f"{rate:.0f}", "--seconds", str(SECONDS))
                report("latency", round=round_, asked=place, rate=round(rate),
                       p50_us=values["latency_p50_us"], p99_us=values["latency_p99_us"])


def hot(folder):
    """The CPU time of each node while half of all requests ask for the same key."""
    with Fleet(folder, "50") as fleet:
        owner, _ = fleet.owner(f"http://{ORIGIN}/o/0/1000/1")
        rate = ["--rate", "1000", "--seconds", str(SECONDS)]
        fleet.loads(NODES, "--workload", "zipf", "--objects", "2000", *rate)
        for round_ in range(ROUNDS):
            before = {node: fleet.cpu(node) for node in NODES}
            with concurrent.futures.ThreadPoolExecutor() as pool:
                one = pool.submit(fleet.loads, NODES, "--workload", "memory-hit", "--size", "1000",
                                  *rate)
                many = pool.submit(fleet.loads, NODES, "--workload", "zipf", "--objects", "2000",
                                   "--no-warm-up", *rate)
                results = one.result() + many.result()
            cpu = {node: fleet.cpu(node) - before[node] for node in NODES}
            mean = statistics.mean(cpu.values())
            report("hot", round=round_, owner=owner, cpu_s={n: round(c, 2) for n, c in cpu.items()},
                   owner_to_mean=round(cpu[owner] / mean, 3),
                   errors=sum(values["errors"] for values in results))


def cold(folder):
    """The bytes that the origin sends while many clients of three nodes fetch one cold object."""
    with Fleet(folder, "50") as fleet:
        clients = int(os.environ.get("CLIENTS", "1000"))
        size = int(float(os.environ.get("SIZE", "1e8")))

        def fetch(number):
            host, port = address(NODES[number % 3], "proxy").split(":")
            client = http.client.HTTPConnection(host, int(port), timeout=1200)
            client.request("GET", f"http://{ORIGIN}/o/7/{size}/1")
            answer, received = client.getresponse(), 0
            while chunk := answer.read(1 << 20):
                received += len(chunk)
            return answer.status, received
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            answers = list(pool.map(fetch, range(clients)))
        report("cold", clients=clients, size=size, complete=answers.count((200, size)),
               origin_bytes={node: received(node) for node in NODES})


def received(node):
    """Returns the bytes that a node has received from origins since its start."""
    text = urllib.request.urlopen(f"http://{address(node, 'admin')}/metrics").read().decode()
    return int(re.search(r"^foxy_proxy_origin_received_bytes_total (\d+)", text, re.M)[1])


def lost(folder):
    """The hit ratio and errors of two nodes before, during and after the loss of the third."""
    with Fleet(folder, NO_COPIES) as fleet:
        work = ["--workload", "zipf", "--objects", "3000", "--rate", "600"]
        fleet.loads(["a", "b"], *work, "--seconds", "10")

        def phase(name, seconds):
            before = received("a") + received("b")
            values = fleet.loads(["a", "b"], *work, "--no-warm-up", "--seconds", str(seconds))
            requests = sum(v["requests"] + v["errors"] for v in values)
            report("lost", phase=name, requests=requests, errors=sum(v["errors"] for v in values),
                   hit_ratio=round(statistics.mean(v["hit_ratio"] for v in values), 4),
                   p99_us=[v["latency_p99_us"] for v in values],
                   bytes_from_origin_to_a_and_b=received("a") + received("b") - before)

        phase("three nodes", 10)
        killer = threading.Timer(3, fleet.processes["c"].kill)
        killer.start()
        phase("c is killed after 3 s", 10)
        fleet.processes["c"].wait()
        phase("two nodes", 10)
        fleet.start("c")
        fleet.wait_for("c")
        phase("c is back", 10)
        phase("later", 10)


def main():
    measurements = {"hits": hits, "hot": hot, "cold": cold, "lost": lost}
    for name in sys.argv[1:] or measurements:
        with tempfile.TemporaryDirectory() as folder:
            measurements[name](pathlib.Path(folder))


if __name__ == "__main__":
    main()
