"""Rows of the figures that the pages show, and claims about them (page_numbers)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from experiments.evaluation.intervals import CONFIDENCE
from experiments.figures.figure import Row, read_csv
from tests.packaging.page_numbers import ROOT, Claim, spelled

PERCENT = f"{100 * CONFIDENCE:g}"

# why a number of a page cannot be wrong
DEFINED = "the sentence makes it so"
NAME = "number of a figure or of a line in the paper"
TRIED = "tests/unit/experiments: what is calibrated comes nearest to the numbers of the paper"
COMMAND = "the command beside it"
YEAR = "year of a publication"
QUOTED = "the paper's words"
PAPERS = "the paper's number"
SCENARIO = "asserted by tests/unit/experiments/test_priority_queue_scenarios.py"


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


def says(page: str, sentence: str, *values: str | int) -> Claim:
    """A sentence whose numbers are known when this file is read."""
    return Claim(page, sentence, lambda: values)


def gives(page: str, sentence: str, *values: Callable[[], str | int]) -> Claim:
    """A sentence whose numbers follow from the data."""
    return Claim(page, sentence, lambda: [value() for value in values])


def holds(page: str, sentence: str, condition: Callable[[], bool]) -> Claim:
    """A sentence that is true if the condition is; its numbers stand in it."""
    assert "@" not in sentence
    return Claim(page, sentence, holds=condition)


def word(value: float) -> str:
    assert value == int(value)
    return spelled(int(value))


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"


def near(value: float, wanted: float, within: float) -> bool:
    return abs(value - wanted) <= within
