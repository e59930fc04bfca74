"""Ablation of the offline methods: everything switched on, then one part off at a time.

    python -m tests.benchmarks.ablation --csv solves.csv
    python -m tests.benchmarks.ablation --table solves.csv > ablation.csv

Each solve has a minute and one core, or two and thus its second process where the part needs that
(`--cores 2` runs those alone). What the file has already is not solved again. A size is `testbed`
or HORIZONxSERVERSxJOBS of the preset `calibrated`; each is solved by the method that `auto` takes.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest import mock

from offline import periods, processes, solve
from offline.benders import decomposition, primal, replanning, slot_model, subproblem
from offline.column_generation import cutting, restricted_master
from offline.heuristics import (
    recombination,
    window_search,
)
from tests.benchmarks.distribution import instance

SIZES = ("testbed", "20x50x50", "100x50x100", "300x50x400")
METHOD = {"300x50x400": "colgen"}
DECOMPOSED = ("testbed", "20x50x50", "100x50x100")
PRICED = ("300x50x400",)
TABLE_SIZES = (*SIZES[1:], "300x50x100")  # `testbed` is always proven: there, time counts
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
    sizes: Sequence[str]
    patches: Sequence[Patch] = ()
    params: Mapping[str, Any] = MappingProxyType({})  # of the method
    method: str | None = None  # instead of that of the size
    cores: int = 1

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


def once(self: Any) -> Any:
    """The relaxation of the master without cutting planes."""
    with mock.patch.object(self.separation, "cut", nothing([])):
        return CUT_THE_RELAXATION(self)


CUT_THE_RELAXATION = decomposition.Decomposition.cut_the_relaxation

PARTS = (
    Part(ALL, (), SIZES),
    Part(
        "plans in whole numbers",
        (primal.PrimalHeuristic.search,),
        DECOMPOSED,
        [Patch(primal.PrimalHeuristic, "search", nothing(0))],
    ),
    Part(
        "replanning",
        (replanning,),
        DECOMPOSED,
        [
            Patch(replanning.Replanning, "search", nothing(False)),
            Patch(replanning.Replanning, "mix", nothing(None)),
        ],
    ),
    Part(
        "shortfall",
        (slot_model.Shortfall,),
        DECOMPOSED,
        [Patch(slot_model.Shortfall, "search", without_shortfall)],
    ),
    Part(
        "cutting planes",
        (CUT_THE_RELAXATION,),
        DECOMPOSED,
        [Patch(decomposition.Decomposition, "cut_the_relaxation", once)],
    ),
    Part(
        "cuts around plans",
        (decomposition.Decomposition.refine,),
        DECOMPOSED,
        [Patch(decomposition.Decomposition, "refine", nothing(0))],
    ),
    Part(
        "pattern cuts",
        (subproblem.Separation,),
        DECOMPOSED,
        [
            Patch(subproblem.Separation, "cut", nothing([])),
            Patch(subproblem.Separation, "cut_off", nothing(False)),
        ],
    ),
    Part(
        "whole counts first",
        (decomposition.Decomposition.try_whole,),
        DECOMPOSED,
        [Patch(decomposition.Decomposition, "try_whole", nothing(None))],
    ),
    Part(
        "window search",
        (window_search,),
        SIZES,
        [
            Patch(window_search.WindowSearch, "search", nothing(False)),
            Patch(window_search.WindowSearch, "start", nothing(None)),
        ],
    ),
    Part(
        "slot cuts",
        (restricted_master.SlotCut, restricted_master.SlotCuts, cutting),
        PRICED,
        params={"cutting_share": 0.0},
    ),
    Part(
        "periods",
        (periods,),
        ("100x50x100", "300x50x100"),
        method="colgen",
        cores=2,
    ),
    Part(
        "all parts, two processes",
        (),
        ("20x50x50", "100x50x100", "300x50x100", "300x50x400"),
        cores=2,
    ),
    Part(
        "recombination",
        (recombination.recombined, recombination._choices, recombination._limits),
        PRICED,
        [Patch(recombination, "recombined", better)],
        cores=2,
    ),
    Part("the compact model alone", (), ("testbed", "20x10x20"), method="milp"),
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
    ours = f"from tests.benchmarks.ablation import switched_off; switched_off({name!r})"
    return f"{ours}; {processes.CHILD}"


COLUMNS = ("size", "seed", "part", "cores", "limit", "status", "seconds", "objective", "bound")


def solved(part: Part, size: str, seed: int, limit: float) -> dict[str, Any]:
    """One solve without the part, as a row."""
    method = part.method or METHOD.get(size, "benders")
    params = dict(part.params)
    os.sched_setaffinity(0, sorted(CORES)[: part.cores])
    with switched_off(part.name), mock.patch.object(processes, "CHILD", child(part.name)):
        result = solve(instance(size, seed), method, time_limit=limit, params=params or None)
    return {
        "size": size,
        "seed": seed,
        "part": part.name,
        "cores": part.cores,
        "limit": limit,
        "status": result.status,
        "seconds": round(result.seconds, 2),
        "objective": result.objective,
        "bound": result.upper_bound,
    }


CORES = os.sched_getaffinity(0)


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


def run(path: Path, seeds: Sequence[int], limit: float, names: Sequence[str]) -> None:
    """Solve what the file lacks, and append each row as it comes."""
    known = {(row["size"], row["seed"], row["part"]) for row in read(path)}
    for seed in seeds:
        for part in (BY_NAME[name] for name in names):
            for size in part.sizes:
                if (size, str(seed), part.name) in known:
                    continue
                row = solved(part, size, seed, limit)
                is_new = not path.exists()
                with path.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    if is_new:
                        writer.writeheader()
                    writer.writerow(row)
                print(*row.values(), flush=True)


def gap(row: Mapping[str, str]) -> float:
    """Gap in per cent of the objective."""
    return 100 * (float(row["bound"]) / float(row["objective"]) - 1)


def value(row: Mapping[str, str]) -> float:
    return float(row["objective"])


def change(rows: Sequence[Row], base: Mapping[tuple[str, ...], Row]) -> tuple[str, str]:
    """By how much more a gap is without a part (points: mean, least, most), and a value (%)."""
    pairs = [(row, base[key]) for row in rows if (key := place(row)) in base]
    if not pairs:
        return "", ""
    gaps = [gap(row) - gap(whole) for row, whole in pairs]
    values = [100 * (value(row) / value(whole) - 1) for row, whole in pairs]
    spread = f"{statistics.mean(gaps):+.1f} ({min(gaps):+.1f}, {max(gaps):+.1f})"
    return spread, f"{statistics.mean(values):+.1f}"


def place(row: Row) -> tuple[str, ...]:
    return row["size"], row["seed"], row["cores"]


def table(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """A heading, the gaps of the whole, and a row for each part that is off."""
    sizes = [size for size in TABLE_SIZES if any(row["size"] == size for row in rows)]
    columns = (heading for size in sizes for heading in (f"{size}: gap", f"{size}: value %"))
    yield ("off", "lines", "cores", "seconds at testbed", *columns)
    base = {place(row): row for row in rows if row["part"].startswith(ALL)}
    for part in PARTS:
        own = [row for row in rows if row["part"] == part.name]
        cells: list[str] = []
        for size in sizes:
            here = [row for row in own if row["size"] == size]
            if part.name.startswith(ALL):
                gaps = sorted(gap(row) for row in here)
                cells += [", ".join(f"{each:.1f}" for each in gaps), ""]
            else:
                cells += change(here, base)
        seconds = [float(row["seconds"]) for row in own if row["size"] == "testbed"]
        shown = f"{statistics.median(seconds):.1f}" if seconds else ""
        if own:
            yield part.name, str(part.lines or ""), str(part.cores), shown, *cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--csv", type=Path, help="append each solve to this file")
    parser.add_argument("--table", type=Path, help="print what such a file says, a row a part")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each solve")
    parser.add_argument("--seeds", type=int, nargs="+", default=[701, 702, 703])
    parser.add_argument("--cores", type=int, help="only parts that need so many cores")
    parser.add_argument("--parts", nargs="+", choices=[*BY_NAME])
    given = parser.parse_args()
    if given.table is not None:
        csv.writer(sys.stdout, lineterminator="\n").writerows(table(read(given.table)))
        return
    names = given.parts or [p.name for p in PARTS if given.cores in (None, p.cores)]
    run(given.csv, given.seeds, given.limit, names)


if __name__ == "__main__":
    main()
