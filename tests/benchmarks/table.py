"""Tables of measurements: printed as they come, and written where a page reads them."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
Row = dict[str, str]


def main(
    columns: Sequence[str], rows: Callable[[], Iterable[Sequence[object]]], about: str | None
) -> None:
    """Be the program of one table: print its rows, and write them where it is told to."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE.csv", help="write it here, too")
    path, table = parser.parse_args().file, [columns]
    print(" | ".join(columns))
    for row in rows():
        table.append([str(cell) for cell in row])
        print(" | ".join(table[-1]), flush=True)
    if path is not None:
        write(path, table)


def write(path: Path, table: Iterable[Sequence[object]]) -> None:
    """Write a table, its heading first; a file that was there is replaced in one step."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    whole = path.with_name(f"{path.name}.new")
    whole.write_text(text.getvalue(), encoding="utf-8")
    whole.replace(path)


def read(path: Path, columns: Sequence[str]) -> list[Row]:
    """The rows of a table of these columns; none if there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        heading, *rows = list(csv.reader(stream)) or [[]]
    if heading != list(columns):
        raise SystemExit(f"{path}: expected the columns {', '.join(columns)}")
    return [dict(zip(columns, row, strict=True)) for row in rows]
