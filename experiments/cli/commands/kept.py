"""What a command has written with -o: verified, drawn, and put on a page."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.files import HTML, PICTURE, reading
from experiments.cli.options import AsJson, InstanceFile, Style
from experiments.cli.results import (
    deliver,
    drawing,
    hand_out,
    read_document,
    read_instance,
    write_picture,
)
from experiments.evaluation import provenance
from experiments.evaluation.provenance import check_document, instance_of
from oasis.model.errors import located_at
from oasis.model.summary import how_many
from oasis.results import result_from_dict

Result = Annotated[Path, typer.Argument(metavar="RESULT", help="JSON document of a result.")]


def verify(file: InstanceFile, result: Result, as_json: AsJson = False) -> None:
    """Verify a result: its schedules against every constraint, its figures against its schedules.

    RESULT is what `oasis run`, `solve` or `ratio` wrote with -o. Or it is a JSON object that your
    own scheduler wrote: `{"schedules": [{"job_id": "j0", "workers": [[slot, server, count], ..],
    "ps": [..]}, ..]}`, with slots and servers counted from 0 in the order of FILE, and, if you
    wish, `total_utility`. If something is wrong, one line names constraint, job, slot and server,
    and the exit code is 2.

    Example: oasis verify instance.json result.json
    """
    instance = read_instance(file)
    data = read_document(result)
    with located_at(source=result):
        checked = check_document(instance, data)
    document = {
        "verified": True,
        "result": checked.kind,
        "schedules": checked.schedules,
        **checked.totals,
        "version": oasis.__version__,
    }
    facts = [("schedules", f"{checked.schedules}, every constraint (2)-(13) holds")]
    facts += [
        (name.replace("_", " "), f"{console.number(total)}, recomputed")
        for name, total in checked.totals.items()
    ]
    show = partial(console.print_facts, f"{result}: verified", facts)
    deliver(document, show, as_json=as_json)


def plot(
    result: Result,
    output: Annotated[Path, "Picture to draw (.png, .svg or .pdf).", PICTURE],
    instance: Annotated[
        Path | None,
        "Instance that the result is of. [default: the file that the result names]",
        {"metavar": "FILE"},
    ] = None,
    style: Style = None,
) -> None:
    """Draw a result that a command wrote.

    These commands are `oasis run`, `solve`, `ratio`, `compare`, `replay`, `whatif` and `quote`. The
    same pictures as those of --plot, without running anything again. The table of `oasis sweep`,
    and a JSON object with `schedules` alone, as `oasis verify` takes it, are drawn too.

    Example: oasis plot result.json -o result.png
    """
    from experiments.plotting.comparison import is_table, read_sweep, sweep_page  # noqa: PLC0415
    from experiments.plotting.files import picture_of  # noqa: PLC0415 (needs an extra)

    data = None if is_table(result) else read_document(result)
    with located_at(source=result):
        if data is None:
            frame = read_sweep(result).to_pandas()
            draw = partial(sweep_page, frame)
        else:
            draw = partial(picture_of, data, result.stem, _problem(data, instance))
        write_picture(draw, output, style)
    console.note(f"wrote {output}")


def _problem(data: Any, file: Path | None) -> oasis.Instance | None:
    """Return the instance of result `data`, its digest checked; None to draw without one."""
    from experiments.plotting.files import NEED_INSTANCE, kind_of  # noqa: PLC0415

    kind = kind_of(data)
    if kind not in NEED_INSTANCE:
        result_from_dict(data)  # says what is wrong with it
        if kind != "ratio":
            return None
    own, digest = provenance.named_instance(data)
    named = file or own
    if named is None and kind in NEED_INSTANCE:
        raise oasis.InputError("", "names no instance file; expected --instance too")
    if named is None or (kind == "ratio" and file is None and not named.is_file()):
        why = "names no instance file" if named is None else f"{named} is not there"
        without = "drawn without the jobs that make the difference"
        console.note(f"{without}: {why}; --instance names one")
        return None
    problem = read_instance(named)
    if digest is not None:
        provenance.check_digest(problem, digest)
    return problem


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...", help="JSON documents of results, and Parquet tables of sweeps."
        ),
    ],
    output: Annotated[Path, "Page to write (HTML); -: standard output.", HTML],
    instances: Annotated[
        list[Path] | None,
        "An instance that results are of; repeatable. [default: the files that they name]",
        {"flag": "--instance", "metavar": "FILE"},
    ] = None,
    title: Annotated[str, "Title of the page."] = "OASiS: results",
    style: Style = None,
) -> None:
    """Put results on one page: what was run, tables, pictures, proofs, and how to reproduce them.

    RESULT is what `oasis run`, `solve`, `ratio`, `compare`, `replay`, `whatif` or `quote` wrote
    with -o, an object with `schedules`, or the table of `oasis sweep`. Schedules are verified again
    on the instance that the result names.
    The page is one file of HTML: its pictures and style are inside, and it loads nothing.

    Example: oasis report ratio.json compare.json -o report.html
    """
    from experiments.plotting.comparison import is_table, read_sweep  # noqa: PLC0415
    from experiments.report import report_page, section_of, sweep_section  # noqa: PLC0415

    problems = {provenance.instance_digest(one): one for one in map(read_instance, instances or ())}
    sections = []
    with drawing(style):
        for result in results:
            if is_table(result):
                with located_at(source=result):
                    sections.append(sweep_section(str(result), read_sweep(result)))
                continue
            data = read_document(result)
            with located_at(source=result):
                section = section_of(str(result), data, _named_instance(data, problems))
            sections.append(section)
            for note in section.notes:
                console.note(f"{result}: {note}")
    hand_out(report_page(sections, title), output, how_many(len(sections), "result"))


def _named_instance(data: Any, problems: dict[str, oasis.Instance]) -> oasis.Instance | None:
    """Return the instance that a result is of; the only one in `problems` if it has no digest."""
    if not isinstance(data, dict):
        return None  # what is wrong with it is said when it is read
    named, digest = provenance.named_instance(data)
    if digest is None and len(problems) == 1:
        return next(iter(problems.values()))
    if named is not None:
        reading(named)
    return instance_of(data, problems)
