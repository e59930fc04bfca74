"""The layout of a table in a given width: no cell is cut, and missing columns are named."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from experiments.cli.streams import encodable

GAP = 2  # blanks between two columns
LEAST_COLUMNS = 2


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
