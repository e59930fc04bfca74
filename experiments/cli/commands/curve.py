"""``oasis curve``: the training curve of a job from the log of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.console import note
from experiments.cli.files import READ
from experiments.cli.options import ResultFile
from experiments.cli.results import deliver
from oasis.model.errors import InputError
from oasis.simulator.elastic import elastic_from_dict, read_elastic
from oasis.simulator.training_log import POINTS, TrainingLog, read_training_log


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="LOG.csv",
            help="Log with a header: a column of steps or times, and one of values.",
        ),
        READ,
    ],
    position: Annotated[
        str | None,
        typer.Option("--step", help="Column of steps, epochs or times. [default: the first]"),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option("--value", help="Column of the loss or accuracy. [default: the second]"),
    ] = None,
    points: Annotated[
        int, typer.Option("--points", metavar="N", min=1, help="Pieces of the curve at most.")
    ] = POINTS,
    workload: Annotated[
        Path | None,
        typer.Option("--into", help="Workload whose jobs, or those of --ids, get the curve."),
        READ,
    ] = None,
    jobs: Annotated[
        str | None,
        typer.Option("--ids", help="Ids of the jobs, separated by commas. [default: all]"),
    ] = None,
    seconds: Annotated[
        bool,
        typer.Option(
            "--seconds",
            help="The steps are seconds: the work of these jobs is from the first row to the last.",
        ),
    ] = False,
    output: ResultFile = None,
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
            note(f"{workload}: nobody looks at curves without the field observation")
    empty = f", {log.empty} without a value" if log.empty else ""
    deliver(
        document,
        lambda: note(f"wrote {output}: a curve of {log.rows} rows{empty}"),
        as_json=output is None,
        output=output,
    )


def _with_curve(
    path: Path, ids: str | None, log: TrainingLog, points: list[list[float]], seconds: bool
) -> dict[str, Any]:
    """Plain data of a workload with curves added to some jobs."""
    document = dict(read_elastic(path).document)
    there = [job["id"] for job in document["jobs"]]
    chosen = there if ids is None else [name.strip() for name in ids.split(",")]
    unknown = next((name for name in chosen if name not in there), None)
    if unknown is not None:
        raise InputError("--ids", f"expected ids of jobs of {path}", unknown)
    own = {"curve": points} | ({"work": log.length} if seconds else {})
    document["jobs"] = [job | own if job["id"] in set(chosen) else job for job in document["jobs"]]
    elastic_from_dict(document)  # what cannot be read again is not written
    return document
