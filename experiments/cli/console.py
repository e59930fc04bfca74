"""Output of the command line: results on standard output, progress on standard error."""

from __future__ import annotations

import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.streams import encodable, naming_output
from experiments.evaluation import tables

number, percent = tables.number, tables.percent  # of figures, for people
# A display that only flashes up is in the way, so quick work shows none.
PATIENCE_SECONDS = 2.0
BAR_WIDTH = 20
GAP = 2  # blanks between two columns
LEAST_COLUMNS = 2
LOGGERS = ("oasis", "offline", "baselines", "experiments")


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


def lay_out(
    columns: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]], width: int
) -> tuple[Table, int, str]:
    """A table, its width, and a sentence on the columns that are left out.

    Each column is (heading, whether it is a number). Text is wrapped between words, a heading also
    behind ``_``. A number is not wrapped: half of one is a wrong number. Where that does not fit,
    columns are left out from the right. The first two stay in any case, in lines that run on.
    """
    names, numeric = zip(*columns, strict=True)
    headings = [printable(name) for name in names]
    table = [[printable(cell) for cell in row] for row in rows]
    cells: Sequence[Sequence[str]] = list(zip(*table, strict=True)) or [()] * len(names)
    pairs = list(zip(headings, cells, strict=True))
    most = [_widest((heading, *texts), str.splitlines) for heading, texts in pairs]
    if _total(most) > width:
        headings = [re.sub(r"_(?=[^_\s])", "_\n", heading) for heading in headings]
    least = [
        max(_widest([heading], str.split), _widest(texts, str.splitlines if whole else str.split))
        for heading, texts, whole in zip(headings, cells, numeric, strict=True)
    ]
    kept = len(names)
    while kept > LEAST_COLUMNS and _total(least[:kept]) > width:
        kept -= 1
    widths = _spread(least[:kept], most[:kept], width)
    grid = Table(box=None, pad_edge=False, show_header=any(names))
    for heading, is_number, cell in zip(headings, numeric, widths, strict=False):
        justify: JustifyMethod = "right" if is_number and heading else "left"
        grid.add_column(Text(heading), justify=justify, width=cell, overflow="fold")
    for row in table:
        grid.add_row(*map(Text, row[:kept]))
    left_out = ", ".join(name or f"column {kept + k + 1}" for k, name in enumerate(names[kept:]))
    note = f"not shown for want of width: {left_out}; --json has them" if left_out else ""
    return grid, _total(widths), note


def _widest(texts: Iterable[str], split: Callable[[str], list[str]]) -> int:
    return max((cell_len(part) for text in texts for part in split(text)), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _spread(least: Sequence[int], most: Sequence[int], width: int) -> list[int]:
    """Widths from `least` to `most`: what is left over goes to those that would be wrapped."""
    needs = [max(0, high - low) for low, high in zip(least, most, strict=True)]
    spare = min(max(0, width - _total(least)), sum(needs))
    widths = list(least)
    for k, need in enumerate(needs):
        # Each share is of what is left, so that rounding down loses nothing in the end.
        share = spare * need // (sum(needs[k:]) or 1)
        widths[k] += share
        spare -= share
    return widths


def wrapped(text: str, width: int) -> str:
    """`text` with line breaks between words."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            joined = f"{line} {word}".lstrip()
            if line and cell_len(joined) > width:
                lines.append(line)
                joined = word
            line = joined
        lines.append(line)
    return "\n".join(lines)


def printable(text: str) -> str:
    """`text` without what would move the cursor or cannot be shown, which is escaped."""
    shown = text if text.isprintable() else "".join(map(_printable, text))
    return encodable(shown)


def _printable(character: str) -> str:
    if character == "\t":
        return " "
    is_bad = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character != "\n"
    return ascii(character)[1:-1] if is_bad else character


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


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Inside, everything that the packages log is a line on standard error.

    A line has the seconds since the program began, the module, and what it says. On a terminal, a
    live line or a progress bar stays below the last of them.
    """
    handler = _Notes()
    handler.setFormatter(_Elapsed())
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
    """Hands lines to the console that live lines and progress bars are on."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            note(self.format(record))
        except Exception:  # noqa: BLE001 (as every handler: what is logged never ends the work)
            self.handleError(record)


class _Elapsed(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.relativeCreated / 1000:7.1f} s  {record.name}: {record.getMessage()}"
