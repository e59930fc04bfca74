"""Offline methods over many seeds: how often they prove the optimum, and which gaps are left.

    python -m tests.benchmarks.distribution solves.csv --csv distribution.csv
    python -m tests.benchmarks.distribution few.csv --seeds 2 --limit 5 --sizes testbed

Every method and CP-SAT solve the same instances, ten seeds of each size, one after the other, for
as long as each other; all start from OASiS's schedules, which take no time of it. One thread each,
and a second process for `benders` and `colgen`.

A size is `testbed` or HORIZONxSERVERSxJOBS, so many servers a side, of the `calibrated` preset. The
first file gets a row after each solve; what it has already is not solved again, so that the same
command goes on where an interrupted one stopped. --csv has a row for each size, limit and method in
that file. With `--seeds 0` nothing is solved, and both are only written.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import oasis
from oasis.solvers import Status
from offline import OfflineResult
from tests.benchmarks import table
from tests.benchmarks.streams import calibrated
from tests.unit.benchmarks import cpsat

PEER = "cpsat"
TITLES = {
    "milp": "compact HiGHS",
    "colgen": "column generation",
    "benders": "Benders decomposition",
    "cpsat": "CP-SAT",
}
# The sizes of the page, and the seconds that each method has there.
SIZES = {
    "testbed": 600.0,
    "20x10x20": 600.0,
    "20x50x50": 300.0,
    "100x50x100": 600.0,
    "300x50x100": 600.0,
    "300x50x400": 600.0,
}
COLUMNS = (
    *("size", "seconds each", "method", "seeds", "proven", "median s to proof"),
    *("median gap %", "third quartile %", "worst gap %"),
)
SOLVES = (
    *("size", "seed", "seconds each", "method", "status", "seconds"),
    *("objective", "upper bound", "gap %"),
)


class Solve(NamedTuple):
    """A row of the table of solves, as its text."""

    size: str
    seed: str
    limit: str
    method: str
    status: str
    seconds: str
    objective: str
    upper_bound: str
    gap: str

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key of a row: size in the order of the page, limit, method and seed."""
        sizes, titles = [*SIZES, self.size], [*TITLES.values(), self.method]
        place = (sizes.index(self.size), self.size, float(self.limit))
        return (*place, titles.index(self.method), self.method, int(self.seed))


def size(text: str) -> str:
    """A size by its name."""
    if text != "testbed" and re.fullmatch(r"\d+x\d+x\d+", text) is None:
        raise argparse.ArgumentTypeError(f"expected testbed or one such as 20x10x20, got {text!r}")
    return text


def instance(name: str, seed: int) -> oasis.Instance:
    """The instance of a size and a seed."""
    if name == "testbed":
        return oasis.generate("testbed", seed=seed)
    horizon, servers, jobs = map(int, name.split("x"))
    return calibrated(horizon, servers, jobs, seed)


def methods(text: str) -> list[str]:
    """Methods from their names with commas between."""
    names, known = text.split(","), TITLES
    for name in names:
        if name not in known:
            expected = ", ".join(known)
            raise argparse.ArgumentTypeError(f"expected some of {expected}, got {name!r}")
    if PEER in names and not cpsat.is_installed():
        raise argparse.ArgumentTypeError(cpsat.MISSING)
    return names


def solved(problem: oasis.Instance, method: str, limit: float) -> OfflineResult:
    """The result of a method; all of them start from OASiS's schedules."""
    if method != PEER:
        return oasis.solve(problem, method, time_limit=limit)
    start = oasis.simulate(problem, oasis.OASiS.from_instance(problem)).schedules
    return cpsat.solve_cpsat(problem, limit, start)


def of(name: str, seed: int, limit: float, method: str) -> Solve:
    """Solve an instance; its row."""
    end = solved(instance(name, seed), method, limit)
    if end.status is Status.INTERRUPTED:
        sys.exit(130)
    took = (str(end.status), f"{end.seconds:.1f}")
    ends = (f"{end.objective:.9g}", f"{end.upper_bound:.9g}", f"{100 * end.gap:.3f}")
    return Solve(name, str(seed), f"{limit:g}", TITLES[method], *took, *ends)


def known(path: Path) -> list[Solve]:
    """The rows of a table of solves, none if there is no such file."""
    return [Solve(*row.values()) for row in table.read(path, SOLVES)]


def in_order(solves: Iterable[Solve]) -> list[Solve]:
    """The solves in the order of the page; of the same instance, limit and method, the last one."""
    return sorted({solve[:4]: solve for solve in solves}.values(), key=lambda solve: solve.order)


def distribution(solves: Iterable[Solve]) -> list[tuple[str, ...]]:
    """A row a size, limit and method: what became of all its seeds."""
    groups: dict[tuple[str, str, str], list[Solve]] = {}
    for solve in in_order(solves):
        groups.setdefault((solve.size, solve.limit, solve.method), []).append(solve)
    return [_row(*key, group) for key, group in groups.items()]


def _row(name: str, limit: str, title: str, group: Sequence[Solve]) -> tuple[str, ...]:
    proofs = [float(solve.seconds) for solve in group if solve.status == Status.OPTIMAL]
    gaps = sorted(float(solve.gap) for solve in group)
    third = gaps[-(-3 * len(gaps) // 4) - 1]  # a gap that was seen, so that one may be infinite
    seconds = f"{statistics.median(proofs):.1f}" if proofs else "-"
    seeds = _ranges([int(solve.seed) for solve in group])
    shown = (f"{gap:.2f}" for gap in (statistics.median(gaps), third, gaps[-1]))
    return (name, limit, title, seeds, f"{len(proofs)} of {len(group)}", seconds, *shown)


def _ranges(seeds: Sequence[int]) -> str:
    """Sorted seeds in few words, such as "1 to 10, 12"."""
    ranges: list[list[int]] = []
    for seed in seeds:
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], seed]
        else:
            ranges.append([seed])
    return ", ".join(" to ".join(map(str, one)) for one in ranges)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("solves", type=Path, help="add a row for each solve to this file")
    parser.add_argument("--sizes", type=size, nargs="+", help="default: those of the page")
    parser.add_argument("--seeds", type=int, default=10, help="instances of each size")
    parser.add_argument("--first-seed", type=int, default=101, help="the first of these seeds")
    parser.add_argument("--limit", type=float, help="seconds for each solve; default: by size")
    parser.add_argument("--methods", type=methods, default=f"milp,colgen,benders,{PEER}")
    parser.add_argument("--csv", type=Path, help="write the distribution of all solves here")
    return parser.parse_args(given)


def wanted(given: argparse.Namespace) -> Iterator[tuple[str, int, float, str]]:
    """What is to be solved: size, seed, limit and method."""
    for name in given.sizes or SIZES:
        limit = SIZES.get(name, 300.0) if given.limit is None else given.limit
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            for method in given.methods:
                yield name, seed, limit, method


def main() -> None:
    given = arguments()
    found = known(given.solves)
    for name, seed, limit, method in wanted(given):
        if (name, str(seed), f"{limit:g}", TITLES[method]) not in {one[:4] for one in found}:
            found = in_order([*found, of(name, seed, limit, method)])
            table.write(given.solves, [SOLVES, *found])
    rows = [COLUMNS, *distribution(found)]
    if given.csv is not None:
        table.write(given.csv, rows)
    for row in rows:
        print(" | ".join(row))


if __name__ == "__main__":
    main()
