"""Means over seeds with their intervals: what a sweep has found at each point of its grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.evaluation.comparison import OF_FINISHED
from experiments.evaluation.intervals import scale_of
from experiments.evaluation.tables import brief
from experiments.plotting.canvas import SMALL, as_written, axes, ink, new_figure

Mean = Mapping[str, float | None]
Points = Sequence[tuple[str, Mean]]
MOST_POINTS = 40  # rows that can be told apart
LONGEST_NAME = 48
MANY_TIMES = (
    10.0  # the largest mean of a ratio over the smallest, from which the axis is one of logs
)


def plot_means(means: Points, figure: str, *, ax: Axes | None = None) -> Axes:
    """A dot for the mean at each point of a grid, and a bar for its interval.

    Parameters
    ----------
    means : sequence of (str, mapping)
        Name of each point, and its ``mean``, ``low`` and ``high``; None for what there is not.
        ``unfinished``, where it is given, is the mean number of jobs that did not finish there.
    figure : str
        What they are means of, such as ``total_utility``.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the first 40 points from top to bottom; the title says if there are more. A point
        without a mean has no dot. A completion time is one of the finished jobs only: beside
        each point is how many others there were.

    Examples
    --------
    >>> found = [("fifo", {"mean": 3.0, "low": 2.0, "high": 4.0})]
    >>> plot_means(found, "mean_completion").get_xlabel()
    'mean completion of the jobs that finished'
    """
    shown = means[:MOST_POINTS]
    ax = axes(ax, 6.4, 1.2 + 0.28 * max(2, len(shown)))
    for row, (_, found) in enumerate(shown):
        mean, low, high = found["mean"], found["low"], found["high"]
        left = found.get("unfinished") if figure in OF_FINISHED else None
        if left:
            ax.annotate(
                f"{brief(left)} unfinished",
                (1.0, row),
                (4, 0),
                ("axes fraction", "data"),
                "offset points",
                va="center",
                fontsize=SMALL,
            )
        if mean is None or not math.isfinite(mean):
            continue
        if low is not None and high is not None:
            ax.plot([low, high], [row, row], "-|", color=ink(), linewidth=1.2, markersize=6)
        ax.plot([mean], [row], "o", color=ink(), markersize=4.5)
    known = [mean for _, found in shown if (mean := found["mean"]) is not None and mean > 0]
    if scale_of(figure) == "ratio" and known and max(known) > MANY_TIMES * min(known):
        ax.set_xscale("log")
    name = figure.replace("_", " ")
    more = f", first {len(shown)} of {len(means):,}" if len(shown) < len(means) else ""
    ax.set_yticks(range(len(shown)), [_name(point) for point, _ in shown], fontsize=SMALL)
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    ax.grid(axis="y", color="0.9", linewidth=0.6)
    ax.set_ylabel("point of the grid")
    ax.set_xlabel(f"{name} of the jobs that finished" if figure in OF_FINISHED else name)
    ax.set_title(f"{name}: mean and 95 % interval{more}")
    return ax


def means_page(means: Mapping[str, Points]) -> Figure:
    """A panel for each figure, one below the other: what a report shows of a sweep.

    Parameters
    ----------
    means : mapping
        By name of the figure, what `plot_means` takes.
    """
    rows = min(MOST_POINTS, max((len(points) for points in means.values()), default=0))
    height = 1.2 + 0.28 * max(2, rows)
    page = new_figure(9.0, height * max(1, len(means)))
    for place, (figure, points) in zip(
        page.subplots(len(means), 1, squeeze=False)[:, 0], means.items(), strict=True
    ):
        plot_means(points, figure, ax=place)
    return page


def _name(point: str) -> str:
    short = point if len(point) <= LONGEST_NAME else point[: LONGEST_NAME - 1] + "…"
    return as_written(short)
