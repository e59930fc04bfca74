"""Fig. 4: how well targets are met, 100 time-sensitive and 100 time-critical jobs, T = 100."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import PublishedFigure, Row
from experiments.figures.oasis.lateness_boxes import Kinds, draw_lateness, lateness_rows
from experiments.figures.oasis.utility_bars import FIG4
from experiments.figures.settings import FigureSettings

TITLE = "Fig. 4: completion minus target"
SHOWN = {
    "policy": "policy",
    "kind": "kind",
    "finished": "ended",
    "median": "median",
    "seed_median": "by seed",
    "published": "published",
}
CRITICAL = 4.0  # gamma2 from which a job is time-critical
KINDS: Kinds = {
    "time-sensitive": lambda decay: 0 < decay < CRITICAL,
    "time-critical": lambda decay: decay >= CRITICAL,
}


def grid(settings: FigureSettings) -> dict[str, Any]:
    """Every policy on half time-sensitive, half time-critical jobs."""
    instances = {
        "preset": settings.preset,
        "jobs": settings.job_counts((200,)),
        "mix": [0.0, 0.5, 0.5],
        **settings.machines(),
        "horizon": 100,
    }
    return settings.grid([instances], settings.compared(), name="lateness")


def table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Quantiles of completion minus target by policy and kind of job."""
    return lateness_rows(cells, KINDS, lambda name: FIG4.get(name) if settings.full_size else None)


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Boxes by policy."""
    ax = draw_lateness(rows, ax)
    ax.set_title(TITLE)
    return ax


FIGURE = PublishedFigure("fig4", TITLE, grid, table, SHOWN, (draw,), (9.0, 7.6), seeds=5)
