"""``oasis plot``: the picture of a result that was kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.verify import Result
from experiments.cli.files import PICTURE
from experiments.cli.options import Style
from experiments.cli.results import read_document, read_instance, write_picture
from experiments.evaluation.checking import digest_of, named_file
from experiments.evaluation.provenance import check_digest
from oasis.model.errors import located_at
from oasis.simulator.result import result_from_dict


def command(
    result: Result,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Picture to draw (.png, .svg or .pdf)."),
        PICTURE,
    ],
    instance: Annotated[
        Path | None,
        typer.Option(
            "--instance",
            metavar="FILE",
            help="Instance that the result is of. [default: the file that the result names]",
        ),
    ] = None,
    style: Style = None,
) -> None:
    """Draw a result that a command wrote.

    These commands are `oasis run`, `solve`, `ratio`, `compare`, `replay`, `whatif` and `quote`. The
    same pictures as those of --plot, without running anything again. The table of `oasis sweep`,
    and a JSON object with `schedules` alone, as `oasis verify` takes it, are drawn too.

    Example: oasis plot result.json -o result.png
    """
    from experiments.plotting.files import picture_of  # noqa: PLC0415 (needs an extra)
    from experiments.plotting.sweeps import is_table, read_sweep, sweep_page  # noqa: PLC0415

    if is_table(result):
        with located_at(source=result):
            frame = read_sweep(result).to_pandas()
            write_picture(lambda: sweep_page(frame), output, style)
        console.note(f"wrote {output}")
        return
    data = read_document(result)
    with located_at(source=result):
        problem = _instance(data, instance)
        write_picture(lambda: picture_of(data, result.stem, problem), output, style)
    console.note(f"wrote {output}")


def _instance(data: Any, file: Path | None) -> oasis.Instance | None:
    """The instance that a result is of, if the picture is of one; refused if it is another."""
    from experiments.plotting.files import NEED_INSTANCE, kind_of  # noqa: PLC0415

    kind = kind_of(data)
    if kind not in NEED_INSTANCE:
        result_from_dict(data)  # says what is wrong with it
        if kind != "ratio":
            return None
    named = file or named_file(data)
    if named is None and kind in NEED_INSTANCE:
        raise oasis.InputError("", "names no instance file; expected --instance too")
    if named is None or (kind == "ratio" and file is None and not named.is_file()):
        _note_without(named)
        return None
    return _checked(read_instance(named), data)


def _checked(instance: oasis.Instance, data: Mapping[str, Any]) -> oasis.Instance:
    digest = digest_of(data)
    if digest is not None:
        check_digest(instance, digest)
    return instance


def _note_without(named: Path | None) -> None:
    why = "names no instance file" if named is None else f"{named} is not there"
    console.note(f"drawn without the jobs that make the difference: {why}; --instance names one")
