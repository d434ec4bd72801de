#!/usr/bin/python3
"""Tables of the slow-disk records: rows.py FOLDER SCALE [SECOND-FOLDER]. The rules for verdicts are those of `foxy figure`."""
import glob, json, os, statistics, sys

QUOTED = {"ufs": 54.9, "aufs": 110.0, "aufs-noatime": 168.5, "diskd-noatime": 149.4, "rock-noatime": 326.3, "none": 332.1, "aufs-1": 66.0,
          "aufs-2": 85.3, "foxy": 326.3, "foxy-coss": 326.3, "foxy-coss-1": 326.3, "ufs-ext3": 48.4, "ufs-ext4": 48.4, "ufs-xfs": 40.7, "nginx-noatime": float("nan")}
RATIOS = [("aufs", "ufs", 110.0 / 54.9), ("aufs-noatime", "aufs", 168.5 / 110.0), ("aufs-noatime", "ufs", 168.5 / 54.9),
          ("diskd-noatime", "aufs-noatime", 149.4 / 168.5), ("diskd-noatime", "ufs", 149.4 / 54.9), ("ufs-ext3", "ufs", 48.4 / 54.9), ("ufs-xfs", "ufs", 40.7 / 54.9),
          ("aufs-2", "aufs-1", 85.3 / 66.0), ("aufs", "aufs-1", 109.6 / 66.0),
          ("rock-noatime", "aufs-noatime", 326.3 / 168.5), ("rock-noatime", "none", 326.3 / 332.1),
          ("foxy-coss", "aufs-noatime", 326.3 / 168.5), ("foxy-coss", "none", 326.3 / 332.1), ("foxy", "aufs-noatime", 326.3 / 168.5),
          ("foxy", "none", 326.3 / 332.1)]


def load(folder):
    runs = {}
    for path in sorted(glob.glob(f"{folder}/*.facts.json")):
        facts = json.load(open(path))
        records = path.replace(".facts.json", ".jsonl")
        measures = {}
        if os.path.exists(records):
            for line in open(records):
                record = json.loads(line)
                if record["kind"] == "measure":
                    measures[record["name"]] = record["value"]
        runs.setdefault(facts["row"], []).append((facts, measures))
    return runs


def disk_use(facts, measures):
    """Operations per request, busy shares and idle processor from 1.5 fills on."""
    samples = facts["samples"]
    late = [i for i, s in enumerate(samples) if s["fill"] >= 1.5]
    if not late or late[0] == 0 or len(samples) - late[0] < 2:
        return None
    first, last = samples[late[0] - 1], samples[-1]
    seconds = last["at"] - first["at"]
    requests = statistics.mean(s["answered"] for s in samples[late[0]:]) * seconds
    disks = [key for key in first if key.startswith("loop")]
    delta = lambda disk, key: last[disk][key] - first[disk][key]
    cpu = {key: last["cpu"][key] - first["cpu"][key] for key in first["cpu"]}
    traced = facts.get("traced") or {}
    traced_seconds = last["at"] - samples[late[0]]["at"]
    traced_requests = statistics.mean(s["answered"] for s in samples[late[0]:]) * max(traced_seconds, 1e-9)
    return {
        "reads": sum(delta(d, "reads") for d in disks) / requests, "writes": sum(delta(d, "writes") for d in disks) / requests,
        "busy": [delta(d, "busy-ms") / 1000 / seconds for d in disks],
        "idle": (cpu["idle"] + cpu["iowait"]) / sum(cpu.values()), "nice": cpu["nice"] / sum(cpu.values()),
        "kinds": {key: value["operations"] / traced_requests for key, value in traced.items()},
    }


def main():
    folder, scale = sys.argv[1], float(sys.argv[2])
    runs = load(folder)
    second = load(sys.argv[3]) if len(sys.argv) > 3 else {}
    rate = lambda runs, row: [m["peak_requests_per_second"] / scale for _, m in runs.get(row, []) if "peak_requests_per_second" in m]
    print("| row | paper, 1/s | ours / scale, 1/s (seeds) | response, s | window, s | in window | hit ratio | fills | disk busy | proxy, cores | errors | condition |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    valid = {}
    for row in QUOTED:
        if row not in runs:
            continue
        values, found = rate(runs, row), [m for _, m in runs[row] if "peak_requests_per_second" in m]
        if not values:
            print(f"| {row} | {QUOTED[row]} | none | | | | | | | | | no result |")
            continue
        mean = lambda name: statistics.mean(m.get(name, float("nan")) for m in found)
        low, high = mean("window_low_us") / 1e6, mean("window_high_us") / 1e6
        responses = [m["peak_response_us"] / 1e6 for m in found]
        why = []
        if len(values) < 3:
            why.append("fewer than 3 seeds")
        if min(m["fill"] for m in found) < 1.5:
            why.append("fewer than 1.5 fills")
        if not low / 1.05 <= statistics.mean(responses) <= high * 1.05:
            why.append("response time outside its window")
        valid[row] = why
        use = [u for u in (disk_use(f, m) for f, m in runs[row]) if u]
        busy = " ".join(f"{statistics.mean(u['busy'][d] for u in use):.2f}" for d in range(len(use[0]["busy"]))) if use and use[0]["busy"] else "–"
        print(f"| {row} | {QUOTED[row]} | {statistics.mean(values):.1f} ({', '.join(f'{v:.1f}' for v in values)}) | {statistics.mean(responses):.3f} | "
              f"{low:.3f}–{high:.3f} | {mean('peak_samples_in_window'):.2f} | {mean('peak_hit_ratio'):.3f} | {min(m['fill'] for m in found):.2f} | {busy} | "
              f"{mean('peak_cores'):.2f} | {sum(m.get('errors', 0) for m in found):.0f} | {'; '.join(why) or 'holds'} |")
    print("\n| ratio | paper | ours, seed by seed | over the paper's | verdict | second scale |")
    print("|---|--:|--:|--:|---|--:|")
    for above, below, quoted in RATIOS:
        if above not in valid or below not in valid:
            continue
        judge = lambda runs: [a / b for a, b in zip(rate(runs, above), rate(runs, below))]
        values = judge(runs)
        mean = statistics.mean(values)
        within = lambda values: all(0.7 <= v / quoted <= 1.3 for v in values)
        side = lambda values: all((v > 1) == (quoted > 1) for v in values)
        verdict = lambda values: "reproduced" if within(values) else "shape only" if side(values) else "different today"
        why = sorted(set(valid[above] + valid[below]))
        at_second = judge(second)
        second_text = f" {statistics.mean(at_second):.3f} ({', '.join(f'{v:.2f}' for v in at_second)})" if at_second else ""
        if not at_second:
            why.append("one scale")
        elif verdict(at_second) != verdict(values):
            why.append("another verdict at the second scale")
        print(f"| {above} over {below} | {quoted:.3f} | {mean:.3f} ({', '.join(f'{v:.2f}' for v in values)}) | {mean / quoted:.2f} | "
              f"{'no verdict: ' + ', '.join(why) + ' (else ' + verdict(values) + ')' if why else verdict(values)} |{second_text} |")
    print("\n| row | reads | writes | operations per request by kind, from 1.5 fills on | idle processor | processor of others |")
    print("|---|--:|--:|---|--:|--:|")
    for row in runs:
        use = [u for u in (disk_use(f, m) for f, m in runs[row]) if u]
        if not use:
            continue
        mean = lambda get: statistics.mean(get(u) for u in use)
        kinds = sorted({kind for u in use for kind in u["kinds"]})
        text = ", ".join(f"{kind} {mean(lambda u: u['kinds'].get(kind, 0)):.2f}" for kind in kinds)
        print(f"| {row} | {mean(lambda u: u['reads']):.2f} | {mean(lambda u: u['writes']):.2f} | {text} | {mean(lambda u: u['idle']):.2f} | {mean(lambda u: u['nice']):.2f} |")


main()
