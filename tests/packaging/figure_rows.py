"""Rows of the figures that the pages show, and claims about them (page_numbers)."""

from __future__ import annotations

from functools import cache

from experiments.evaluation.intervals import CONFIDENCE
from experiments.figures.figure import Row, read_csv
from tests.packaging.page_numbers import ROOT, spelled

PERCENT = f"{100 * CONFIDENCE:g}"


@cache
def data(name: str) -> tuple[Row, ...]:
    """Rows of a figure that the pages show."""
    return tuple(read_csv(ROOT / "docs/figures" / f"{name}.csv"))


def row(name: str, **where: object) -> Row:
    """The one row that has these values."""
    (found,) = rows(name, **where)
    return found


def rows(name: str, **where: object) -> list[Row]:
    return [each for each in data(name) if all(each[key] == value for key, value in where.items())]


def word(value: float) -> str:
    assert value == int(value)
    return spelled(int(value))


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"


def near(value: float, wanted: float, within: float) -> bool:
    return abs(value - wanted) <= within
