"""python -m foxy_fleet --out FILE -- ARGUMENTS OF foxy sim --fleet"""

import argparse
import os

from foxy_fleet import workers


def main():
    parser = argparse.ArgumentParser(
        prog="foxy_fleet", description=workers.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foxy", default="foxy", help="the program foxy [default: foxy]")
    parser.add_argument("--parts", type=int, default=os.cpu_count(),
                        help="number of parts [default: cores of this machine]")
    parser.add_argument("--workers", type=int,
                        help="parts that run at the same time on this machine [default: all cores]")
    parser.add_argument("--scheduler", metavar="ADDRESS",
                        help="a Dask scheduler; its workers need the same foxy and trace")
    parser.add_argument("--out", required=True, metavar="FILE", help="the Parquet file to write")
    parser.add_argument("arguments", nargs="+", help="arguments of foxy sim, after --")
    given = parser.parse_args()
    found = workers.measures(
        given.foxy, given.arguments, given.parts, given.scheduler, given.workers)
    workers.write(found, given.out)
    print(f"{len(found)} measures are in {given.out}")


if __name__ == "__main__":
    main()
