"""Offline methods side by side: time to a proof, and the gap that is left after some time.

    python -m tests.benchmarks.offline --limit 300 --json intervals.jsonl 20x20x40:1 20x50x50:1
    python -m tests.benchmarks.offline --table intervals.jsonl

An instance is HORIZONxSERVERSxJOBS:SEED, so many servers a side, of the `calibrated` preset. Each
method has the same time, one after the other, and starts from OASiS's schedules, which take no
time of it; one thread each, and a second process for `benders` and `colgen`. What the file of
--json has already is not solved again.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import oasis
from offline import METHODS, OfflineResult, Status, solve
from tests.benchmarks import cpsat, intervals
from tests.benchmarks.intervals import Interval
from tests.benchmarks.streams import calibrated

PEER = "cpsat"


def instance(name: str) -> tuple[str, oasis.Instance]:
    """An instance and its name."""
    sizes = re.fullmatch(r"(\d+)x(\d+)x(\d+)(?::(\d+))?", name)
    if sizes is None:
        raise argparse.ArgumentTypeError(f"expected one such as 20x20x40:1, got {name!r}")
    horizon, servers, jobs, seed = (int(size or 0) for size in sizes.groups())
    return name, calibrated(horizon, servers, jobs, seed)


def methods(text: str) -> list[str]:
    """Methods from their names with commas between."""
    names, known = text.split(","), (*METHODS, PEER)
    for name in names:
        if name not in known:
            expected = ", ".join(known)
            raise argparse.ArgumentTypeError(f"expected some of {expected}, got {name!r}")
    if PEER in names and not cpsat.is_installed():
        raise argparse.ArgumentTypeError(cpsat.MISSING)
    return names


def seconds(text: str) -> list[float]:
    return [float(number) for number in text.split(",")]


def recorded(name: str) -> list[Interval]:
    """Read the recorded file of that name."""
    try:
        return intervals.read(Path(name))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def started(name: str) -> tuple[Path, list[Interval]]:
    """A file to go on with, and what it has already."""
    path = Path(name)
    return path, recorded(name) if path.exists() else []


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("instances", nargs="*", type=instance, help="such as 20x20x40:1")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each solve")
    parser.add_argument("--at", type=seconds, default="60,300", help="show the gap then")
    parser.add_argument("--methods", type=methods, default="milp,colgen,benders,cpsat")
    parser.add_argument("--workers", type=int, default=1, help="threads of CP-SAT")
    parser.add_argument("--json", type=started, help="append each result to this file")
    parser.add_argument("--table", type=recorded, help="only print such a file as Markdown")
    given = parser.parse_args()
    if given.table is None and not given.instances:
        parser.error("expected an instance such as 20x20x40:1, or --table")
    return given


def solved(problem: oasis.Instance, method: str, limit: float, workers: int) -> OfflineResult:
    """The result of a method; all of them start from OASiS's schedules."""
    if method != PEER:
        return solve(problem, method, time_limit=limit)
    start = oasis.simulate(problem, oasis.OASiS.from_instance(problem)).schedules
    return cpsat.solve_cpsat(problem, limit, start, workers=workers)


def compared(given: argparse.Namespace) -> Iterator[Interval]:
    """Each method on each instance; what is new goes to the file as it comes."""
    path, before = given.json or (None, [])
    known = {interval.key: interval for interval in before}
    for name, problem in given.instances:
        for method in given.methods:
            several = method == PEER and given.workers > 1
            title = f"{method} ({given.workers} workers)" if several else method
            if (name, title, given.limit) in known:
                yield known[name, title, given.limit]
                continue
            result = solved(problem, method, given.limit, given.workers)
            interval = Interval(name, title, given.limit, result)
            if path and result.status is not Status.INTERRUPTED:
                intervals.append(path, interval)
            yield interval


def main() -> None:
    given = arguments()
    if given.table is not None:
        print(intervals.table(given.table, given.at))
        return
    for interval in compared(given):
        print(interval.line(given.at), flush=True)
        if interval.result.status is Status.INTERRUPTED:
            sys.exit(130)


if __name__ == "__main__":
    main()
