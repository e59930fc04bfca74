"""What finishing later is worth, and where each job ended."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from experiments.plotting.canvas import LINES, axes, legend_below, shorten
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.model.utility import Utility

MOST_NAMED = 6  # curves that can be told apart


def plot_utilities(
    instance: Instance,
    schedules: Mapping[str, Schedule] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Utility f_i over the delay of each job, with a dot where the job completed.

    Parameters
    ----------
    instance : Instance
        The problem; curves are drawn at whole delays, up to the horizon.
    schedules : mapping of str to Schedule, optional
        By job id.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture. A few jobs have a line style and a name each, many are thin lines.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_utilities(instance, run.schedules).get_ylabel()
    'utility'
    """
    ax = axes(ax)
    curves = [curve(job.utility, instance.horizon - job.arrival) for job in instance.jobs]
    if len(curves) <= MOST_NAMED:
        for job, points, style in zip(instance.jobs, curves, LINES, strict=False):
            ax.plot(*points.T, linestyle=style, color="black", label=shorten(job.id))
    else:
        thin = LineCollection(curves, colors="0.6", linewidths=0.6, label="utility of a job")
        ax.add_collection(thin)
    delays, values = [], []
    for job in instance.jobs:
        if schedules and job.id in schedules:
            delay = schedules[job.id].completion - job.arrival
            delays.append(delay)
            values.append(float(job.utility(delay)))
    if delays:
        ax.plot(delays, values, "o", color="black", markersize=3.5, label="completed", zorder=3)
    ax.set_xlim(-0.5, max([_interesting(curves), *delays]) + 0.5)
    ax.set_ylim(0.0, 1.05 * max([points[0, 1] for points in curves], default=0.0) or 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.set_xlabel("completion after arrival (slots)")
    ax.set_ylabel("utility")
    ax.set_title("Utility by completion")
    if curves:
        legend_below(ax, 4)
    return ax


def curve(utility: Utility, slots: int) -> FloatArray:
    """Points (delay, utility) at delays 0 .. `slots` - 1, shape (slots, 2)."""
    delays = np.arange(slots, dtype=np.float64)
    return np.column_stack([delays, utility(delays)])


def _interesting(curves: list[FloatArray]) -> float:
    """The delay from which nine of ten curves change by less than 1 % of their best value."""
    ends = [1.0]
    for points in curves:
        moving = points[:, 1] - points[-1, 1] > 0.01 * points[0, 1]
        ends.append(float(np.count_nonzero(moving)))
    return float(np.quantile(ends, 0.9))
