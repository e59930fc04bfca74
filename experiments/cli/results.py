"""Handing over what a command has found: to files, and to standard output."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.exit_codes import LIMIT
from experiments.cli.files import is_stdout, reading
from experiments.cli.options import AsJson, Picture, ResultFile, Style, is_given
from experiments.evaluation.comparison import Comparison
from experiments.evaluation.pairs import pairs_of_comparison, said
from experiments.evaluation.provenance import Recipe
from experiments.evaluation.tables import comparison_notes, comparison_table
from oasis.model.errors import InputError, OasisError, located_at
from oasis.model.file_kinds import ELASTIC, INSTANCE, RESULTS, kind_of_data
from oasis.model.files import json_text, write_text
from oasis.model.instance_file import instance_from_dict, instance_to_dict, read_json
from oasis.model.records import parse
from oasis.model.summary import how_many
from oasis.simulator import Workload, elastic_from_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GLYPH = re.compile(r"Glyph (\d+) .* missing from ", re.DOTALL)  # as matplotlib warns


def read_document(path: Path) -> Any:
    """Read the JSON document of a result; errors name the file, or the kind of file that it is."""
    with located_at(source=path):
        return read_json(reading(path), RESULTS, "a result")


def read_instance(path: Path) -> oasis.Instance:
    """Read an instance file; errors name the file and the field."""
    with located_at(source=path):
        return oasis.read(reading(path))


def read_workload(path: Path) -> oasis.Instance | Workload:
    """Read an instance, or a workload of elastic jobs; errors name the file and the field."""
    kinds, expected = (INSTANCE, ELASTIC), "an instance or a workload of elastic jobs"
    with located_at(source=path):
        data = read_json(reading(path), kinds, expected)
        # The kind is taken from the content, because both files end in .json.
        kind = kind_of_data(data)
        is_elastic = kind is not None and kind.name == ELASTIC
        return elastic_from_dict(data) if is_elastic else instance_from_dict(data)


def read_job(path: Path) -> oasis.Job:
    """Read a file with one job, an entry of ``jobs`` in an instance file."""
    with located_at(source=path):
        return parse(oasis.Job, read_json(path, (), "one job, an entry of an instance's jobs"))


def read_recipe(path: Path) -> Recipe:
    """Read from a result of ``oasis run`` how to repeat the run."""
    with located_at(source=path):
        return Recipe.of(read_json(path, ("run",), "a result of oasis run"))


def write_instance(instance: oasis.Instance, output: Path) -> None:
    """Write an instance to the requested file, which may be standard output, and say so."""
    cluster = instance.cluster
    parts = {
        "job": len(instance.jobs),
        "worker server": len(cluster.worker_ids),
        "parameter-server host": len(cluster.ps_ids),
        "slot": instance.horizon,
    }
    counts = ", ".join(how_many(count, unit) for unit, count in parts.items())
    said = f"{counts} of {instance.slot_seconds:g} s"
    write_document(instance_to_dict(instance), output, said)


def write_picture(draw: Callable[[], Figure], output: Path, style: str | None = None) -> None:
    """Draw in a style, and write the picture to the requested file."""
    with drawing(style):
        pages().save(draw(), output)


@contextmanager
def drawing(style: str | None) -> Iterator[None]:
    """Draw pictures in this style inside; report all characters that their font lacks at once."""
    with pages().drawing_style(style), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph ")
        yield
    lacking = ""
    for one in caught:
        if found := GLYPH.match(str(one.message)):
            lacking += chr(int(found[1]))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if lacking:
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in dict.fromkeys(lacking))
        console.note(f"some characters are not in the font: {shown}")


def write_document(document: dict[str, Any], output: Path, what: str) -> None:
    """Write one JSON document to the requested file, which may be standard output, and say so."""
    write_page(json_text(document), output)
    console.note(f"wrote {'standard output' if is_stdout(output) else output}: {what}")


def write_page(page: str, output: Path) -> None:
    """Write text to the requested file, which may be standard output."""
    if is_stdout(output):
        console.print_text(page.rstrip("\n"))
    else:
        write_text(output, page)


def hand_out(page: str, output: Path | None, what: str) -> None:
    """Print a text, or write it to file `output` and report that; `what` describes the text."""
    write_page(page, output or Path("-"))
    if output is not None and not is_stdout(output):
        console.note(f"wrote {output}: {what}")


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where a result goes, files and standard output; the command line is added to it."""

    context: typer.Context
    output: ResultFile = None
    plot: Picture = None
    style: Style = None
    as_json: AsJson = False

    def __post_init__(self) -> None:
        # Before the command begins, as nothing would come of it.
        if self.style is not None and self.plot is None:
            raise InputError("--style", "expected --plot beside it")

    def __call__(
        self,
        document: dict[str, Any] | Callable[[], dict[str, Any]],
        show: Callable[[], None],
        draw: Callable[[], Figure] | None = None,
    ) -> None:
        """Write the requested files, and print a result with `show` or as JSON."""

        def whole() -> dict[str, Any]:
            plain = document() if callable(document) else document
            # A run that is made again is what it was, to the byte.
            return plain if "command" in plain else plain | {"command": again(self.context)}

        picture = None
        if self.plot is not None and draw is not None:
            picture = partial(write_picture, draw, self.plot, self.style)
        deliver(whole, show, as_json=self.as_json, output=self.output, picture=picture)


def deliver(
    document: Any,
    show: Callable[[], None],
    *,
    as_json: bool,
    output: Path | None = None,
    picture: Callable[[], None] | None = None,
) -> None:
    """Write a result and its picture to the requested files; print it with `show` or as JSON."""
    plain = document() if (output is not None or as_json) and callable(document) else document
    failures: list[str] = []
    writes = [] if picture is None else [picture]
    # Files come first: a reader of standard output that goes away must not cost a file.
    if output is not None and not is_stdout(output):
        writes.insert(0, partial(write_text, output, json_text(plain)))
    for write in writes:
        try:
            write()
        except OSError as error:
            failures.append(f"{error.filename}: {error.strerror}")
    try:  # standard output gets the result in any case
        if as_json or is_stdout(output):
            console.print_json(plain)
        else:
            show()
    finally:
        if failures:
            raise OasisError("; ".join(failures))


def pages() -> Any:
    """Return the plotting package, which is imported only when a picture is wanted."""
    from experiments import plotting  # noqa: PLC0415 (needs an extra)

    return plotting


def deliver_comparison(
    comparison: Comparison, document: dict[str, Any], title: str, delivery: Delivery
) -> int:
    """Print a comparison and write the requested files; return the exit code of the command."""

    def show() -> None:
        columns, rows = comparison_table(comparison)
        console.print_rows(columns, rows, title=title)
        console.print_notes([*said(pairs), *comparison_notes(comparison)])

    if pairs := pairs_of_comparison(comparison):
        document = document | {"paired": [one.to_dict() for one in pairs]}
    delivery(document, show, lambda: pages().comparison_page(comparison))
    code = console.note_missing(comparison.missing)
    return LIMIT if not comparison.about.get("optimum", {"proven": True})["proven"] else code


# Of no use to whoever wants the same result.
NOT_AGAIN = ("as_json", "output", "plot", "style", "verbose")


def again(context: typer.Context, without: Collection[str] = NOT_AGAIN) -> str:
    """Return the command line that was given, but for the options in `without`."""
    words = context.command_path.split()
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in without or not is_given(context, name):
            continue
        value = context.params[name]
        if isinstance(value, tuple):  # that was read from a text with commas
            value = ",".join(map(str, value))
        option = parameter.opts[0] if parameter.param_type_name == "option" else None
        for each in value if isinstance(value, list) else [value]:
            words += [option] if option else []
            words += [] if each is True else [str(each)]
    return shlex.join(words)
