"""Rows of the tables that the pages show, and words for claims about them (page_numbers)."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from experiments.evaluation.intervals import CONFIDENCE
from experiments.figures.figure import Row, read_csv

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("OASIS_DATA", ROOT / "../shared/data"))
PERCENT = f"{100 * CONFIDENCE:g}"
WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)


@cache
def data(name: str) -> tuple[Row, ...]:
    """Rows of a figure or a benchmark that the pages show."""
    figure = ROOT / "docs/figures" / f"{name}.csv"
    benchmark = ROOT / "docs/benchmarks" / f"{name}.csv"
    return tuple(read_csv(figure if figure.is_file() else benchmark))


def row(name: str, **where: object) -> Row:
    """The one row that has these values."""
    (found,) = rows(name, **where)
    return found


def rows(name: str, **where: object) -> list[Row]:
    return [each for each in data(name) if all(each[key] == value for key, value in where.items())]


def halves(name: str, key: str, part: int = 0, **where: str) -> list[float]:
    """Medians (0) or 99th percentiles (1) in a column, of the rows whose cells begin so."""
    chosen = (r for r in data(name) if all(r[k].startswith(v) for k, v in where.items()))
    return [float(str(each[key]).split(" / ")[part]) for each in chosen]


def span(values: list[float], digits: int) -> list[str]:
    """Least and most."""
    return [f"{end(values):.{digits}f}" for end in (min, max)]


def word(value: float) -> str:
    """A whole number up to twenty as a word."""
    assert value == int(value)
    return WORDS[int(value)]


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"


def near(value: float, wanted: float, within: float) -> bool:
    return abs(value - wanted) <= within


def text_of(page: str) -> str:
    """A page as it stands in the file."""
    return (ROOT / page).read_text(encoding="utf-8")


def has(page: str, pattern: str) -> bool:
    """Return whether a cell of a page, or a file, has what a sentence says of it."""
    return re.search(pattern, text_of(page)) is not None


def trace(name: str) -> Path:
    """A public trace; the test is skipped where it is not at hand."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"{name} is not at hand: set OASIS_DATA to the directory that has it")
    return path


def power(value: float) -> str:
    """The exponent of a negative power of ten."""
    exponent = f"{value:.0e}".partition("-")[2]
    assert value == float(f"1e-{exponent}")
    return exponent.lstrip("0")
