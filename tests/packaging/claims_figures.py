"""Numbers of the page of the OASiS paper's figures (page_numbers).

Its tables and verdicts are computed from the CSV files beside the pictures when the page is built
(`docs/verdicts.py`); ``tests/unit/experiments`` tests that the files are still what the
commands give.
"""

from __future__ import annotations

from statistics import fmean

from tests.packaging.figure_rows import data


def by_luck() -> list[tuple[list[float], float]]:
    """For each seed the totals of Fig. 8 that rounding gave, and that of the rule of ties."""
    return [
        ([value for name, value in each.items() if "moved" in name], each["rule"])
        for each in data("ties")
    ]


def means_by_luck() -> list[float]:
    """For each run over all seeds the mean of the totals that rounding gave."""
    runs = zip(*(totals for totals, _ in by_luck()), strict=True)
    return [fmean(totals) for totals in runs]
