"""Handing over what a command has found: to files, and to standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oasis
from experiments.cli import console
from experiments.cli.options import is_stdout
from oasis.model.errors import OasisError
from oasis.model.files import write_text
from oasis.model.instance_file import instance_to_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def deliver(
    document: dict[str, Any] | Callable[[], dict[str, Any]],
    show: Callable[[], None],
    *,
    as_json: bool,
    output: Path | None,
    plot: Path | None = None,
    draw: Callable[[], Figure] | None = None,
    style: str | None = None,
) -> None:
    """Write a result to the files that were asked for, and print it.

    Standard output gets either what `show` prints or, with `as_json` or where `output` is standard
    output, exactly one JSON document. It gets that also if a file cannot be written.

    Parameters
    ----------
    document : dict or callable
        The result as plain data, or what makes it; called only if the document is wanted.
    show : callable
        Prints it for people.
    as_json : bool
        Print `document` instead.
    output : Path, optional
        File for `document`.
    plot : Path, optional
        File for the picture.
    draw : callable, optional
        Makes the picture; needed with `plot`.
    style : str, optional
        Style of the picture, as `experiments.plotting.style.read_style` reads it.

    Raises
    ------
    OasisError
        If a file could not be written; raised when the result has been printed.
    """
    failures: list[OSError] = []
    plain: dict[str, Any] = {}
    if output is not None or as_json:
        plain = document() if callable(document) else document
    if output is not None and not is_stdout(output):
        _attempt(failures, lambda: write_text(output, console.json_text(plain)))
    if plot is not None and draw is not None:
        _draw(failures, draw, plot, style)
    try:
        if as_json or is_stdout(output):
            console.print_json(plain)
        else:
            show()
    finally:
        refuse(failures)


def write_instance(instance: oasis.Instance, output: Path) -> None:
    """Write an instance to the file that was asked for, which may be standard output."""
    write_document(instance_to_dict(instance), output)


def write_picture(draw: Callable[[], Figure], output: Path, style: str | None = None) -> None:
    """Draw in a style, and write the picture to the file that was asked for."""
    failures: list[OSError] = []
    _draw(failures, draw, output, style)
    refuse(failures)


def _draw(
    failures: list[OSError], draw: Callable[[], Figure], output: Path, style: str | None
) -> None:
    from experiments.plotting import drawing_style, save  # noqa: PLC0415 (needs an extra)

    with drawing_style(style):
        picture = draw()
        _attempt(failures, lambda: save(picture, output))


def write_document(document: dict[str, Any], output: Path) -> None:
    """Write one JSON document to the file that was asked for, which may be standard output."""
    if is_stdout(output):
        console.print_json(document)
        return
    failures: list[OSError] = []
    _attempt(failures, lambda: write_text(output, console.json_text(document)))
    refuse(failures)


def write_page(page: str, output: Path) -> None:
    """Write text to the file that was asked for, which may be standard output."""
    if is_stdout(output):
        console.print_text(page.rstrip("\n"))
        return
    failures: list[OSError] = []
    _attempt(failures, lambda: write_text(output, page))
    refuse(failures)


def refuse(failures: Sequence[OSError]) -> None:
    """Raise one `OasisError` that names each file that could not be written, if there are any.

    An `OSError` would not do: typer takes a broken pipe for that of standard output.
    """
    if failures:
        named = (f"{error.filename}: {error.strerror}" for error in failures)
        raise OasisError("; ".join(named))


def _attempt(failures: list[OSError], write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as error:
        failures.append(error)
