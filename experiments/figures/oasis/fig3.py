"""Fig. 3: total utility of every policy at 100 to 400 jobs, T = 300, 50 + 50 servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import PublishedFigure, Row
from experiments.figures.oasis.utility_bars import FIG3, draw_utilities, utility_rows
from experiments.figures.settings import FigureSettings

TITLE = "Fig. 3: total utility"
SHOWN = {
    "jobs": "jobs",
    "policy": "policy",
    "utility": "total utility",
    "published": "published",
    "first": "first",
    "admitted": "admitted",
    "finished": "finished",
}


def grid(settings: FigureSettings) -> dict[str, Any]:
    """Every policy at every number of jobs."""
    instances = {
        "preset": settings.preset,
        "jobs": settings.job_counts((100, 200, 300, 400)),
        **settings.machines(),
        "horizon": 300,
    }
    return settings.grid([instances], settings.compared(), name="run")


def table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Mean total utility over seeds; ``first`` counts the seeds on which the policy earned most."""

    def published(policy: str, jobs: int) -> float | None:
        return FIG3.get(policy, {}).get(jobs) if settings.full_size else None

    return utility_rows(cells, published)


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Bars by number of jobs."""
    ax = draw_utilities(rows, ax)
    ax.set_title(TITLE)
    return ax


FIGURE = PublishedFigure("fig3", TITLE, grid, table, SHOWN, (draw,), (10.0, 4.8), seeds=5)
