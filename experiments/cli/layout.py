"""The layout of a table in a given width: no cell is cut, and missing columns are named.

Text is wrapped between words; a heading also behind ``_``, and where that is not enough it has its
short form of `SHORT`; then columns are left out from the right, and named below the table. A number
or a word is never broken: the first two columns stay in any case, in lines that run on if need be.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from experiments.cli.streams import encodable

GAP = 2  # blanks between two columns
LEAST_COLUMNS = 2
SHORT = {  # forms of headings that take less than the longest word of the cells below
    "admitted": "adm.",
    "arrives": "arr.",
    "decision": "dec.",
    "finished": "fin.",
    "finishes": "fin.",
    "restarts": "rest.",
    "utility": "util.",
    "waiting": "wait.",
    "workers": "wkrs.",
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column that is shown.

    Parameters
    ----------
    heading : str
        With a line break wherever it is wrapped.
    numeric : bool
        Whether it stands to the right.
    width : int
        In cells of the terminal.
    cells : tuple of str
        One a row.
    """

    heading: str
    numeric: bool
    width: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Columns that fit, and sentences on what was shortened or left out.

    Parameters
    ----------
    columns : tuple of TableColumn
        From the left.
    notes : tuple of str
        To be printed below.
    """

    columns: tuple[TableColumn, ...]
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        """Cells of the longest line."""
        return _total([column.width for column in self.columns])


def lay_out(
    columns: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]], width: int
) -> TableLayout:
    """Find the widths of the columns of a table.

    Parameters
    ----------
    columns : iterable of (str, bool)
        Heading, and whether the cells are numbers, which are not even wrapped between words.
    rows : iterable of iterable of str
        A cell for each column.
    width : int
        Cells of a line.

    Examples
    --------
    >>> found = lay_out([("policy", False), ("mean", True), ("p95", True)], [["las", "1", "2"]], 14)
    >>> [column.width for column in found.columns], found.notes
    ([6, 4], ('not shown for want of width: p95; --json has them',))
    """
    table = [[printable(cell) for cell in row] for row in rows]
    wanted = [
        _Wanted(printable(heading), numeric, tuple(row[k] for row in table))
        for k, (heading, numeric) in enumerate(columns)
    ]
    kept = len(wanted)
    # Columns are given up before numbers are broken: half of a number is a wrong number.
    while kept > LEAST_COLUMNS and _total([w.least(short=True) for w in wanted[:kept]]) > width:
        kept -= 1
    shown = wanted[:kept]
    is_short = _total([w.least(short=False) for w in shown]) > width
    widths = _spread(
        [w.least(short=is_short) for w in shown], [w.most(short=is_short) for w in shown], width
    )
    notes = [f"{w.short}: {w.heading}" for w in shown if is_short and w.short != w.heading]
    notes = [", ".join(notes)] if notes else []
    if kept < len(wanted):
        names = [w.heading or f"column {kept + k + 1}" for k, w in enumerate(wanted[kept:])]
        notes.append(f"not shown for want of width: {', '.join(names)}; --json has them")
    return TableLayout(
        tuple(w.column(each, short=is_short) for w, each in zip(shown, widths, strict=True)),
        tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A column before its width is known."""

    heading: str
    numeric: bool
    cells: tuple[str, ...]

    @property
    def short(self) -> str:
        """The short form of the heading, where it makes the column narrower."""
        form = SHORT.get(self.heading, self.heading)
        return form if cell_len(self.heading) > self._least_of_cells() else self.heading

    def least(self, *, short: bool) -> int:
        """Width of what must not be broken."""
        heading = self.short if short else self.heading
        return max(self._least_of_cells(), *(map(cell_len, _pieces(heading) or [""])))

    def _least_of_cells(self) -> int:
        cells = self.cells
        parts = _lines(cells) if self.numeric else [word for cell in cells for word in cell.split()]
        return max(map(cell_len, parts), default=0)

    def most(self, *, short: bool) -> int:
        """Width at which nothing is wrapped."""
        return max(map(cell_len, _lines([self.short if short else self.heading, *self.cells])))

    def column(self, width: int, *, short: bool) -> TableColumn:
        heading = wrapped(self.short if short else self.heading, width, is_heading=True)
        return TableColumn(heading, self.numeric, width, self.cells)


def wrapped(text: str, width: int, *, is_heading: bool = False) -> str:
    """`text` with line breaks between words, and in a heading behind underscores.

    Examples
    --------
    >>> wrapped("mean_completion of all", 13).splitlines()
    ['mean_completion', 'of all']
    >>> wrapped("mean_completion of all", 13, is_heading=True).splitlines()
    ['mean_', 'completion of', 'all']
    """
    split = _pieces if is_heading else str.split
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in split(paragraph):
            joint = "" if not line or (is_heading and line.endswith("_")) else " "
            joined = f"{line}{joint}{piece}"
            if line and cell_len(joined) > width:
                lines.append(line)
                joined = piece
            line = joined
        lines.append(line)
    return "\n".join(lines)


def printable(text: str) -> str:
    r"""`text` without what would move the cursor or cannot be shown, which is escaped.

    A tabulator is a blank.

    Examples
    --------
    >>> printable("a\tb\x1b[2K")
    'a b\\x1b[2K'
    """
    shown = text if text.isprintable() else "".join(map(_printable, text))
    return encodable(shown)


def _printable(character: str) -> str:
    if character == "\t":
        return " "
    is_bad = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character != "\n"
    return ascii(character)[1:-1] if is_bad else character


def _pieces(text: str) -> list[str]:
    return re.findall(r"[^\s_]*_+|[^\s_]+", text)


def _lines(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in text.split("\n")]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _spread(least: Sequence[int], most: Sequence[int], width: int) -> list[int]:
    """Widths from `least` to `most`: what is left over goes to those that would be wrapped."""
    needs = [high - low for low, high in zip(least, most, strict=True)]
    spare = min(max(0, width - _total(least)), sum(needs))
    widths = list(least)
    for k, need in enumerate(needs):
        # Each share is of what is left, so that rounding down loses nothing in the end.
        share = spare * need // (sum(needs[k:]) or 1)
        widths[k] += share
        spare -= share
    return widths
