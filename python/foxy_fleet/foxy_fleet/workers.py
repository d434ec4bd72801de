"""Simulates fleets of foxy on many workers with Dask.

Each worker runs `foxy sim --fleet --part I/N`, which counts some of the nodes. The sum of all parts
is exactly the result of one worker.
"""

import json
import pathlib
import subprocess
import tempfile

import dask
import pyarrow
import pyarrow.parquet

SCHEMA = pyarrow.schema([
    ("placement", pyarrow.string()), ("nodes", pyarrow.int64()), ("policy", pyarrow.string()),
    ("cache_size", pyarrow.string()), ("name", pyarrow.string()), ("unit", pyarrow.string()),
    ("value", pyarrow.float64()), ("low", pyarrow.float64()), ("high", pyarrow.float64()),
    ("repeats", pyarrow.int64()),
])


def count(foxy, arguments, part, parts):
    """Simulates a part of the nodes. Returns the text of its tallies."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "tallies"
        sim(foxy, *arguments, "--part", f"{part}/{parts}", "--tallies", str(file))
        return file.read_text(encoding="utf-8")


def measures(foxy, arguments, parts, scheduler=None, workers=None):
    """Simulates all parts. Returns the measures of the whole fleet.

    `scheduler` is the address of a Dask scheduler. Without it, the parts run on this machine.
    """
    tasks = [dask.delayed(count)(foxy, arguments, part + 1, parts) for part in range(parts)]
    if scheduler is None:
        tallies = dask.compute(*tasks, scheduler="threads", num_workers=workers)
    else:
        from distributed import Client
        with Client(scheduler) as client:
            tallies = client.gather(client.compute(tasks))
    return merged(foxy, tallies)


def merged(foxy, tallies):
    """Returns the measures of the sum of all tallies."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"tallies-{part}" for part in range(len(tallies))]
        for file, text in zip(files, tallies):
            file.write_text(text, encoding="utf-8")
        records = pathlib.Path(folder) / "run.jsonl"
        sim(foxy, "--merge", *map(str, files), "--json", str(records))
        lines = records.read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "measure"]


def table(found):
    """Returns measures as a table of Arrow."""
    rows = []
    for measure in found:
        placement, nodes, rest = measure["subject"].split("/", 2)
        policy, size = rest.split("@", 1)
        row = {"placement": placement, "nodes": int(nodes), "policy": policy, "cache_size": size}
        rows.append(row | {name: measure[name] for name in SCHEMA.names if name in measure})
    return pyarrow.Table.from_pylist(rows, SCHEMA)


def write(found, path):
    """Writes measures as Parquet."""
    pyarrow.parquet.write_table(table(found), path)


def sim(foxy, *arguments):
    done = subprocess.run([foxy, "sim", "--fleet", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"foxy sim failed with exit code {done.returncode}: {done.stderr}")
