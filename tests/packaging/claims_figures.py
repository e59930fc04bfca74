"""Numbers of the page of the OASiS paper's figures (page_numbers).

Its tables and verdicts are computed from the CSV files beside the pictures when the page is built
(`experiments.figures.verdicts`); ``tests/unit/experiments`` tests that the files are still what the
commands give.
"""

from __future__ import annotations

import math
from statistics import fmean

from experiments.figures.settings import FORMS
from experiments.figures.verdicts import AT_TARGET, LEVEL
from tests.packaging.figure_rows import (
    NAME,
    PERCENT,
    data,
    gives,
    holds,
    percent,
    row,
    says,
    word,
)
from tests.packaging.page_numbers import Claim

PAPER = "docs/figures.md"
PAGES: tuple[str, ...] = (PAPER, "docs/checks.md")


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
    Claim(
        PAPER,
        "Its total moved on @ of @ seeds, and lay between @ % below and @ % above that of the "
        "rule; its mean over the seeds lay between @ and @, where the rule earns @",
        lambda: (
            sum(max(totals) - min(totals) > 1e-6 for totals, _ in by_luck()),
            len(by_luck()),
            percent(max(1 - min(totals) / rule for totals, rule in by_luck())),
            percent(max(max(totals) / rule - 1 for totals, rule in by_luck())),
            *(f"{end(means_by_luck()):.1f}" for end in (min, max)),
            f"{row('fig8', policy='oasis')['utility']:.1f}",
        ),
        lambda: math.isclose(
            fmean(rule for _, rule in by_luck()), row("fig8", policy="oasis")["utility"]
        ),
    ),
    holds(
        PAPER,
        "once as it was and ten times with all demands moved",
        lambda: {len(totals) for totals, _ in by_luck()} == {11},
    ),
]

# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    PAPER: {
        "Figs. 3, 4, 5, 6, 8 and 9": NAME,
        "HPDC 2004": NAME,
        "In Figs. 3 and 4 only the rows of OASiS": "which rows were run anew",
        "The code of before ran eleven times": "once and ten times, as the sentence says",
        "by up to a relative $10^{-12}$": "which runs were made",
    },
}
