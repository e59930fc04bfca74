"""Offline methods side by side: time to a proof, and the gap that is left after some time.

    python -m tests.benchmarks.offline --limit 120 20x20x40:1 20x50x50:1

An instance is HORIZONxSERVERSxJOBS:SEED, so many servers a side, of the `calibrated` preset. Each
method has the same time, one after the other, one thread each.
"""

from __future__ import annotations

import argparse

import oasis
from offline import solve

METHODS = ("milp", "colgen", "benders")


def instance_of(text: str) -> oasis.Instance:
    size, _, seed = text.partition(":")
    horizon, servers, jobs = map(int, size.split("x"))
    return oasis.generate(
        "calibrated",
        jobs=jobs,
        worker_servers=servers,
        ps_servers=servers,
        horizon=horizon,
        seed=int(seed or 0),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("instances", nargs="+", help="such as 20x20x40:1")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each solve")
    parser.add_argument("--at", type=float, nargs="*", default=[60.0], help="also the gap then")
    parser.add_argument("--methods", default=",".join(METHODS))
    given = parser.parse_args()
    for text in given.instances:
        instance = instance_of(text)
        for method in given.methods.split(","):
            result = solve(instance, method, given.limit)
            early = ", ".join(f"{result.gap_at(t):.2%} at {t:g} s" for t in given.at)
            print(
                f"{text} {method}: {result.status} {result.objective:.6g} .. "
                f"{result.upper_bound:.6g}, gap {result.gap:.2%} after {result.seconds:.1f} s "
                f"({early})",
                flush=True,
            )


if __name__ == "__main__":
    main()
