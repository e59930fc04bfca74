"""What is learned from the past: prices from past days, and a training curve from a log."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import oasis
from experiments.cli import console
from experiments.cli.exit_codes import DONE, LIMIT, InterruptedWorkError
from experiments.cli.options import COUNT, Limits, Output, PrintedFile, naming_flags
from experiments.cli.results import hand_out, read_instance, write_document
from oasis.model.errors import InputError, located_at
from oasis.model.file_kinds import ELASTIC
from oasis.model.files import json_text
from oasis.model.instance_file import read_json
from oasis.model.summary import how_many
from oasis.model.validation import number
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.scheduling.job import TrainingCurve
from oasis.simulator.elastic import elastic_from_dict
from oasis.solvers import Status


def learn(
    *,
    files: Annotated[
        list[Path], typer.Argument(metavar="PAST.json...", help="Instances of past days.")
    ],
    output: Output,
    slots_per_day: Annotated[
        int | None,
        "Slots after which prices repeat; each file begins a day. [default: the longest horizon]",
        COUNT,
    ] = None,
    min_utility_fraction: Annotated[
        float,
        "For U and L, a completion worth less than this fraction of the job's best counts "
        "as worthless.",
    ] = DEFAULT_MIN_UTILITY_FRACTION,
    limits: Limits,
) -> int:
    """Learn prices from past days: the dual values of their configuration LPs, by slot of the day.

    The file also holds U and L, estimated from the past jobs, and the jobs, from which futures are
    sampled. Limits are for each past day; its prices are less exact where a limit ends the LP: a
    line names that day, and the exit code is 3. The gap is between the LP's bound and OASiS's
    schedules. Ctrl-C writes no file.

    Example: oasis learn monday.json tuesday.json -o prices.json
    """
    from offline import learn_prices  # noqa: PLC0415 (needs an extra)

    criteria = limits.given()
    if not 0 <= min_utility_fraction < 1:
        expected = f"expected 0 <= fraction < 1, got {min_utility_fraction:g}"
        raise oasis.InputError("--min-utility-fraction", expected)
    past = [read_instance(file) for file in files]
    ended: list[Status] = []
    try:
        with naming_flags(("slots_per_day",)):
            learned = learn_prices(
                past,
                slots_per_day=slots_per_day,
                min_utility_fraction=min_utility_fraction,
                on_bound=lambda bound: ended.append(bound.status),
                **criteria,
            )
    except oasis.InstanceError as error:
        for k, file in enumerate(files):
            # The error names a place in a list, which the user knows as a file.
            inner = error.field.removeprefix(f"past[{k}].")
            if inner != error.field:
                error.field, error.sources = inner, (str(file),)
        raise
    except KeyboardInterrupt:
        raise InterruptedWorkError("interrupted; nothing is written") from None
    slots, jobs = how_many(learned.slots_per_day, "slot"), how_many(len(learned.jobs), "job")
    write_document(learned.to_dict(), output, f"prices of {slots} of the day from {jobs}")
    for file, status in zip(files, ended, strict=True):
        if status is not Status.OPTIMAL:
            console.note(f"{file}: {status} before its LP was solved, so its prices are less exact")
    return DONE if set(ended) == {Status.OPTIMAL} else LIMIT


POINTS = 64  # of a curve: more than the intervals in which anybody looks at a training


def curve(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="LOG.csv",
            help="Log with a header: a column of steps or times, and one of values.",
        ),
    ],
    position: Annotated[
        str | None, "Column of steps, epochs or times. [default: the first]", {"flag": "--step"}
    ] = None,
    value: Annotated[str | None, "Column of the loss or accuracy. [default: the second]"] = None,
    points: Annotated[int, "Pieces of the curve at most.", COUNT] = POINTS,
    workload: Annotated[
        Path | None, "Workload whose jobs, or those of --ids, get the curve.", {"flag": "--into"}
    ] = None,
    jobs: Annotated[
        str | None, "Ids of the jobs, separated by commas. [default: all]", {"flag": "--ids"}
    ] = None,
    seconds: Annotated[
        bool, "The steps are seconds: the work of these jobs is from the first row to the last."
    ] = False,
    output: PrintedFile = None,
) -> None:
    """Make the training curve of a job from a log, for policies such as SpeCon.

    Prints the curve as the field `curve` of a job has it. With --into, prints that workload with
    the curve in its jobs.

    Example: oasis curve vae.csv --into jobs.json --ids vae1,vae2 -o own.json
    """
    if workload is None and (jobs is not None or seconds):
        raise InputError("--ids" if jobs is not None else "--seconds", "expected --into, too")
    log = read_training_log(file, position=position, value=value, points=points)
    document: Any = [list(point) for point in log.curve.points]
    if workload is not None:
        document = _with_curve(workload, jobs, log, document, seconds)
        if "observation" not in document:
            console.note(f"{workload}: nobody looks at curves without the field observation")
    empty = f", {log.empty} without a value" if log.empty else ""
    hand_out(json_text(document), output, f"a curve of {log.rows} rows{empty}")


def _with_curve(
    path: Path, ids: str | None, log: TrainingLog, points: list[list[float]], seconds: bool
) -> dict[str, Any]:
    """Return a workload as plain data, with the curve `points` in its jobs `ids`, None: in all."""
    with located_at("--into"), located_at(source=path):
        document = dict(read_json(path, (ELASTIC,), "a workload of elastic jobs"))
        elastic_from_dict(document)
    present = [job["id"] for job in document["jobs"]]
    chosen = present if ids is None else [name.strip() for name in ids.split(",")]
    unknown = next((name for name in chosen if name not in present), None)
    if unknown is not None:
        raise InputError("--ids", f"expected ids of jobs of {path}", unknown)
    own = {"curve": points} | ({"work": log.length} if seconds else {})
    document["jobs"] = [job | own if job["id"] in set(chosen) else job for job in document["jobs"]]
    elastic_from_dict(document)  # what cannot be read again is not written
    return document


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """What the log of a training contains."""

    curve: TrainingCurve  # the values by the share of the way from the first row to the last
    length: float  # of that way, in units of the column of steps or times
    rows: int  # that were used
    empty: int  # rows without a value


def read_training_log(
    path: Path, *, position: str | None = None, value: str | None = None, points: int = POINTS
) -> TrainingLog:
    """Read a training log: a CSV with a header and a row per step; steps or times increase."""
    with open(path, newline="", encoding="utf-8") as stream:
        header, *rows = [[cell.strip() for cell in row] for row in csv.reader(stream)] or [[]]
    if len(header) < 2:
        raise InputError(f"{path}: line 1", "expected the names of two columns or more", header)
    for column in (position, value):
        if column is not None and column not in header:
            raise InputError(f"{path}: line 1", f"expected a column {column!r}", header)
    places = [k if name is None else header.index(name) for k, name in enumerate((position, value))]
    measured: list[tuple[float, float]] = []
    empty = 0
    for line, cells in enumerate(rows, start=2):
        texts = [cells[k] if k < len(cells) else "" for k in places]
        if not texts[1]:
            empty += any(cells)  # a blank line is no row
            continue
        where = [f"{path}: line {line}: {header[k]}" for k in places]
        at, shown = map(_number, texts, where)
        if measured and at <= measured[-1][0]:
            expected = f"expected more than {measured[-1][0]:g}, that of the row before"
            raise InputError(where[0], expected, at)
        measured.append((at, shown))
    if len(measured) < 2:
        raise InputError(str(path), "expected two rows with a value or more", len(measured))
    return TrainingLog(
        _curve(measured, points), measured[-1][0] - measured[0][0], len(measured), empty
    )


def _curve(measured: list[tuple[float, float]], points: int) -> TrainingCurve:
    """Return the values by share of the log; if it has more than `points` pieces, at even ones."""
    first, length = measured[0][0], measured[-1][0] - measured[0][0]
    pairs = [((at - first) / length, shown) for at, shown in measured]
    # Shares of rows that are nearer than a float can tell would not increase.
    distinct = all(before < after for (before, _), (after, _) in pairwise(pairs))
    if len(pairs) > points + 1 or not distinct:
        even = np.linspace(0.0, 1.0, points + 1)
        values = np.interp(even, *np.array(pairs).T)
        pairs = list(zip(even.tolist(), values.tolist(), strict=True))
    return TrainingCurve(tuple(pairs))


def _number(text: str, where: str) -> float:
    try:
        return number(float(text), where, minimum=-math.inf)
    except ValueError:
        raise InputError(where, "expected a finite number", text) from None
