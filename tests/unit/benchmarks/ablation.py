"""Ablation of the offline methods: everything switched on, then one part off at a time.

    python -m tests.unit.benchmarks.ablation --csv solves.csv
    python -m tests.unit.benchmarks.ablation --table solves.csv

Each solve has one core, or two and thus a second process, for as long as LIMITS says. What the file
has already is not solved again. A size is `testbed` or HORIZONxSERVERSxJOBS of the preset
`calibrated`; each is solved by the decomposition, unless METHOD names another.
"""

from __future__ import annotations

import argparse
import inspect
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

from offline import patterns, periods, processes, solve
from offline.benders import decomposition, primal, replanning, slot_model, subproblem
from offline.column_generation import cutting, restricted_master
from offline.heuristics import recombination, window_search
from tests.benchmarks.distribution import instance
from tests.benchmarks.table import read, write

METHOD = {"300x50x400": "colgen"}
DECOMPOSED, PRICED, LONG = ("20x50x50",), ("300x50x400",), ("300x50x100",)
SIZES = (*DECOMPOSED, *LONG, *PRICED)  # `testbed` is always proven: there, time counts
LIMITS = dict.fromkeys(("testbed", *DECOMPOSED), 30.0) | dict.fromkeys((*LONG, *PRICED), 45.0)
CORES = (1, 2)
ALL = "all parts"
Row = Mapping[str, str]


class Patch(NamedTuple):
    """Something of the product that an ablation replaces."""

    owner: Any
    name: str
    instead: Callable[..., Any]


class Part(NamedTuple):
    """A part of the methods, and how it is switched off."""

    name: str
    code: Sequence[Any]  # modules, classes and functions that exist for it alone
    sizes: Sequence[tuple[int, Sequence[str]]]  # with so many cores
    patches: Sequence[Patch] = ()
    params: Mapping[str, Any] = MappingProxyType({})  # of the method
    method: str | None = None  # instead of that of the size

    @property
    def lines(self) -> int:
        """Lines of its code, blank ones and comments included."""
        return sum(len(inspect.getsource(each).splitlines()) for each in self.code)


def nothing(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def without_shortfall(_: Any, start: Any, *__: Any) -> Any:
    return start


def better(first: Any, second: Any, _: Any) -> Any:
    return max((first, second), key=lambda solution: solution.value)


def unlifted(_: Any, cut: Any, *__: Any) -> Any:
    return cut


def once(self: Any) -> Any:
    """The relaxation of the master without cutting planes."""
    with mock.patch.object(self.separation, "cut", nothing([])):
        return CUT_THE_RELAXATION(self)


CUT_THE_RELAXATION = decomposition.Decomposition.cut_the_relaxation

ONE_AND_TWO = ((1, DECOMPOSED), (2, DECOMPOSED))
PARTS = (
    Part(ALL, (), ((1, ("testbed", *DECOMPOSED, *PRICED)), (2, SIZES))),
    Part(
        "plans in whole numbers",
        (primal.PrimalHeuristic.search,),
        ((1, DECOMPOSED),),
        [Patch(primal.PrimalHeuristic, "search", nothing(0))],
    ),
    Part(
        "replanning",
        (replanning,),
        ((1, DECOMPOSED),),
        [Patch(replanning.Replanning, "search", nothing(False))],
    ),
    Part(
        "walks to plans",
        (replanning.Replanning._walk, replanning.Replanning.place),
        ((2, DECOMPOSED),),
        [Patch(replanning.Replanning, "_walk", nothing(None))],
    ),
    Part(
        "lifted cuts",
        (patterns.CutGenerator._lift, patterns.PatternPool.add_alone),
        ((2, DECOMPOSED),),
        [Patch(patterns.CutGenerator, "_lift", unlifted)],
    ),
    Part(
        "slot model and shortfall",
        (slot_model,),
        ONE_AND_TWO,
        [Patch(slot_model.Shortfall, "search", without_shortfall)],
    ),
    Part(
        "cutting planes",
        (CUT_THE_RELAXATION,),
        ((1, DECOMPOSED),),
        [Patch(decomposition.Decomposition, "cut_the_relaxation", once)],
    ),
    Part(
        "cuts around plans",
        (decomposition.Decomposition.refine,),
        ONE_AND_TWO,
        [Patch(decomposition.Decomposition, "refine", nothing(0))],
    ),
    Part(
        "pattern cuts",
        (subproblem.Separation,),
        ((1, DECOMPOSED),),
        [
            Patch(subproblem.Separation, "cut", nothing([])),
            Patch(subproblem.Separation, "cut_off", nothing(False)),
        ],
    ),
    Part(
        "whole counts first",
        (decomposition.Decomposition.try_whole,),
        ((1, ("testbed",)),),
        [Patch(decomposition.Decomposition, "try_whole", nothing(None))],
    ),
    Part(
        "window search",
        (window_search,),
        ((1, (*DECOMPOSED, *PRICED)),),
        [
            Patch(window_search.WindowSearch, "search", nothing(False)),
            Patch(window_search.WindowSearch, "start", nothing(None)),
        ],
    ),
    Part(
        "slot cuts",
        (restricted_master.SlotCut, restricted_master.SlotCuts, cutting),
        ((1, PRICED),),
        params={"cutting_share": 0.0},
    ),
    Part(
        "periods",
        (periods,),
        ((2, LONG),),
        method="colgen",
    ),
    Part(
        "recombination",
        (recombination.recombine, recombination._choices, recombination._limits),
        ((2, PRICED),),
        [Patch(recombination, "recombine", better)],
    ),
    Part("the compact model alone", (), ((1, ("testbed",)),), method="milp"),
)
BY_NAME = {part.name: part for part in PARTS}


def switched_off(name: str) -> ExitStack:
    """Replace what the part's absence replaces, in this process, for good or within `with`."""
    stack = ExitStack()
    for patch in BY_NAME[name].patches:
        stack.enter_context(mock.patch.object(patch.owner, patch.name, patch.instead))
    return stack


def child(name: str) -> str:
    """Main function of the second process of a solve, with the same part switched off."""
    ours = f"from tests.unit.benchmarks.ablation import switched_off; switched_off({name!r})"
    return f"{ours}; {processes.CHILD}"


COLUMNS = ("size", "seed", "part", "cores", "limit", "status", "seconds", "objective", "bound")
AFFINITY = os.sched_getaffinity(0)


def solved(part: Part, cores: int, size: str, seed: int) -> tuple[object, ...]:
    """One solve without the part, as a row."""
    method, limit = part.method or METHOD.get(size, "benders"), LIMITS[size]
    params = dict(part.params)
    os.sched_setaffinity(0, sorted(AFFINITY)[-cores:])
    with switched_off(part.name), mock.patch.object(processes, "CHILD", child(part.name)):
        result = solve(instance(size, seed), method, time_limit=limit, params=params or None)
    found = (result.status, round(result.seconds, 2), result.objective, result.upper_bound)
    return (size, seed, part.name, cores, limit, *found)


def run(path: Path, seeds: Sequence[int], names: Sequence[str], cores: int | None) -> None:
    """Solve what the file lacks, and write it anew after each solve."""
    rows: list[Sequence[object]] = [tuple(row.values()) for row in read(path, COLUMNS)]
    known = {tuple(row[:4]) for row in rows}
    for seed, name in product(seeds, names):
        for number, sizes in BY_NAME[name].sizes:
            for size in sizes:
                if cores not in (None, number) or (size, str(seed), name, str(number)) in known:
                    continue
                rows.append(solved(BY_NAME[name], number, size, seed))
                write(path, [COLUMNS, *rows])
                print(*rows[-1], flush=True)


def gap(row: Mapping[str, str]) -> float:
    """Gap in per cent of the objective."""
    return 100 * (float(row["bound"]) / float(row["objective"]) - 1)


def place(row: Row) -> tuple[str, ...]:
    return row["size"], row["seed"], row["cores"]


def change(rows: Sequence[Row], base: Mapping[tuple[str, ...], Row]) -> tuple[str, ...]:
    """By how much more a gap is without a part (points: mean, least, most), value and bound (%)."""
    pairs = [(row, base[key]) for row in rows if (key := place(row)) in base]
    if not pairs:
        return "", "", ""
    gaps = [gap(row) - gap(whole) for row, whole in pairs]
    spread = f"{statistics.mean(gaps):+.1f} ({min(gaps):+.1f}, {max(gaps):+.1f})"
    means = (
        statistics.mean(100 * (float(row[end]) / float(whole[end]) - 1) for row, whole in pairs)
        for end in ("objective", "bound")
    )
    return spread, *(f"{mean:+.1f}" for mean in means)


def table(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """A heading, the gaps of the whole, and a row for each part that is off."""
    ends = ("gap", "value %", "bound %")
    columns = (f"{size}: {end}" for size in SIZES for end in ends)
    yield ("off", "lines", "cores", "seconds at testbed", *columns)
    base = {place(row): row for row in rows if row["part"] == ALL}
    for part, cores in product(PARTS, map(str, CORES)):
        own = [row for row in rows if (row["part"], row["cores"]) == (part.name, cores)]
        cells: list[str] = []
        for size in SIZES:
            here = [row for row in own if row["size"] == size]
            if part.name == ALL:
                cells += [", ".join(f"{each:.1f}" for each in sorted(map(gap, here))), "", ""]
            else:
                cells += change(here, base)
        seconds = [float(row["seconds"]) for row in own if row["size"] == "testbed"]
        shown = f"{statistics.median(seconds):.1f}" if seconds else ""
        if own:
            yield part.name, str(part.lines or ""), cores, shown, *cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--csv", type=Path, help="append each solve to this file")
    parser.add_argument(
        "--table", type=Path, help="write ablation.csv beside such a file, a row a part"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[701, 702, 703])
    parser.add_argument("--cores", type=int, choices=CORES, help="only solves on so many cores")
    parser.add_argument("--parts", nargs="+", choices=[*BY_NAME], default=[*BY_NAME])
    given = parser.parse_args()
    if given.table is not None:
        write(given.table.with_name("ablation.csv"), table(read(given.table, COLUMNS)))
        return
    run(given.csv, given.seeds, given.parts, given.cores)


if __name__ == "__main__":
    main()
