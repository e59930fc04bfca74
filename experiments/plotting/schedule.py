"""Pictures of jobs: Gantt charts of schedules, quotes and plans of a cluster; utilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.plotting import canvas
from oasis.model.decision import Decision
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.model.utility import Sigmoid, Utility


def tasks_by_slot(rows: IntArray) -> IntArray:
    """Sum the counts of `rows` by slot; the array ends with the last slot that has any."""
    counts: IntArray = np.bincount(rows[:, SLOT], rows[:, COUNT]).astype(np.int64)
    return counts


Bar = tuple[int, int, int]  # first slot, end, workers
FEWEST = 6  # rows, so that a single job is still a bar
MANY = 40  # jobs from which bars have no outlines and marks are small
TOO_MANY = 150  # jobs from which bars and marks are an image also in an SVG: it would be huge
ON_TOP = 5.0  # above what is drawn


def plot_schedule(
    instance: Instance,
    schedules: Mapping[str, Schedule],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a Gantt chart: a row per job in order of arrival, darker with more workers.

    A job of several forms has the name of the one that runs behind its own.

    Parameters
    ----------
    instance : Instance
        The problem.
    schedules : mapping of str to Schedule
        By job id; jobs without one are marked at their arrival.
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
    ax = canvas.axes(ax, 8.0, min(10.0, 1.5 + 0.2 * max(8, len(jobs))))
    ax.set_title(f"Schedule: {len(schedules):,} of {len(jobs):,} jobs run to their end")
    if len(jobs) > TOO_MANY:
        ax.set_rasterization_zorder(ON_TOP)
    bars = [
        (row, bar)
        for row, job in enumerate(jobs)
        if job.id in schedules
        for bar in bars_of(schedules[job.id])
    ]
    if bars:
        _draw(ax, bars, edge=len(jobs) <= MANY)
    _mark(ax, jobs, schedules)
    canvas.slot_axis(ax, instance.horizon)
    ax.set_ylim(max(len(jobs), FEWEST) - 0.5, -0.5)
    canvas.label_rows(ax, [_row_name(job, schedules.get(job.id)) for job in jobs])
    ax.set_ylabel("job, in order of arrival")
    return ax


def _row_name(job: Job, schedule: Schedule | None) -> str:
    """Return the job's id and, of a job of several forms, the one that runs."""
    if schedule is None or len(job.in_forms) == 1:
        return job.id
    if job.speeds is not None:
        return f"{job.id}: {list(job.speeds.values)[schedule.form]}"
    required = job.forms[schedule.form].requires or {}
    kinds = "/".join(value for values in required.values() for value in values)
    return f"{job.id}: {kinds or f'form {schedule.form}'}"


def bars_of(schedule: Schedule) -> list[Bar]:
    """Return the longest stretches with a constant number of workers: (first, end, workers)."""
    counts = tasks_by_slot(schedule.workers)
    edges = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
    return [(first, end, int(counts[first])) for first, end in pairwise(edges) if counts[first]]


def _draw(ax: Axes, bars: list[tuple[int, Bar]], *, edge: bool) -> None:
    corners = [
        [(x - 0.5, row + y) for x, y in ((first, -0.4), (end, -0.4), (end, 0.4), (first, 0.4))]
        for row, (first, end, _) in bars
    ]
    workers = np.array([count for _, (_, _, count) in bars], dtype=np.float64)
    outline = "0.3" if edge else "face"
    look: dict[str, Any] = {"edgecolors": outline, "linewidths": 0.5}
    bodies = PolyCollection(corners, array=workers, cmap=canvas.colour_map(), **look)
    bodies.set_clim(0.0, workers.max())
    ax.add_collection(bodies)
    ticks = MaxNLocator(6, integer=True)
    ax.figure.colorbar(bodies, ax=ax, label="workers (count)", ticks=ticks)


def _mark(ax: Axes, jobs: list[Job], schedules: Mapping[str, Schedule]) -> None:
    """Mark arrivals, targets, and the jobs that are rejected or do not finish."""
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
    style: dict[str, Any] = {"color": canvas.ink(), "markersize": size, "zorder": 3}
    for places, marker, clip, name in (
        (ran, ">", False, "arrival"),
        (target, "|", True, "target"),
        (out, "x", False, "arrival, rejected or unfinished"),
    ):
        if places:
            x, y = zip(*places, strict=True)
            ax.plot(x, y, marker, label=name, clip_on=clip, **style)
    if jobs:
        canvas.legend_below(ax, 3)


ROW = 0.3  # inches of a job in the plan of a cluster
WIDTH = 8.0
LETTER = 0.075  # inches of a letter of a bar's label

NodeTasks = Mapping[str, tuple[int, int]]  # workers and parameter servers of a job on each node


def plot_cluster_plan(jobs: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the workers of each job in the next slots, and their nodes; `jobs` have a ``plan``."""
    figure = canvas.new_figure(WIDTH, 1.4 + ROW * max(3, len(jobs)))
    ax = figure.subplots()
    slots = [entry["slot"] for job in jobs for entry in job["plan"]]
    first, end = (min(slots), max(slots) + 1) if slots else (0, 1)
    letters = (WIDTH - 2.0) / LETTER / (end - first)  # that fit into a slot
    for row, job in enumerate(jobs):
        for begin, stop, tasks in _stretches(job["plan"]):
            bar = ax.barh(
                row, stop - begin, 0.8, left=begin, color=canvas.fill(3), edgecolor=canvas.ink()
            )
            per_node = (f"{_tasks(*counts)} on {node}" for node, counts in sorted(tasks.items()))
            texts = ", ".join(per_node), _tasks(*map(sum, zip(*tasks.values(), strict=True)))
            text = next((one for one in texts if len(one) <= letters * (stop - begin)), "")
            ax.bar_label(bar, [canvas.as_written(text)], label_type="center", fontsize=canvas.SMALL)
    ax.set_xlim(first, end)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    canvas.name_rows(ax, [canvas.shorten(job["job"]) for job in jobs], 3)
    title = "Plan: workers + parameter servers of each job, and their nodes"
    ax.set(xlabel="time (slots)", title=title)
    return figure


def _stretches(plan: Sequence[Mapping[str, Any]]) -> list[tuple[int, int, NodeTasks]]:
    """Return the longest stretches with constant tasks by node: (first slot, end, tasks)."""
    stretches: list[tuple[int, int, NodeTasks]] = []
    for entry in sorted(plan, key=lambda entry: int(entry["slot"])):
        workers, ps = entry.get("workers", {}), entry.get("parameterServers", {})
        tasks = {node: (workers.get(node, 0), ps.get(node, 0)) for node in (*workers, *ps)}
        begin = slot = entry["slot"]
        if stretches and stretches[-1][1:] == (slot, tasks):
            begin, _, _ = stretches.pop()
        stretches += [(begin, slot + 1, tasks)] if tasks else []
    return stretches


def _tasks(workers: int, servers: int) -> str:
    """Format workers and parameter servers as ``oasis kubernetes plan`` does."""
    return f"{workers}+{servers}" if servers else str(workers)


def plot_quote(decision: Decision, *, ax: Axes | None = None) -> Axes:
    """Draw an admitted job's tasks in each slot, or the utility that a rejected job needs."""
    ax = canvas.axes(ax, 7.0, 3.2)
    if decision.schedule is not None:
        return _draw_schedule(ax, decision)
    return _draw_rejection(ax, decision)


def _draw_schedule(ax: Axes, decision: Decision) -> Axes:
    assert decision.schedule is not None  # by the caller
    placed = [group for group in GROUPS if len(group.placed(decision.schedule))]
    for k, group in enumerate(placed):
        counts = tasks_by_slot(group.placed(decision.schedule))
        slots = np.flatnonzero(counts)
        places = slots - 0.2 + 0.4 * k
        ax.bar(places, counts[slots], 0.4, label=group.tasks, **canvas.bar_style(k, k + 1))
    ax.set_xlim(decision.schedule.start - 1.5, decision.schedule.completion + 1.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    title = (
        f"{canvas.as_written(decision.job_id)} would be admitted\n"
        f"utility {decision.utility:.4g}, cost {decision.cost:.4g}, payoff {decision.payoff:.4g}"
    )
    canvas.label(ax, "time (slots)", "count", title, 2)
    return ax


def _draw_rejection(ax: Axes, decision: Decision) -> Axes:
    rejection = decision.rejection
    title = f"{canvas.as_written(decision.job_id)} would be rejected"
    factor = None if rejection is None else rejection.utility_factor
    values = {"as it is": 1.0} if factor is None else {"as it is": 1.0, "would do": factor}
    for k, value in enumerate(values.values()):
        ax.barh(k, value, 0.6, **canvas.bar_style(k, k + 1))
        text = f" {value:.4g}" if k == 0 else f" more than {value:.4g}"
        ax.annotate(text, (value, k), va="center", fontsize=canvas.SMALL)
    if rejection is None:
        title += "\nthere is no schedule at any price"
    elif factor is None:
        title += "\nit is worth nothing when it could end"
    elif rejection.bottleneck is not None:
        spot = rejection.bottleneck
        place = f"{canvas.as_written(spot.resource)} of {TaskGroup(spot.group).hosts}"
        title += f"\n{100 * spot.share:.0f} % of what it would cost is for {place}"
    canvas.name_rows(ax, list(values))
    ax.margins(x=0.25)
    ax.set(xlabel="multiple of its own utility", ylabel="worth", title=title)
    return ax


MOST_NAMED = 6  # curves that can be told apart
MOST_CURVES = 100  # beyond which they would smear
MOST_DOTS = 200


def plot_utilities(
    instance: Instance,
    schedules: Mapping[str, Schedule] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the utility f_i over the delay of each job, with a dot where the job completed.

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
    ax, jobs = canvas.axes(ax), instance.jobs
    shown = jobs[:: canvas.step_of(len(jobs), MOST_CURVES)]
    curves = [curve(job.utility, instance.horizon - job.arrival) for job in shown]
    if len(curves) <= MOST_NAMED:
        for k, (job, points) in enumerate(zip(shown, curves, strict=True)):
            look: dict[str, Any] = {"linestyle": canvas.line(k), "color": canvas.ink()}
            ax.plot(*points.T, label=canvas.shorten(job.id), **look)
    else:
        name = _named("utility of a job", len(shown), len(jobs))
        ax.add_collection(LineCollection(curves, colors="0.6", linewidths=0.6, label=name))
    plans = schedules or {}
    ended = [(plans[j.id].completion - j.arrival, j) for j in jobs if j.id in plans]
    dots = ended[:: canvas.step_of(len(ended), MOST_DOTS)]
    if dots:
        delays, values = zip(*((d, float(job.utility(d))) for d, job in dots), strict=True)
        name = _named("completed", len(dots), len(ended))
        ax.plot(delays, values, "o", color=canvas.ink(), markersize=3.5, label=name, zorder=3)
    last = max([_interesting(curves), *(delay for delay, _ in ended)])
    best = max([float(job.utility(0)) for job in jobs], default=0.0)
    ax.set(xlim=(-0.5, last + 0.5), ylim=(0.0, 1.05 * best or 1.0))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    across = "completion after arrival (slots)"
    ax.set(xlabel=across, ylabel="utility", title="Utility by completion")
    canvas.legend_below(ax, 4 if len(curves) <= MOST_NAMED else 1)
    return ax


def _named(noun: str, shown: int, total: int) -> str:
    return noun if shown == total else f"{noun}: {shown:,} of {total:,} jobs shown"


def curve(utility: Utility, slots: int) -> FloatArray:
    """Return points (delay, utility) at delays 0 .. `slots` - 1, shape (slots, 2)."""
    delays = np.arange(slots, dtype=np.float64)
    return np.column_stack([delays, utility(delays)])


def _interesting(curves: Sequence[FloatArray]) -> float:
    """Return the delay after which nine of ten curves change by less than 1 % of their maximum."""
    ends = [1.0]
    for points in curves:
        moving = points[:, 1] - points[-1, 1] > 0.01 * points[0, 1]
        last = min(int(np.count_nonzero(moving)), len(points) - 1)
        ends.append(float(points[last, 0]) if len(points) > 1 else 1.0)
    # Nine of ten: one job that falls very late must not press all the others together.
    return float(np.quantile(ends, 0.9))
