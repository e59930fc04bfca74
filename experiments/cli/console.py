"""Output of the command line: results on standard output, progress on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from experiments.cli.exit_codes import ReaderGoneError
from experiments.evaluation.texts import interval, number, percent, seconds

__all__ = [
    "counter",
    "interval",
    "json_text",
    "note",
    "number",
    "percent",
    "print_facts",
    "print_json",
    "print_rows",
    "print_text",
    "seconds",
    "stderr",
]
PATIENCE_SECONDS = 2.0
WIDEST = 10_000  # characters of a line


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


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print a two-column table of names and values on standard output."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in facts:
        table.add_row(name, Text(value))
    _print(table)


def print_rows(
    columns: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]], title: str = ""
) -> None:
    """Print a table; each column is (heading, whether it is a number).

    Text is wrapped to the terminal between words; a number or a word is never cut, a line too long
    for it rather runs on.
    """
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    cells = [[Text(cell) for cell in row] for row in rows]
    for k, (heading, numeric) in enumerate(columns):
        texts = [heading, *(row[k].plain for row in cells)]
        parts = texts if numeric else [word for text in texts for word in text.split()]
        table.add_column(
            heading,
            justify="right" if numeric else "left",
            no_wrap=numeric,
            min_width=max(map(cell_len, parts), default=None),
        )
    for row in cells:
        table.add_row(*row)
    _print(table)


def _print(table: Table) -> None:
    """Print a table without the blanks that pad it to the right."""
    console = Console(highlight=False)
    unbounded = console.options.update(max_width=WIDEST)
    console.width = max(console.width, console.measure(table, options=unbounded).minimum)
    with console.capture() as capture:
        console.print(table)
    _write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # what is still in the buffer must not fail again when the process ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise ReaderGoneError from None
        raise OSError(error.errno, error.strerror, "standard output") from None


@contextmanager
def counter(what: str, total: int) -> Iterator[Callable[..., None]]:
    """Callback that advances a progress bar on a terminal's standard error, after two seconds.

    It may be called with what is being done at the moment, such as the name of a policy.
    """
    console = stderr()
    begin = monotonic()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        if bar.disable:
            yield lambda _="": None
            return
        task = bar.add_task(what, total=total, visible=False)

        def advance(doing: str = "") -> None:
            shown = f"{what} {doing}".rstrip()
            is_slow = monotonic() - begin >= PATIENCE_SECONDS
            bar.update(task, advance=1, visible=is_slow, description=shown)

        yield advance
