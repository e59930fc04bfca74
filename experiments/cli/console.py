"""Output of the command line: results on standard output, progress on standard error."""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from textwrap import fill
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.streams import encodable, naming_output
from experiments.evaluation import tables
from oasis.model.files import json_text

number, percent = tables.number, tables.percent  # of figures, for people
GAP = 2  # blanks between two columns
LEAST_COLUMNS = 2
LOGGERS = ("oasis", "offline", "baselines", "experiments")


def print_json(document: Any) -> None:
    """Print one JSON document, and nothing else, on standard output."""
    _write(json_text(document))


@cache
def stderr() -> Console:
    """Return the only console of standard error: a live line on it makes room for messages."""
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
    """Print sentences about a table, as wide as it; a word is never broken."""
    width = Console().width
    for line in (line for each in notes for line in each.split("\n")):
        print_text(fill(line, width, break_long_words=False, break_on_hyphens=False))


def note_missing(missing: Sequence[str]) -> int:
    """Say which policies an interrupted comparison lacks; return the command's exit code."""
    if not missing:
        return DONE
    note(f"interrupted: without {', '.join(missing)}, which had not ended")
    return LIMIT


def headings(*names: str) -> list[tuple[str, bool]]:
    """Return columns for `print_rows`: a heading that begins with ``>`` is one of numbers."""
    return [(name.removeprefix(">"), name.startswith(">")) for name in names]


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print a two-column table of names and values on standard output; names are not wrapped."""
    print_rows((("", True), ("", False)), facts, title, ("bold",))


def print_rows(
    columns: Iterable[tuple[str, bool]],
    rows: Iterable[Iterable[str]],
    title: str = "",
    styles: Sequence[str] = (),
) -> None:
    """Print a table in the terminal's width, or 80 columns; each column is (heading, is a number).

    Numbers and the first column are not wrapped, as half of a number is a wrong one; where that
    does not fit, columns but the first two are left out from the right, and a sentence names them.
    """
    console = Console(highlight=False)
    names, numeric = zip(*columns, strict=True)
    table = [[printable(cell) for cell in row] for row in (names, *rows)]
    is_whole = [k == 0 or is_number for k, is_number in enumerate(numeric)]
    unbroken, shown = table[0], len(names)
    table[0] = [re.sub(r"([ _])(?=[^ _])", r"\1\n", heading) for heading in unbroken]
    while shown > LEAST_COLUMNS and _width(table, is_whole[:shown]) > console.width:
        shown -= 1
    # Headings break behind blanks and ``_`` only where that is needed.
    if _width([unbroken, *table[1:]], is_whole[:shown]) <= console.width:
        table[0] = unbroken
    grid = Table(box=None, pad_edge=False, show_header=any(names))
    for k, heading in enumerate(table[0][:shown]):
        grid.add_column(
            Text(heading),
            justify="right" if numeric[k] and heading else "left",
            no_wrap=is_whole[k],
            overflow="fold",
            style=styles[k] if k < len(styles) else "",
        )
    for row in table[1:]:
        grid.add_row(*map(Text, row[:shown]))
    if title:
        print_notes([printable(title)])
    console.width = max(console.width, _width(table, is_whole[:shown]))
    with naming_output(), console.capture() as capture:
        console.print(grid)
    _write("".join(f"{line.rstrip()}\n" for line in capture.get().split("\n")[:-1]))
    left_out = ", ".join(name or f"column {k + 1}" for k, name in enumerate(names) if k >= shown)
    if left_out:
        print_notes([f"not shown for want of width: {left_out}; --json has them"])


def _width(table: Sequence[Sequence[str]], is_whole: Sequence[bool]) -> int:
    """Return the least width of the first columns; those that are `is_whole` are not wrapped."""
    width = GAP * (len(is_whole) - 1)
    for whole, column in zip(is_whole, zip(*table, strict=True), strict=False):
        parts = "\n".join(column).splitlines() if whole else " ".join(column).split()
        width += max(map(cell_len, parts), default=0)
    return width


def _write(text: str) -> None:
    with naming_output():
        sys.stdout.write(text)
        sys.stdout.flush()


def printable(text: str) -> str:
    """Return `text` in which what would move the cursor or cannot be shown is escaped."""
    shown = text if text.isprintable() else "".join(map(_printable, text))
    return encodable(shown)


def _printable(character: str) -> str:
    if character == "\t":
        return " "
    is_bad = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character != "\n"
    return ascii(character)[1:-1] if is_bad else character


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Print what the packages log inside on standard error, with the seconds so far."""
    handler = _Notes()
    # The levels come back at the end: a test, or a notebook, may run several commands.
    former = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG)
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name, level in former.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)


class _Notes(logging.Handler):
    """A log handler that prints above live lines and progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            seconds = record.relativeCreated / 1000
            note(f"{seconds:7.1f} s  {record.name}: {record.getMessage()}")
        except Exception:  # noqa: BLE001 (as every handler: what is logged never ends the work)
            self.handleError(record)
