"""Studies of this project's own choices, drawn like the figures of the papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.evaluation.policies import FLOOR
from experiments.figures.figure import (
    PublishedFigure,
    Row,
    groups,
    headings,
    interval,
    mark,
    means,
)
from experiments.figures.settings import FigureSettings, policy_label
from experiments.plotting.canvas import SMALL, label, line, marker, paper
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION

FIXED = ("the study has its own", "policies", "jobs", "servers")


TESTBED = {"preset": "testbed"}  # twelve jobs on nine machines, as in the paper's experiment


def calibrated(settings: FigureSettings, jobs: int, servers: int, horizon: int) -> dict[str, Any]:
    """Return grid axes of calibrated instances with as many worker as ps machines, scaled."""
    machines = settings.scaled(servers)
    return {
        "preset": "calibrated",
        "jobs": settings.scaled(jobs),
        "worker_servers": machines,
        "ps_servers": machines,
        "horizon": horizon,
    }


def family(cell: Row) -> str:
    """Return the name of the family of instances that a cell belongs to."""
    if cell["instance.preset"] == "testbed":
        return "testbed, 12 jobs"
    jobs, servers = int(cell["instance.jobs"]), int(cell["instance.worker_servers"])
    return f"T = {int(cell['instance.horizon'])}, {servers} + {servers} servers, {jobs} jobs"


# -- what the utility floor of OASiS earns, which chose its default (docs/floor) -------------------


FLOOR_TITLE = "The utility floor of OASiS"
FLOOR_SHOWN = headings("family = instances | floor | share = of the best floor | utility")
FLOORS = [0.0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def floor_grid(settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of OASiS with every utility floor on every family of instances."""
    settings.refuse(*FIXED)
    instances = [
        TESTBED,
        calibrated(settings, 20, 10, 20),
        calibrated(settings, 100, 50, 100),
        calibrated(settings, 100, 50, 300),
        calibrated(settings, 400, 50, 300),
    ]
    return settings.grid(instances, [settings.oasis(**{FLOOR: FLOORS})], name="run")


def floor_table(cells: Sequence[Row], _: FigureSettings) -> list[Row]:
    """Rows by family and floor: utility, and its share of the best floor's."""
    return [
        {
            "family": name,
            "floor": floor,
            "seeds": len(part),
            **means(part, "share", scale="fraction"),
            **interval([cell["total_utility"] for cell in part], "utility", "amount"),
        }
        for (name, floor), part in groups(shared(cells), "family", f"policy.{FLOOR}").items()
    ]


def shared(cells: Sequence[Row]) -> list[Row]:
    """Add family and share of the instance's highest utility to cells; drop cells without one."""
    named = [{**cell, "family": family(cell)} for cell in cells]
    best = {
        place: max(cell["total_utility"] for cell in part)
        for place, part in groups(named, "family", "seed").items()
    }
    return [
        {**cell, "share": cell["total_utility"] / most}
        for cell in named
        # Where nothing is earned, there is no share.
        if (most := best[cell["family"], cell["seed"]]) > 0
    ]


def draw_floor(rows: Sequence[Row], ax: Axes) -> None:
    """Draw the share over the floors, a line for each family, and mark the default."""
    for k, ((name,), part) in enumerate(groups(rows, "family").items()):
        # Side by side, so that the error bars of the five families do not cover each other.
        places = [row["floor"] + 0.004 * (k - 2) for row in part]
        look = {"linestyle": line(k), "color": None, "markersize": 4, "linewidth": 1.2}
        mark(ax, places, part, "share", k, times=100, **look, label=str(name))
    ax.axvline(DEFAULT_MIN_UTILITY_FRACTION, color="0.5", linewidth=0.8, label="the default")
    ax.set_ylim(0.0, 105.0)
    across = "utility floor (fraction of the job's best utility)"
    label(ax, across, "utility (% of the best floor's)", FLOOR_TITLE, 2)


# -- what promises cost (docs/commitment) ----------------------------------------------------------


COMMITMENT_TITLE = "What promises cost"
COMMITMENT_SHOWN = headings(
    "family = instances | policy | share = of the best policy | utility | wasted = work wasted | "
    "given_up = jobs given up after they ran"
)
BONUSES = [0.25, 1.0, 3.0]  # for jobs that have run, under no commitment


def commitment_grid(settings: FigureSettings) -> dict[str, Any]:
    """Return a sweep of OASiS, RRH, SRTF, and recourse at each commitment and bonus."""
    settings.refuse(*FIXED)
    instances = [TESTBED, calibrated(settings, 100, 20, 100)]
    policies: list[dict[str, Any]] = [
        settings.oasis(),
        {"name": "rrh"},
        {"name": "srtf"},
        {"name": "recourse", "commitment": ["arrival", "start"]},
        {"name": "recourse", "commitment": "none", "started_bonus": [0.0, *BONUSES]},
    ]
    return settings.grid(instances, policies, name="run")


def variant(cell: Row) -> str:
    """Return the policy's name with the option that varies."""
    name = str(cell["policy.name"])
    if name != "recourse":
        return policy_label(name, cell.get(f"policy.{FLOOR}"))
    commitment, bonus = cell["policy.commitment"], cell["policy.started_bonus"]
    if commitment != "none":
        return f"recourse, on {commitment}"
    return f"recourse, none, bonus {bonus:g}" if bonus else "recourse, none"


def commitment_table(cells: Sequence[Row], _: FigureSettings) -> list[Row]:
    """Rows by family and policy: share of the best utility, utility, and wasted work."""
    named = [{**cell, "policy": variant(cell)} for cell in shared(cells)]
    return [
        {
            "family": where,
            "policy": policy,
            "seeds": len(part),
            **means(part, "share", scale="fraction"),
            **interval([cell["total_utility"] for cell in part], "utility", "amount"),
            **interval([cell["wasted_share"] or 0.0 for cell in part], "wasted", "fraction"),
            **interval([cell["given_up_after_start"] for cell in part], "given_up", "amount"),
        }
        for (where, policy), part in groups(named, "family", "policy").items()
    ]


def draw_commitment(rows: Sequence[Row], ax: Axes) -> None:
    """Draw mean utility over wasted work for each policy in the congested family."""
    # The last family of the grid is the congested one.
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
            marker=marker(k),
            color="C0" if own else "0.4",
            markerfacecolor="C0" if own else paper(),
            capsize=3,
        )
        ax.annotate(str(row["policy"]), place, (6, 4), textcoords="offset points", fontsize=SMALL)
    ax.set_xlim(left=-1.0)
    ax.margins(x=0.18)
    ax.set_ylim(bottom=0.0)
    across = "work wasted on jobs that never finished (% of the work done)"
    label(ax, across, "total utility", f"{COMMITMENT_TITLE}: {where}")


FIGURES: tuple[PublishedFigure, ...] = (
    PublishedFigure(
        *("floor", FLOOR_TITLE, floor_table, FLOOR_SHOWN, (draw_floor,), floor_grid),
        size=(8.0, 5.0),
    ),
    PublishedFigure(
        *("commitment", COMMITMENT_TITLE, commitment_table, COMMITMENT_SHOWN, (draw_commitment,)),
        commitment_grid,
        size=(8.0, 5.2),
        seeds=10,
    ),
)
