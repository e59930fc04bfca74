"""Curation of the library: solve its instances again, or add what others have found."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from experiments.library.families import problems_like
from experiments.library.handed_in import HandedIn, handed_in, of_solve
from experiments.library.store import (
    DIGITS,
    OPTIMAL,
    SHIPPED,
    Library,
    LibraryEntry,
    digest,
    fingerprint,
    pack,
    rounded,
)
from experiments.options import read_seconds
from oasis.model.errors import OasisError
from oasis.online.recourse.policy import Recourse
from oasis.simulator import simulate
from oasis.solvers import Status
from offline.solve import METHODS, solve
from offline.state import Phase, trivial_bound


def improve(
    library: Library, patterns: Sequence[str] = (), method: str = "auto", **limits: Any
) -> Iterator[LibraryEntry]:
    """Solve every instance that is not proven optimal, from the best schedules known."""
    for problem in problems_like(patterns):
        before = library.find(problem.name)
        if before is not None and before.proof == OPTIMAL:
            continue
        # Where nothing is known, the run of recourse is a start that the solve need not find.
        if before is None:
            instance = problem.instance()
            start = simulate(instance, Recourse(commitment="none", seed=0)).schedules
        else:
            instance = library.instance(before)
            library.verify(before, instance)
            start = library.schedules(before)
        result = solve(instance, method, warm_start=start, **limits)
        yield keep(library, of_solve(problem, instance, result, before))
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt


def rounded_up(bound: float) -> float:
    """A bound as the table has it."""
    # Never down: a bound that is rounded down may lie below the optimum.
    near = round(bound, DIGITS)
    return near if near >= bound else round(near + 10.0**-DIGITS, DIGITS)


def keep(library: Library, entry: HandedIn) -> LibraryEntry:
    """Store the better value or bound of a verified result; return the new record."""
    today, schedules = date.today().isoformat(), entry.schedules
    bound, bound_by = entry.bound, entry.bound_by
    if bound is None:
        bound, bound_by = trivial_bound(entry.instance), f"{entry.value_by}: {Phase.TRIVIAL}"
    new = LibraryEntry(
        name=entry.problem.name,
        family=entry.problem.family,
        fingerprint=fingerprint(entry.instance),
        value=rounded(entry.value),
        bound=rounded_up(bound),
        # what a solve only started from is somebody else's
        value_by="recourse" if entry.value_by.endswith(Phase.WARM_START) else entry.value_by,
        value_date=today,
        bound_by=bound_by,
        bound_date=today,
        schedules=digest(pack(schedules)),
    )
    before = library.find(new.name)
    after = new if before is None else before.improved(new)
    if after != before:
        is_new = before is None or after.schedules != before.schedules
        library.put(after, schedules if is_new else None)
    return after


def main(words: Sequence[str] | None = None) -> None:
    """Read the command, and say what is known of each instance afterwards."""
    parser = argparse.ArgumentParser(prog="python -m docs.curate", description=__doc__)
    parser.add_argument("--library", type=Path, default=SHIPPED, help="directory of the table")
    commands = parser.add_subparsers(dest="command", required=True)
    again = commands.add_parser("improve", help="solve what is not proven, and keep what is better")
    again.add_argument("patterns", nargs="*", metavar="NAME", help="instances or families")
    again.add_argument("--method", default="auto", choices=METHODS)
    again.add_argument("--time-limit", type=read_seconds, help="for each instance")
    again.add_argument("--work-limit", type=float)
    again.add_argument("--seed", type=int, default=0)
    one = commands.add_parser("add", help="verify a result, and keep what is better")
    one.add_argument("file", type=Path, help="document of run, solve or ratio, or schedules")
    one.add_argument("--name", help="instance, where the document does not say")
    arguments = vars(parser.parse_args(words))
    library, command = Library(arguments.pop("library")), arguments.pop("command")
    if arguments.get("time_limit") is None:
        arguments.pop("time_limit", None)
    try:
        library.directory.mkdir(parents=True, exist_ok=True)
        if command == "improve":
            for record in improve(library, **arguments):
                print(f"{record.name}: {record.value:.6g}, gap {100 * record.gap:.3g}%", flush=True)
        else:
            data = json.loads(arguments["file"].read_text(encoding="utf-8"))
            entry = handed_in(library, data, arguments["name"])
            keep(library, entry)
            print(f"{entry.problem.name}: {entry.value:.6g}, {entry.verdict}")
    except (OasisError, OSError, json.JSONDecodeError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:  # what is known by then has been kept
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
