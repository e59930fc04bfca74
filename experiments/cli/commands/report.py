"""``oasis report``: results on one page that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.files import HTML, is_stdout, reading
from experiments.cli.options import Style
from experiments.cli.results import read_document, read_instance, write_page
from experiments.evaluation.checking import by_digest, digest_of, instance_of, named_file
from oasis.model.errors import located_at


def command(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...", help="JSON documents of results, and Parquet tables of sweeps."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Page to write (HTML); -: standard output."),
        HTML,
    ],
    instances: Annotated[
        list[Path] | None,
        typer.Option(
            "--instance",
            metavar="FILE",
            help="An instance that results are of; repeatable. [default: the files that they name]",
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "OASiS: results",
    style: Style = None,
) -> None:
    """Put results on one page: what was run, tables, pictures, proofs, and how to reproduce them.

    RESULT is what `oasis run`, `solve`, `ratio`, `compare`, `replay`, `whatif` or `quote` wrote
    with -o, an object with `schedules`, or the table of `oasis sweep`. Schedules are verified again
    on the instance that the result names.
    The page is one file of HTML: its pictures and style are inside, and it loads nothing.

    Example: oasis report ratio.json compare.json -o report.html
    """
    from experiments.plotting import drawing_style  # noqa: PLC0415 (needs an extra)
    from experiments.plotting.sweeps import is_table, read_sweep  # noqa: PLC0415
    from experiments.report import (  # noqa: PLC0415 (needs an extra)
        report_page,
        section_of,
        sweep_section,
    )

    problems = by_digest([read_instance(file) for file in instances or ()])
    sections = []
    with drawing_style(style):
        for number, result in enumerate(results, start=1):
            if is_table(result):
                with located_at(source=result):
                    sections.append(sweep_section(str(result), read_sweep(result), number=number))
                continue
            data = read_document(result)
            with located_at(source=result):
                section = section_of(str(result), data, _instance(data, problems), number=number)
            sections.append(section)
            for note in section.notes:
                console.note(f"{result}: {note}")
    write_page(report_page(sections, title), output)
    if not is_stdout(output):
        count = len(sections)
        console.note(f"wrote {output}: {count} {'result' if count == 1 else 'results'}")


def _instance(data: Any, problems: dict[str, oasis.Instance]) -> oasis.Instance | None:
    """The instance that a result is of; the only one given, if the result has no digest."""
    if not isinstance(data, dict):
        return None  # what is wrong with it is said when it is read
    if digest_of(data) is None and len(problems) == 1:
        return next(iter(problems.values()))
    if (named := named_file(data)) is not None:
        reading(named)
    return instance_of(data, problems)
