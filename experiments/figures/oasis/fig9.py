"""Fig. 9: how well targets are met on the testbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import PublishedFigure, Row
from experiments.figures.oasis.fig4 import SHOWN
from experiments.figures.oasis.fig8 import JOBS, TESTBED, instances
from experiments.figures.oasis.lateness_boxes import Kinds, draw_lateness, lateness_rows
from experiments.figures.oasis.utility_bars import FIG9
from experiments.figures.settings import FigureSettings

TITLE = "Fig. 9: completion minus target on the testbed"
KINDS: Kinds = {"all jobs": lambda decay: True}


def grid(settings: FigureSettings) -> dict[str, Any]:
    """Every policy on the testbed."""
    return settings.grid([instances(settings)], settings.compared(), name="lateness")


def table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Quantiles of completion minus target by policy."""
    known = settings.full_size and settings.jobs in (None, (JOBS,))

    def published(policy: str) -> tuple[float, float] | None:
        return (FIG9[policy],) * 2 if known and policy in FIG9 else None

    return lateness_rows(cells, KINDS, published)


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Boxes by policy."""
    ax = draw_lateness(rows, ax)
    ax.set_title(TITLE)
    return ax


FIGURE = PublishedFigure(
    "fig9", TITLE, grid, table, SHOWN, (draw,), (9.0, 4.8), seeds=20, preset=TESTBED
)
