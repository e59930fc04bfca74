"""``oasis plot``: the picture of a result that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.verify import Result
from experiments.cli.options import check_plot
from experiments.cli.reading import errors_name, read_document, read_instance
from experiments.cli.results import write_picture
from experiments.evaluation.checking import SCHEDULES
from experiments.evaluation.provenance import check_digest
from oasis.model.document import entry, mapping, optional, text
from oasis.model.schedule import schedules_by_job
from oasis.simulator.result_file import result_from_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def command(
    result: Result,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            callback=check_plot,
            help="Picture to draw (.png, .svg or .pdf).",
            show_default=False,
        ),
    ],
    instance: Annotated[
        Path | None,
        typer.Option(
            "--instance",
            metavar="FILE",
            help="Instance that the result is of. [default: the file that the result names]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw a result: what `oasis run`, `solve`, `ratio` or `compare` wrote with -o.

    The same pictures as those of --plot, without running anything again. A JSON object with
    `schedules` alone, as `oasis verify` takes it, is drawn too.

    Example: oasis plot result.json -o result.png
    """
    data = read_document(result)
    with errors_name(result):
        figure = _draw(data, result.stem, instance)
    write_picture(figure, output)
    console.note(f"wrote {output}")


def _draw(data: Any, name: str, file: Path | None) -> Figure:
    from experiments.plotting import (  # noqa: PLC0415 (needs an extra)
        comparison_page,
        ratio_page,
        run_page,
        schedules_page,
    )

    if "kind" not in mapping(data) and SCHEDULES in data:
        schedules = entry(data, SCHEDULES, schedules_by_job)
        return schedules_page(_instance(data, file), schedules, f"{len(schedules)} schedules")
    found, kind = result_from_dict(data), data["kind"]
    if kind == "run":
        return run_page(_instance(data, file), found)
    if kind == "solve":
        title = (
            f"{found.method}: total utility {found.objective:.6g}, at most {found.upper_bound:.6g}"
        )
        return schedules_page(_instance(data, file), found.schedules, title)
    if kind == "ratio":
        return ratio_page({name: found})
    if kind == "compare":
        return comparison_page(found)
    raise oasis.OasisError(
        f"kind: there are pictures of run, solve, ratio and compare, not of {kind}"
    )


def _instance(data: Any, file: Path | None) -> oasis.Instance:
    """The instance that a result is of; refused if it is another."""
    reference = entry(data, "instance", mapping) if "instance" in data else {}
    named = file
    if named is None and reference.get("file") is not None:
        named = Path(entry(reference, "file", text))
    if named is None:
        raise oasis.OasisError("names no instance file; expected --instance too")
    instance = read_instance(named)
    digest = entry(reference, "sha256", optional(text)) if "sha256" in reference else None
    if digest is not None:
        check_digest(instance, digest)
    return instance
