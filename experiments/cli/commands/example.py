"""``oasis example``: the files that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli import console
from experiments.cli.files import Written, is_stdout
from experiments.cli.options import AsJson, among, known
from experiments.cli.results import write_page
from oasis.model.errors import InputError
from oasis.model.examples import EXAMPLES, example_text
from oasis.version import __version__


def _endings(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    example = EXAMPLES.get(str(arguments["name"]).casefold())
    return () if example is None else (Path(example.file).suffix,)


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=among(EXAMPLES),
            help="Name of the example. Without it, all are listed.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="File to write; -: standard output. [default: standard output]"
        ),
        Written("an example", _endings),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the examples that come with the package, or write one of them.

    Example: oasis example congested -o congested.json
    """
    if name is None:
        if output is not None:
            raise InputError("-o", "expected the NAME of an example beside it")
        _list(as_json)
        return
    if as_json:
        raise InputError("--json", "lists the examples, expected no NAME beside it")
    name = known(name, EXAMPLES, "NAME")
    write_page(example_text(name), Path("-") if output is None else output)
    if output is not None and not is_stdout(output):
        console.note(f"wrote {output}: {EXAMPLES[name].about}")


def _list(as_json: bool) -> None:
    if as_json:
        listed = {
            name: {"file": example.file, "about": example.about, "try": f"oasis {example.command}"}
            for name, example in EXAMPLES.items()
        }
        console.print_json({"examples": listed, "version": __version__})
        return
    rows = [(name, example.about, f"oasis {example.command}") for name, example in EXAMPLES.items()]
    console.print_rows((("name", False), ("what it is", False), ("try", False)), rows)
