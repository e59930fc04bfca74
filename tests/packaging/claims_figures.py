"""Numbers of the page of the OASiS paper's figures (page_numbers).

Its tables and verdicts are computed from the CSV files beside the pictures when the page is built
(`experiments.figures.verdicts`); ``tests/unit/experiments`` tests that the files are still what the
commands give.
"""

from __future__ import annotations

import math

from experiments.figures.settings import FORMS
from experiments.figures.verdicts import AT_TARGET, LEVEL
from tests.packaging.figure_rows import (
    NAME,
    PERCENT,
    data,
    gives,
    holds,
    row,
    says,
    word,
)
from tests.packaging.page_numbers import Claim

PAPER = "docs/figures.md"
PAGES: tuple[str, ...] = (PAPER, "docs/checks.md")

CLAIMS: list[Claim] = [
    says(PAPER, "@ % confidence intervals of the mean", PERCENT),
    says(PAPER, "a completion below @ of the job's best", f"{FORMS['oasis']:g}"),
    holds(
        PAPER,
        "a total utility or loss within a third of the published one; a median on the testbed "
        "within one slot",
        lambda: (LEVEL, AT_TARGET) == (1 / 3, 1.0),
    ),
    gives(
        PAPER,
        "*Ended*: of @ jobs of each kind (@ seeds)",
        lambda: row("fig4", policy="oasis", kind="time-sensitive")["jobs"],
        lambda: word(row("fig4", policy="oasis", kind="time-sensitive")["seeds"]),
    ),
    holds(
        PAPER,
        "Every optimum is proven.",
        lambda: all(each["proven"] == each["seeds"] for each in data("fig5")),
    ),
    says(PAPER, "ten times U/L adds @.", f"{math.log(10):.1f}"),
    holds(
        PAPER,
        "Which policy earns most from twelve jobs?",
        lambda: {each["jobs"] for each in data("fig8")} == {12},
    ),
    holds(
        PAPER,
        "our RRH is stronger: it beats OASiS in Fig. 8",
        lambda: (
            row("fig8", policy="rrh")["utility"]
            > max(row("fig8", policy=form)["utility"] for form in FORMS)
        ),
    ),
]

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    PAPER: {
        "Figs. 3, 4, 5, 6, 8 and 9": NAME,
        "HPDC 2004": NAME,
        "and in Fig. 3 beyond 100 jobs, are of an earlier version": "which rows were run anew",
    },
}
