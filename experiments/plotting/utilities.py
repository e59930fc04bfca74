"""Utilities by delay, and the completion of each job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from experiments.plotting.canvas import (
    MOST_COLUMNS,
    axes,
    colour,
    ink,
    legend_below,
    line,
    shorten,
    step_of,
)
from experiments.plotting.schedule import by_class
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.model.utility import Utility

MOST_NAMED = 6  # curves that can be told apart
TOO_MANY = 40  # curves from which they would smear, and classes have a median and a band
MOST_DOTS = 200
FAR = 10.0  # times as far as the curves: how late completions are drawn on a logarithmic axis
_CLASSES = ":\nmedian, middle half of a class"


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
        than 40, each class, as in `plot_schedule`, has the median of its curves and a band with the
        middle half of them; of more than 200 that completed, only every n-th has a dot, and the
        legend says how many.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_utilities(instance, run.schedules).get_ylabel()
    'utility'
    """
    ax = axes(ax)
    done = [job for job in instance.jobs if schedules and job.id in schedules]
    ended = {job.id: schedules[job.id].completion - job.arrival for job in done if schedules}
    best = max([float(job.utility(0)) for job in instance.jobs], default=0.0)
    if len(instance.jobs) > TOO_MANY:
        reach = _draw_classes(ax, instance)
    else:
        reach = _draw_curves(ax, instance)
    if done:
        _draw_dots(ax, done, ended)
    _delay_axis(ax, reach, max([reach, *ended.values()]))
    ax.set_ylim(0.0, 1.05 * best or 1.0)
    is_crowded = len(instance.jobs) > TOO_MANY
    ax.set(ylabel="utility", title="Utility by completion" + (_CLASSES if is_crowded else ""))
    legend_below(ax, 1 if is_crowded else 4)
    return ax


def _delay_axis(ax: Axes, reach: float, last: float) -> None:
    """Delays in slots; logarithmic beyond `reach`, where the curves end, if much lies there."""
    label = "completion after arrival (slots)"
    if last > FAR * reach:
        digit = 10.0 ** math.floor(math.log10(reach))
        begin = digit * math.ceil(reach / digit)
        ax.set_xscale("symlog", linthresh=begin)
        ax.xaxis.set_major_formatter("{x:g}")
        label = f"slots after arrival (logarithmic from {begin:g})"
    else:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.set_xlim(-0.5, last + 0.5)
    ax.set_xlabel(label)


def _draw_curves(ax: Axes, instance: Instance) -> float:
    """Draw a line for each job; return the delay up to which they are of interest."""
    curves = [curve(job.utility, instance.horizon - job.arrival) for job in instance.jobs]
    if len(curves) <= MOST_NAMED:
        for k, (job, points) in enumerate(zip(instance.jobs, curves, strict=True)):
            ax.plot(*points.T, linestyle=line(k), color=ink(), label=shorten(job.id))
    else:
        thin = LineCollection(curves, colors="0.6", linewidths=0.6, label="utility of a job")
        ax.add_collection(thin)
    return _interesting(curves)


def _draw_classes(ax: Axes, instance: Instance) -> float:
    """Draw median and middle half of each class; return the delay up to which they matter."""
    dense = min(instance.horizon, MOST_COLUMNS)  # each slot where curves fall, fewer later on
    later = np.geomspace(dense, instance.horizon, MOST_COLUMNS).astype(np.int64)
    delays = np.unique(np.append(np.arange(dense), np.minimum(later, instance.horizon - 1)))
    medians = []
    for k, (name, jobs) in enumerate(by_class(instance.jobs).items()):
        values = np.array([job.utility(delays) for job in jobs])
        low, median, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
        label = f"{name}, {len(jobs):,} jobs"
        ax.fill_between(delays, low, high, color=colour(k), alpha=0.25, linewidth=0.0)
        ax.plot(delays, median, linestyle=line(k), color=colour(k), label=label, lw=1.8)
        if high[0] > high[-1]:  # a class that does not mind waiting looks the same everywhere
            medians.append(np.column_stack([delays, median]))
    return max((_interesting([points]) for points in medians), default=1.0)


def _draw_dots(ax: Axes, done: Sequence[Job], ended: Mapping[str, int]) -> None:
    """Mark completions; with many jobs only every n-th."""
    shown = done[:: step_of(len(done), MOST_DOTS)]
    label = "completed"
    if len(shown) < len(done):
        label = f"completed: {len(shown):,} of {len(done):,} jobs shown"
    delays = [ended[job.id] for job in shown]
    values = [float(job.utility(ended[job.id])) for job in shown]
    size = 3.5 if len(done) <= TOO_MANY else 2.0
    ax.plot(delays, values, "o", color=ink(), markersize=size, label=label, zorder=3)


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
