"""Fig. 5: competitive ratio of OASiS, T = 10, 10 jobs, by servers and range of priorities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments.figures.figure import PublishedFigure, Row, groups, ratio
from experiments.figures.oasis.utility_bars import FIG5
from experiments.figures.settings import FigureSettings
from experiments.plotting.canvas import (
    MARKERS,
    axes,
    ink,
    legend_below,
    paper,
)
from oasis.model.errors import InputError

TITLE = "Fig. 5: competitive ratio of OASiS"
SHOWN = {
    "worker_servers": "workers",
    "ps_servers": "PSs",
    "priority": "gamma1",
    "proven": "proven",
    "ratios": "ratios",
    "ratio": "geometric mean",
    "median": "median",
    "largest": "largest",
}
SERVERS = ((2, 1), (4, 2), (5, 4), (6, 6))  # worker and PS servers: 3, 6, 9, 12 in total
PRIORITIES = ([75.0, 100.0], [50.0, 100.0], [25.0, 100.0], [1.0, 100.0])


def grid(settings: FigureSettings) -> dict[str, Any]:
    """OASiS and the optimum on every number of servers and range of gamma1.

    Raises
    ------
    ValueError
        If the settings ask for other machines or policies.
    """
    for name in ("servers", "policies"):
        if getattr(settings, name) is not None:
            raise InputError(name, "expected none, Fig. 5 varies its own")
    instances = [
        {
            "preset": settings.preset,
            "jobs": settings.job_counts((10,)),
            "worker_servers": workers,
            "ps_servers": ps,
            "horizon": 10,
            "priority": list(PRIORITIES),
        }
        for workers, ps in SERVERS
    ]
    task = {"name": "ratio", **settings.limits()}
    return settings.grid(instances, [settings.oasis()], **task)


def table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Ratios over seeds: geometric mean, its 95 % interval of the logarithms from 1 on, and median.

    ``ratios`` counts the seeds that have one: where OASiS earned nothing there is none, be it
    that nobody can earn anything (``nothing_to_earn``) or that only OASiS did not.
    """
    rows = []
    keys = ("instance.worker_servers", "instance.ps_servers", "instance.priority")
    for (workers, ps, _), part in groups(cells, *keys).items():
        low, high = part[0]["instance.priority"]
        ratios = [cell["ratio"] for cell in part if cell["ratio"] is not None]
        row: Row = {"worker_servers": workers, "ps_servers": ps}
        row |= {"priority_low": low, "priority_high": high, "seeds": len(part)}
        row["proven"] = sum(bool(cell["proven"]) for cell in part)
        row["nothing_to_earn"] = sum(cell["offline_upper_bound"] == 0 for cell in part)
        row["ratios"] = len(ratios)
        row |= ratio(ratios, "ratio")
        row["median"] = float(np.median(ratios)) if ratios else None
        row |= {"smallest": min(ratios, default=None), "largest": max(ratios, default=None)}
        ends = FIG5 if settings.full_size else (None, None)
        rows.append(row | dict(zip(("published_low", "published_high"), ends, strict=True)))
    return rows


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Geometric means with their intervals, medians, the smallest and the largest ratio."""
    ax = axes(ax, 9.0, 4.8)
    ranges = list(dict.fromkeys((row["priority_low"], row["priority_high"]) for row in rows))
    sizes = list(dict.fromkeys((row["worker_servers"], row["ps_servers"]) for row in rows))
    known = [row for row in rows if row["published_low"] is not None]
    if known:
        ends = known[0]["published_low"], known[0]["published_high"]
        ax.axhspan(*ends, facecolor="0.88", edgecolor="0.6", label="published range", zorder=0)
    for row in rows:
        k = ranges.index((row["priority_low"], row["priority_high"]))
        place = sizes.index((row["worker_servers"], row["ps_servers"])) + 0.18 * (k - 1.5)
        if row["ratios"]:
            _mark(ax, row, place, MARKERS[k])
    for k, (low, high) in enumerate(ranges):
        label = f"$\\gamma_1$ in [{low:g}, {high:g}]"
        ax.plot([], [], MARKERS[k], color=ink(), markerfacecolor=paper(), label=label)
    ax.plot([], [], "-", color=ink(), linewidth=2, label="95 % interval of the geometric mean")
    ax.plot([], [], "x", color=ink(), markersize=5, label="median")
    ax.plot([], [], "_", color="0.35", markersize=7, label="smallest, largest")
    ax.axhline(1.0, color="0.6", linewidth=0.8)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    names = [f"{workers + ps} ({workers} + {ps})" for workers, ps in sizes]
    ax.set_xticks(range(len(sizes)), names)
    ax.set_xlabel("servers (count: worker servers + parameter-server hosts)")
    ax.set_ylabel("offline optimum / OASiS (no unit)")
    ax.set_title(TITLE)
    legend_below(ax, 4)
    return ax


def _mark(ax: Axes, row: Row, place: float, marker: str) -> None:
    ends = [row["smallest"], row["largest"]]
    ax.plot([place] * 2, ends, "_:", color="0.35", markersize=7, linewidth=0.8)
    if row["ratio_low"] is not None:
        span = [row["ratio_low"], row["ratio_high"]]
        ax.plot([place] * 2, span, "-", color=ink(), linewidth=2)
    ax.plot(place, row["ratio"], marker, color=ink(), markerfacecolor=paper(), zorder=3)
    ax.plot(place, row["median"], "x", color=ink(), markersize=5, zorder=4)


FIGURE = PublishedFigure("fig5", TITLE, grid, table, SHOWN, (draw,), (9.0, 4.8), seeds=20)
