"""Predicts the time until a purge is acknowledged, for fleets of up to 10,000 nodes and other
leases. Prints a JSON object per prediction.

A purge waits for the slowest node. The measured times of three nodes are taken as lognormal, and
each node's time as independent. A lost node delays a purge until its lease ends. Nodes are lost at
random times.

The first line compares the model with the longest measured time, which is not used for the fit.

Usage: PYTHONPATH=python/foxy_fleet python3 -m foxy_fleet.purges [RECORD]
RECORD: the records of the test fleet_purges
"""

import json
import math
import pathlib
import statistics
import sys

RECORD = "results/2026-11-27-intel-xeon-2-cores-fleet-purges/quiet.jsonl"
# Number of nodes in the record.
MEASURED = 3
NODES = [3, 10, 100, 1000, 10_000]
LEASES = [0.5, 1, 2, 5, 10, 30]
# The clocks' paces may deviate by 1 %.
PACE = 1.01
# A node renews its lease four times within the lease.
RENEWALS = 4
NORMAL = statistics.NormalDist()


class Delays:
    """The times that three nodes need until all have applied a purge, in seconds."""

    def __init__(self, path):
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        values = {record.get("name"): record.get("value") for record in map(json.loads, lines)}
        p50, p99, self.longest = (
            values[f"acknowledgement_healthy_{of}"] / 1000 for of in ("p50", "p99", "max"))
        self.purges = values["acknowledged_healthy"]
        self.median, self.spread = p50, math.log(p99 / p50) / NORMAL.inv_cdf(0.99)

    def share_within(self, nodes, seconds):
        """Returns the share of purges that all of `nodes` nodes have applied after a time."""
        if seconds <= 0:
            return 0.0
        z = math.log(seconds / self.median) / self.spread
        return NORMAL.cdf(z) ** (nodes / MEASURED)


def share_acknowledged(delays, nodes, lease, losses_per_day, seconds):
    """Returns the share of purges that are acknowledged after a time.

    A purge still waits for a lost node if the node was lost less than the rest of the lease ago.
    """
    waits = max(lease * PACE - seconds, 0) * nodes * losses_per_day / 86_400
    return delays.share_within(nodes, seconds) * math.exp(-waits)


def quantile(delays, nodes, lease, losses_per_day, share):
    """Returns the time after which a share of the purges is acknowledged."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        if share_acknowledged(delays, nodes, lease, losses_per_day, middle) < share:
            low = middle
        else:
            high = middle
    return high


def main():
    delays = Delays(*(sys.argv[1:] or [RECORD]))
    longest = quantile(delays, MEASURED, 0, 0, 1 - 1 / delays.purges)
    print(json.dumps({
        "measurement": "longest_acknowledgement", "nodes": MEASURED, "purges": delays.purges,
        "predicted_ms": round(longest * 1000, 1), "measured_ms": round(delays.longest * 1000, 1)}))
    for nodes in NODES:
        for lease in LEASES:
            for losses in (0, 1):
                times = {f"p{share * 100:g}_ms": round(
                    quantile(delays, nodes, lease, losses, share) * 1000, 1)
                    for share in (0.5, 0.99, 0.999)}
                print(json.dumps({
                    "measurement": "acknowledgement", "nodes": nodes, "lease_s": lease,
                    "losses_per_node_and_day": losses, **times,
                    "renewals_per_second": round(nodes * RENEWALS / lease, 1)}))


if __name__ == "__main__":
    main()
