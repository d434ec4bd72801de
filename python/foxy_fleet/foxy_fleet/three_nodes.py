"""Predicts the loss of a node as `scenarios/fleet.py lost` measures it, and compares the hit ratios
with a record. Prints a JSON object per phase.

Usage: python -m foxy_fleet.three_nodes FOXY [RECORD]    RECORD: a run.jsonl of scenarios/fleet.py
"""

import bisect
import itertools
import json
import pathlib
import sys
import tempfile

from foxy_fleet import workers

RECORD = "results/2026-11-27-intel-xeon-2-cores-fleet/run.jsonl"
OBJECTS, SIZE, EXPONENT = 3000, 8192, 0.8
# Two loads of 600 requests per second for 10 s in each phase. Each sends the same requests.
LOADS, RATE, SECONDS = 2, 600, 10
PHASES = ["three nodes", "c is killed after 3 s", "two nodes", "c is back", "later"]
# The warm-up, and a first load that the scenario does not report.
BEFORE = SECONDS
MASK = (1 << 64) - 1


def mixed(state):
    """SplitMix64, as in foxy_base::random. Returns state and number."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return state, z ^ (z >> 31)


def unit(seed):
    """The first number in [0, 1) of the generator with this seed, as in foxy_base::random."""
    state, _ = mixed(seed)
    _, b = mixed(state)
    five = (b * 5) & MASK
    number = ((five << 7 | five >> 57) & MASK) * 9 & MASK
    return (number >> 11) / (1 << 53)


def ranks(count, seed=1):
    """The objects that a load with the workload zipf requests."""
    sums = list(itertools.accumulate(rank ** -EXPONENT for rank in range(1, OBJECTS + 1)))
    for number in range(count):
        at = unit(seed ^ (number * 0x9E3779B97F4A7C15 & MASK)) * sums[-1]
        yield min(bisect.bisect_right(sums, at), OBJECTS - 1)


def trace():
    """The lines of the trace: the warm-up in the first half of the time before the phases."""
    yield "time,url,bytes,client"
    for number in range(OBJECTS):
        yield f"{BEFORE / 2 * number / OBJECTS:.6f},{number},{SIZE},warm-up"
    drawn = list(ranks(RATE * SECONDS))
    # The first load runs in the second half, at twice the rate.
    for number, rank in enumerate(drawn):
        yield f"{BEFORE / 2 + number / RATE / 2:.6f},{rank},{SIZE},0"
    for phase in range(len(PHASES)):
        for number, rank in enumerate(drawn):
            for load in range(LOADS):
                time = BEFORE + phase * SECONDS + number / RATE
                yield f"{time:.6f},{rank},{SIZE},{load}"


def predicted(foxy, seeds):
    """Returns the hit ratio of each phase: its mean and its interval."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trace.csv"
        file.write_text("\n".join(trace()) + "\n", encoding="utf-8")
        lost = BEFORE + SECONDS + 3
        back = BEFORE + 3 * SECONDS
        found = workers.measures(foxy, [
            "--trace", str(file), "--nodes", "3", "--entries", "2", "--placement", "owner",
            "--hot-rate", "1000000", "--cache-size", "10G", "--ramp", "0", "--window",
            str(SECONDS), "--outage", f"3@{lost}-{back}", "--seed", seeds], 1)
    windows = [one for one in found if one["name"].startswith("hit_ratio_window_")]
    return windows[BEFORE // SECONDS:], found


def main():
    foxy, *record = sys.argv[1:]
    lines = pathlib.Path(*(record or [RECORD])).read_text(encoding="utf-8").splitlines()
    measured = {record["phase"]: record["hit_ratio"] for record in map(json.loads, lines)
                if record["measurement"] == "lost"}
    windows, found = predicted(foxy, "1,2,3")
    for phase, window in zip(PHASES, windows):
        value = round(window["value"], 4)
        print(json.dumps({
            "measurement": "lost", "phase": phase, "predicted": value,
            "measured": measured[phase],
            "points": round(abs(value - measured[phase]) * 100, 2)}))
    share = next(one["value"] for one in found if one["name"] == "largest_store_share")
    print(json.dumps({"measurement": "largest_store_share", "predicted": round(share, 4)}))


if __name__ == "__main__":
    main()
