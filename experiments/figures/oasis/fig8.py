"""Fig. 8: total utility on the testbed, 12 jobs, 7 + 2 machines, 10 slots of 20 minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from experiments.figures.figure import PublishedFigure, Row
from experiments.figures.oasis.fig3 import SHOWN
from experiments.figures.oasis.utility_bars import FIG8, draw_utilities, utility_rows
from experiments.figures.settings import FigureSettings
from oasis.model.errors import InputError

TITLE = "Fig. 8: total utility on the testbed"
JOBS = 12
TESTBED = "testbed"


def instances(settings: FigureSettings) -> dict[str, Any]:
    """The testbed, which has a preset and machines of its own.

    Raises
    ------
    ValueError
        If the settings ask for others.
    """
    for name, value, own in (
        ("preset", settings.preset, TESTBED),
        ("servers", settings.servers, None),
    ):
        if value != own:
            raise InputError(name, "expected none, the testbed has its own", value)
    return {"preset": TESTBED, "jobs": settings.job_counts((JOBS,))}


def grid(settings: FigureSettings) -> dict[str, Any]:
    """Every policy on the testbed."""
    return settings.grid([instances(settings)], settings.compared(), name="run")


def table(cells: Sequence[Row], settings: FigureSettings) -> list[Row]:
    """Mean total utility over seeds; ``first`` counts the seeds on which the policy earned most."""

    def published(policy: str, jobs: int) -> float | None:
        return FIG8.get(policy) if settings.full_size and jobs == JOBS else None

    return utility_rows(cells, published)


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Bars by policy."""
    ax = draw_utilities(rows, ax)
    ax.set_title(TITLE)
    return ax


FIGURE = PublishedFigure(
    "fig8", TITLE, grid, table, SHOWN, (draw,), (7.0, 4.4), seeds=20, preset=TESTBED
)
