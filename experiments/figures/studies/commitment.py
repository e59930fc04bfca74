"""What promises cost: utility and wasted work of recourse at each commitment (docs/commitment)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.evaluation.policies import FLOOR, PAPER_FLOOR
from experiments.figures.figure import PublishedFigure, Row, amount, fraction, groups
from experiments.figures.settings import FigureSettings
from experiments.figures.studies.families import calibrated, family, refuse_what_is_fixed, testbed
from experiments.plotting.canvas import MARKERS, SMALL, axes, paper
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION

TITLE = "What promises cost"
SHOWN = {
    "family": "instances",
    "policy": "policy",
    "share": "of the best policy",
    "utility": "utility",
    "wasted": "work wasted",
    "given_up": "jobs given up after they ran",
}
BONUSES = [0.25, 1.0, 3.0]  # for jobs that have run, under no commitment


def grid(settings: FigureSettings) -> dict[str, Any]:
    """OASiS, RRH, SRTF, and recourse at each commitment and bonus.

    Raises
    ------
    ValueError
        If the settings ask for other policies or sizes.
    """
    refuse_what_is_fixed(settings)
    instances = [testbed(), calibrated(settings, 100, 20, 100)]
    policies: list[dict[str, Any]] = [
        {"name": "oasis", FLOOR: [PAPER_FLOOR, DEFAULT_MIN_UTILITY_FRACTION]},
        {"name": "rrh"},
        {"name": "srtf"},
        {"name": "recourse", "commitment": ["arrival", "start"]},
        {"name": "recourse", "commitment": "none", "started_bonus": [0.0, *BONUSES]},
    ]
    return settings.grid(instances, policies, name="run")


def label(cell: Row) -> str:
    """Name of the policy of a cell, with the option that tells it from its like."""
    name = str(cell["policy.name"])
    if name == "oasis":
        return f"oasis, floor {cell[f'policy.{FLOOR}']:g}"
    if name != "recourse":
        return name
    commitment, bonus = cell["policy.commitment"], cell["policy.started_bonus"]
    if commitment != "none":
        return f"recourse, on {commitment}"
    return f"recourse, none, bonus {bonus:g}" if bonus else "recourse, none"


def table(cells: Sequence[Row], _: FigureSettings) -> list[Row]:
    """Means over seeds; the share is of what the best policy earned on the same instance."""
    named = [{**cell, "family": family(cell), "policy": label(cell)} for cell in cells]
    best = {
        key: max(cell["total_utility"] for cell in part)
        for key, part in groups(named, "family", "seed").items()
    }
    rows = []
    for (where, policy), part in groups(named, "family", "policy").items():
        shares = [cell["total_utility"] / best[where, cell["seed"]] for cell in part]
        rows.append(
            {
                "family": where,
                "policy": policy,
                "seeds": len(part),
                **fraction(shares, "share"),
                **amount([cell["total_utility"] for cell in part], "utility"),
                **fraction([cell["wasted_share"] or 0.0 for cell in part], "wasted"),
                **amount([cell["given_up_after_start"] for cell in part], "given_up"),
            }
        )
    return rows


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Utility against wasted work, the mean of each policy in the congested family."""
    ax = axes(ax, 8.0, 5.2)
    where = rows[-1]["family"]
    for k, row in enumerate(row for row in rows if row["family"] == where):
        place = (100 * row["wasted"], row["utility"])
        low, high = row["utility_low"], row["utility_high"]
        bars = None if low is None else [[row["utility"] - low], [high - row["utility"]]]
        own = str(row["policy"]).startswith("recourse")
        ax.errorbar(
            [place[0]],
            [place[1]],
            yerr=bars,
            marker=MARKERS[k % len(MARKERS)],
            color="C0" if own else "0.4",
            markerfacecolor="C0" if own else paper(),
            capsize=3,
        )
        ax.annotate(str(row["policy"]), place, (6, 4), textcoords="offset points", fontsize=SMALL)
    ax.set_xlim(left=-1.0)
    ax.margins(x=0.18)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("work wasted on jobs that never finished (% of the work done)")
    ax.set_ylabel("total utility")
    ax.set_title(f"{TITLE}: {where}")
    return ax


FIGURE = PublishedFigure("commitment", TITLE, grid, table, SHOWN, (draw,), (8.0, 5.2), seeds=10)
