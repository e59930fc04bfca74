"""Utilities by delay, and the completion of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from experiments.plotting.canvas import axes, ink, legend_below, line, shorten, step_of
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.model.utility import Utility

MOST_NAMED = 6  # curves that can be told apart
MOST_CURVES = 100  # beyond which they would smear
MOST_DOTS = 200


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
        Schedules by job id.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture. A few jobs have a line style and a name each, many are thin lines. Of more
        than 100 jobs only every n-th has a curve, of more than 200 that completed only every n-th a
        dot, and the legend says how many.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_utilities(instance, run.schedules).get_ylabel()
    'utility'
    """
    ax, jobs = axes(ax), instance.jobs
    shown = jobs[:: step_of(len(jobs), MOST_CURVES)]
    curves = [curve(job.utility, instance.horizon - job.arrival) for job in shown]
    if len(curves) <= MOST_NAMED:
        for k, (job, points) in enumerate(zip(shown, curves, strict=True)):
            ax.plot(*points.T, linestyle=line(k), color=ink(), label=shorten(job.id))
    else:
        name = _named("utility of a job", len(shown), len(jobs))
        ax.add_collection(LineCollection(curves, colors="0.6", linewidths=0.6, label=name))
    plans = schedules or {}
    ended = [(plans[j.id].completion - j.arrival, j) for j in jobs if j.id in plans]
    dots = ended[:: step_of(len(ended), MOST_DOTS)]
    if dots:
        delays, values = zip(*((d, float(job.utility(d))) for d, job in dots), strict=True)
        name = _named("completed", len(dots), len(ended))
        ax.plot(delays, values, "o", color=ink(), markersize=3.5, label=name, zorder=3)
    last = max([_interesting(curves), *(delay for delay, _ in ended)])
    best = max([float(job.utility(0)) for job in jobs], default=0.0)
    ax.set(xlim=(-0.5, last + 0.5), ylim=(0.0, 1.05 * best or 1.0))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    across = "completion after arrival (slots)"
    ax.set(xlabel=across, ylabel="utility", title="Utility by completion")
    legend_below(ax, 4 if len(curves) <= MOST_NAMED else 1)
    return ax


def _named(what: str, shown: int, there: int) -> str:
    return what if shown == there else f"{what}: {shown:,} of {there:,} jobs shown"


def curve(utility: Utility, slots: int) -> FloatArray:
    """Points (delay, utility) at delays 0 .. `slots` - 1, shape (slots, 2)."""
    delays = np.arange(slots, dtype=np.float64)
    return np.column_stack([delays, utility(delays)])


def _interesting(curves: Sequence[FloatArray]) -> float:
    """The delay from which nine of ten curves change by less than 1 % of their maximum."""
    ends = [1.0]
    for points in curves:
        moving = points[:, 1] - points[-1, 1] > 0.01 * points[0, 1]
        last = min(int(np.count_nonzero(moving)), len(points) - 1)
        ends.append(float(points[last, 0]) if len(points) > 1 else 1.0)
    # Nine of ten: one job that falls very late must not press all the others together.
    return float(np.quantile(ends, 0.9))
