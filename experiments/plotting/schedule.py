"""Which job runs when: a Gantt chart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator

from experiments.plotting.bands import bands_of, draw_bands
from experiments.plotting.canvas import (
    axes,
    colour_map,
    ink,
    label_rows,
    legend_below,
    slot_axis,
)
from experiments.plotting.classes import ClassOf, urgency
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.model.utility import Sigmoid

Bar = tuple[int, int, int]  # first slot, end, workers
FEWEST = 6  # rows, so that a single job is still a bar
MANY = 40  # jobs from which bars have no outlines and marks are small
TOO_MANY = 150  # jobs from which rows would be hairlines, and are bands by class


def plot_schedule(
    instance: Instance,
    schedules: Mapping[str, Schedule],
    *,
    class_of: ClassOf = urgency,
    ax: Axes | None = None,
) -> Axes:
    """Gantt chart: one row a job in order of arrival, darker where it has more workers.

    More than 150 jobs are drawn as bands by class instead, in which a row stands for several jobs
    that arrive one after the other; the label of the axis says how many.

    Parameters
    ----------
    instance : Instance
        The problem.
    schedules : mapping of str to Schedule
        By job id; jobs without one are marked at their arrival.
    class_of : callable, optional
        Class of a job by name, for bands; default how much it suffers from waiting, as in the
        paper's section V, or the kind of its utility.
    ax : Axes, optional
        Where to draw; left out, on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> plot_schedule(instance, run.schedules).get_xlabel()
    'time (slots)'
    """
    jobs = instance.jobs_by_arrival()
    ax = axes(ax, 8.0, min(10.0, 1.5 + 0.2 * max(8, len(jobs))))
    ax.set_title(f"Schedule: {len(schedules):,} of {len(jobs):,} jobs run to their end")
    if len(jobs) > TOO_MANY:
        draw_bands(ax, instance.horizon, *bands_of(instance, schedules, class_of))
        return ax
    bars = [
        (row, bar)
        for row, job in enumerate(jobs)
        if job.id in schedules
        for bar in bars_of(schedules[job.id])
    ]
    if bars:
        _draw(ax, bars, edge=len(jobs) <= MANY)
    _mark(ax, jobs, schedules)
    slot_axis(ax, instance.horizon)
    ax.set_ylim(max(len(jobs), FEWEST) - 0.5, -0.5)
    label_rows(ax, [job.id for job in jobs])
    ax.set_ylabel("job, in order of arrival")
    return ax


def bars_of(schedule: Schedule) -> list[Bar]:
    """Longest stretches of slots with one number of workers: (first slot, end, workers)."""
    slots, inverse = np.unique(schedule.workers[:, SLOT], return_inverse=True)
    counts = np.zeros(len(slots), dtype=np.int64)
    np.add.at(counts, inverse, schedule.workers[:, COUNT])
    bars = []
    pairs = list(zip(slots.tolist(), counts.tolist(), strict=True))
    for (_, count), part in groupby(
        enumerate(pairs), key=lambda entry: (entry[1][0] - entry[0], entry[1][1])
    ):
        stretch = [slot for _, (slot, _) in part]
        bars.append((stretch[0], stretch[-1] + 1, count))
    return bars


def _draw(ax: Axes, bars: list[tuple[int, Bar]], *, edge: bool) -> None:
    corners = [
        [(x - 0.5, row + y) for x, y in ((first, -0.4), (end, -0.4), (end, 0.4), (first, 0.4))]
        for row, (first, end, _) in bars
    ]
    workers = np.array([count for _, (_, _, count) in bars], dtype=np.float64)
    outline = "0.3" if edge else "face"
    collection = PolyCollection(
        corners, array=workers, cmap=colour_map(), edgecolors=outline, linewidths=0.5
    )
    collection.set_clim(0.0, workers.max())
    ax.add_collection(collection)
    ax.figure.colorbar(
        collection, ax=ax, label="workers (count)", ticks=MaxNLocator(6, integer=True)
    )


def _mark(ax: Axes, jobs: list[Job], schedules: Mapping[str, Schedule]) -> None:
    """Arrivals, targets, and the jobs that do not run to their end."""
    size = 5.0 if len(jobs) <= MANY else 2.0
    ran = [(job.arrival - 0.5, row) for row, job in enumerate(jobs) if job.id in schedules]
    out = [(job.arrival, row) for row, job in enumerate(jobs) if job.id not in schedules]
    target = [
        (job.arrival + job.utility.target, row)
        for row, job in enumerate(jobs)
        if job.id in schedules and isinstance(job.utility, Sigmoid) and job.utility.decay > 0
    ]
    spans = [(x, schedules[jobs[row].id].completion, row) for x, row in ran]
    if spans:
        begins, ends, rows = zip(*spans, strict=True)
        ax.hlines(rows, begins, ends, color="0.5", linewidth=0.6, zorder=0.9)
    for places, marker, clip, label in (
        (ran, ">", False, "arrival"),
        (target, "|", True, "target"),
        (out, "x", False, "arrival, rejected or unfinished"),
    ):
        if places:
            x, y = zip(*places, strict=True)
            ax.plot(x, y, marker, color=ink(), markersize=size, label=label, clip_on=clip, zorder=3)
    if jobs:
        legend_below(ax, 3)
