"""Numbers of the pages of the SpeCon and the KOD2 paper (page_numbers).

The numbers come from the CSV files beside the pictures, which the commands on the pages write;
``tests/unit/experiments`` tests that the files are still what the commands give.
"""

from __future__ import annotations

from collections.abc import Iterable

from experiments.figures import kod2
from experiments.figures.figure import Row
from experiments.figures.specon_draws import TABLE3
from tests.packaging.figure_rows import data, percent, row, rows


def largest_reduction() -> Row:
    return max(data("kod2-7"), key=lambda each: each["reduction"])


NETWORKS = tuple(kod2.NETWORKS.values())


def run(figure: str) -> Row:
    return row(f"specon-{figure}", policy="specon")


def above(figure: str, column: str) -> float:
    """Distance of a mean above the published number, as a share of it."""
    return float(run(figure)[column] / run(figure)[f"{column}_published"] - 1)


def choice(figure: str, crowding: str, name: str) -> Row:
    (found,) = (
        each
        for each in data("specon-sensitivity")
        if (str(each["figure"]), each["crowding"], each["choice"]) == (figure, crowding, name)
    )
    return found


def table3() -> list[Row]:
    """A row for each threshold and interval."""
    return rows("specon-table3", policy="specon")


def ends(values: Iterable[float]) -> list[str]:
    """The least and the largest, in per cent."""
    found = list(values)
    return [percent(min(found)), percent(max(found))]


def printed3(name: str) -> list[str]:
    return ends(each[name] for each in TABLE3.values())


def is_ordinary(rows: Iterable[Row]) -> bool:
    """Return whether each published mean lies in the middle 95 % of the draws."""
    return all(
        each["one_draw_low"] < each["overall_published"] < each["one_draw_high"] for each in rows
    )
