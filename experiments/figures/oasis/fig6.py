"""Fig. 6: OASiS with U/L at 20 % to 1000 % of its true value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import PublishedFigure, Row, amount, groups, half_widths
from experiments.figures.oasis.utility_bars import FIG6
from experiments.figures.settings import FigureSettings
from experiments.plotting.canvas import (
    LINES,
    MARKERS,
    axes,
    ink,
    legend_below,
    paper,
)
from oasis.model.errors import InputError

TITLE = "Fig. 6: OASiS with misjudged U/L"
SHOWN = {
    "jobs": "jobs",
    "scale": "U/L",
    "alpha": "alpha",
    "utility": "total utility",
    "relative": "over 100 %",
    "published": "published",
}
PUBLISHED_JOBS = 400


def grid(settings: FigureSettings) -> dict[str, Any]:
    """OASiS with every factor at every number of jobs.

    Raises
    ------
    ValueError
        If the settings ask for other policies.
    """
    if settings.policies is not None:
        raise InputError("policies", "expected none, Fig. 6 is of OASiS alone")
    instances = {
        "preset": settings.preset,
        "jobs": settings.job_counts((100, 200, 300, PUBLISHED_JOBS)),
        **settings.machines(),
        "horizon": 300,
    }
    return settings.grid([instances], [settings.oasis(scale=list(FIG6))], name="run")


def table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Utility over seeds, and its ratio to that of the same seed at the true U/L."""
    true = {
        (cell["instance.jobs"], cell["seed"]): cell["total_utility"]
        for cell in cells
        if cell["policy.scale"] == 1.0
    }
    rows = []
    for (jobs, scale), part in groups(cells, "instance.jobs", "policy.scale").items():
        own = [cell["total_utility"] for cell in part]
        base = [true.get((jobs, cell["seed"])) for cell in part]
        row: Row = {"jobs": jobs, "scale": scale, "seeds": len(part)}
        row["alpha"] = amount([cell["alpha"] for cell in part], "alpha")["alpha"]
        row |= amount(own, "utility")
        row |= amount([a / b for a, b in zip(own, base, strict=True) if b], "relative")
        known = settings.full_size and jobs == PUBLISHED_JOBS
        row["published"] = FIG6.get(float(str(scale))) if known else None
        rows.append(row)
    return rows


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Total utility: a line for each number of jobs, 95 % intervals, and the published line."""
    ax = _lines(rows, "utility", axes(ax, 7.0, 4.8))
    known = [row for row in rows if row["published"] is not None]
    _published(ax, known, [row["published"] for row in known])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("total utility")
    ax.set_title(TITLE)
    legend_below(ax, 3)
    return ax


def draw_relative(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Utility over that of the same seeds at 100 %: what the factor alone does."""
    ax = _lines(rows, "relative", axes(ax, 7.0, 4.8))
    known = [row for row in rows if row["published"] is not None]
    true = [row["published"] for row in known if row["scale"] == 1.0]
    _published(ax, known, [row["published"] / true[0] for row in known])
    ax.axhline(1.0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_ylabel("utility / utility at 100 % (no unit)")
    ax.set_title("the same, relative to 100 %, seed by seed")
    legend_below(ax, 3)
    return ax


def _lines(rows: Sequence[Row], figure: str, ax: Axes) -> Axes:
    counts = list(dict.fromkeys(row["jobs"] for row in rows))
    for k, count in enumerate(counts):
        own = [row for row in rows if row["jobs"] == count and row[figure] is not None]
        beside = 1.05 ** (k - (len(counts) - 1) / 2)  # so that error bars do not cover each other
        ax.errorbar(
            [100 * row["scale"] * beside for row in own],
            [row[figure] for row in own],
            yerr=half_widths(own, figure),
            linestyle=LINES[k % len(LINES)],
            marker=MARKERS[k % len(MARKERS)],
            markerfacecolor=paper(),
            color=ink(),
            capsize=3,
            label=f"{count} jobs",
        )
    ax.set_xscale("log")
    ticks = sorted({100 * row["scale"] for row in rows})
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("U/L used (% of the true value)")
    return ax


def _published(ax: Axes, rows: Sequence[Row], values: Sequence[float]) -> None:
    if rows:
        label = f"published, {PUBLISHED_JOBS} jobs"
        places = [100 * row["scale"] for row in rows]
        ax.plot(places, values, ":", marker="x", color="0.3", linewidth=2, label=label)


FIGURE = PublishedFigure(
    "fig6", TITLE, grid, table, SHOWN, (draw, draw_relative), (7.0, 4.8), seeds=5
)
