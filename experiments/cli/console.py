"""Output of the command line: results on standard output, progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.layout import lay_out, printable, wrapped
from experiments.cli.streams import naming_output
from experiments.evaluation import tables

number, percent = tables.number, tables.percent  # of figures, for people
# A display that only flashes up is in the way, so quick work shows none.
PATIENCE_SECONDS = 2.0
BAR_WIDTH = 20


def print_json(document: Any) -> None:
    """Print one JSON document, and nothing else, on standard output."""
    _write(json_text(document))


def json_text(document: Any) -> str:
    """One JSON document as it is printed and as it is written to files."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


@cache
def stderr() -> Console:
    """The one console of standard error.

    A live line or a progress bar on it makes room for every message that is printed through it.
    """
    return Console(stderr=True)


def note(message: str) -> None:
    """Print a message on standard error, above a live line or a progress bar if there is one."""
    console = stderr()
    if console.is_terminal:
        console.print(Text(message), soft_wrap=True)
    else:
        sys.stderr.write(message + "\n")


def print_text(text: str) -> None:
    """Print lines on standard output."""
    _write(text + "\n")


def print_notes(notes: Iterable[str]) -> None:
    """Print sentences about a table below it, wrapped as its own notes are."""
    width = Console().width
    for each in notes:
        print_text(wrapped(each, width))


def note_missing(missing: Sequence[str]) -> int:
    """Say which policies an interrupted comparison lacks; the exit code of the command."""
    if not missing:
        return DONE
    note(f"interrupted: without {', '.join(missing)}, which had not ended")
    return LIMIT


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print a two-column table of names and values on standard output; names are not wrapped."""
    print_rows((("", True), ("", False)), facts, title, ("bold",))


def print_rows(
    columns: Iterable[tuple[str, bool]],
    rows: Iterable[Iterable[str]],
    title: str = "",
    styles: Sequence[str] = (),
) -> None:
    """Print a table as `lay_out` lays it out, in the terminal's width, or 80 columns."""
    console = Console(highlight=False)
    width = console.width
    table, needed, note = lay_out(columns, rows, width)
    for column, style in zip(table.columns, styles, strict=False):
        column.style = style
    # The layout is final: rich must not cut a word that is longer than a line.
    console.width = max(width, needed)
    with naming_output(), console.capture() as capture:
        if title:
            styled = Text(wrapped(printable(title), width), style="table.title")
            console.print(styled, soft_wrap=True)
        console.print(table)
    lines = [line.rstrip() for line in capture.get().split("\n")[:-1]]
    lines += [wrapped(note, width)] if note else []
    _write("".join(f"{line}\n" for line in lines))


def _write(text: str) -> None:
    with naming_output():
        sys.stdout.write(text)
        sys.stdout.flush()


def progress_bar() -> Progress:
    """A bar on a terminal's standard error, which shows nothing elsewhere.

    On a narrow terminal its text is wrapped, not cut.
    """
    console = stderr()
    columns = (
        TextColumn("{task.description}", table_column=Column(overflow="fold")),
        BarColumn(BAR_WIDTH),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    # Transient, so that what stays on the terminal is what a log would have.
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def counter(what: str, total: int) -> Iterator[Callable[..., None]]:
    """Callback that advances a progress bar after two seconds.

    It may be called with what is being done at the moment, such as the name of a policy.
    """
    begin = monotonic()
    with progress_bar() as bar:
        if bar.disable:
            yield lambda _="": None
            return
        task = bar.add_task(what, total=total, visible=False)

        def advance(doing: str = "") -> None:
            shown = f"{what} {doing}".rstrip()
            is_slow = monotonic() - begin >= PATIENCE_SECONDS
            bar.update(task, advance=1, visible=is_slow, description=shown)

        yield advance
