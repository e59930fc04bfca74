"""What the utility floor of OASiS earns: the study that chose its default (docs/floor)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.evaluation.policies import FLOOR
from experiments.figures.figure import PublishedFigure, Row, amount, fraction, groups, half_widths
from experiments.figures.settings import FigureSettings
from experiments.figures.studies.families import calibrated, family, refuse_what_is_fixed, testbed
from experiments.plotting.canvas import LINES, MARKERS, axes, legend_below
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION

TITLE = "The utility floor of OASiS"
SHOWN = {
    "family": "instances",
    "floor": "floor",
    "share": "of the best floor",
    "utility": "utility",
}
FLOORS = [0.0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]


def grid(settings: FigureSettings) -> dict[str, Any]:
    """OASiS with every floor on every family.

    Raises
    ------
    ValueError
        If the settings ask for other policies or sizes.
    """
    refuse_what_is_fixed(settings)
    instances = [
        testbed(),
        calibrated(settings, 20, 10, 20),
        calibrated(settings, 100, 50, 100),
        calibrated(settings, 100, 50, 300),
        calibrated(settings, 400, 50, 300),
    ]
    return settings.grid(instances, [settings.oasis(**{FLOOR: FLOORS})], name="run")


def table(cells: Sequence[Row], _: FigureSettings) -> list[Row]:
    """Utility, and its share of what the best floor earned on the same instance."""
    places = [(family(cell), cell["seed"]) for cell in cells]
    best: dict[tuple[str, Any], float] = {}
    for place, cell in zip(places, cells, strict=True):
        best[place] = max(best.get(place, 0.0), cell["total_utility"])
    named = [
        {**cell, "family": place[0], "share": cell["total_utility"] / best[place]}
        for place, cell in zip(places, cells, strict=True)
        if best[place] > 0
    ]
    return [
        {
            "family": name,
            "floor": floor,
            "seeds": len(part),
            **fraction([cell["share"] for cell in part], "share"),
            **amount([cell["total_utility"] for cell in part], "utility"),
        }
        for (name, floor), part in groups(named, "family", f"policy.{FLOOR}").items()
    ]


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """A line for each family over the floors, with 95 % intervals, and the default."""
    ax = axes(ax, 8.0, 4.8)
    for k, ((name,), part) in enumerate(groups(rows, "family").items()):
        ax.errorbar(
            [row["floor"] + 0.004 * (k - 2) for row in part],
            [100 * row["share"] for row in part],
            yerr=[[100 * length for length in side] for side in half_widths(part, "share")],
            linestyle=LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            markersize=4,
            capsize=2,
            linewidth=1.2,
            label=str(name),
        )
    ax.axvline(DEFAULT_MIN_UTILITY_FRACTION, color="0.5", linewidth=0.8, label="the default")
    ax.set_ylim(0.0, 105.0)
    ax.set_xlabel("utility floor (fraction of the job's best utility)")
    ax.set_ylabel("utility (% of the best floor's)")
    ax.set_title(TITLE)
    legend_below(ax, 2)
    return ax


FIGURE = PublishedFigure("floor", TITLE, grid, table, SHOWN, (draw,), (8.0, 5.0), seeds=5)
