"""Gantt chart of a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.plotting.canvas import (
    MOST_COLUMNS,
    SMALL,
    TINY,
    as_written,
    axes,
    block_means,
    colour_map,
    fill,
    ink,
    label_rows,
    legend_below,
    name_rows,
    new_figure,
    shorten,
    slot_axis,
    step_of,
)
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SLOT, Schedule
from oasis.model.utility import Sigmoid

CRITICAL = 4.0  # gamma2 per slot from which section V of the paper calls a job time-critical
NAMES = ("time-critical", "time-sensitive", "time-insensitive")


def urgency(job: Job) -> str:
    """Class of time-sensitivity of a job, as in section V of the paper; otherwise its kind."""
    utility = job.utility
    if not isinstance(utility, Sigmoid):
        return str(getattr(utility, "kind", type(utility).__name__))
    if utility.decay <= 0:
        return NAMES[2]
    return NAMES[0] if utility.decay >= CRITICAL else NAMES[1]


def by_class(jobs: Sequence[Job]) -> dict[str, list[Job]]:
    """Jobs of each class in the order given; the most urgent class first, others by name."""
    classes: dict[str, list[Job]] = {}
    for job in jobs:
        classes.setdefault(urgency(job), []).append(job)
    # The paper's classes have an order of urgency; others have only their names.
    ranked = [name for name in NAMES if name in classes]
    return {name: classes[name] for name in [*ranked, *sorted(classes.keys() - set(NAMES))]}


MOST_ROWS = 60
GAP = 1.0  # rows between two bands


@dataclass(frozen=True, slots=True)
class Band:
    """The jobs of one class, in rows of neighbours by arrival."""

    name: str
    jobs: int
    ran: int  # to their end
    workers: FloatArray  # (N, T), in each slot, per job of the row
    arrivals: FloatArray  # (N,), mean slots of the jobs of each row


def bands_of(instance: Instance, schedules: Mapping[str, Schedule]) -> tuple[int, list[Band]]:
    """Bands of all jobs, and how many jobs a row stands for."""
    jobs = instance.jobs_by_arrival()
    each = step_of(len(jobs), MOST_ROWS)
    bands = []
    for name, members in by_class(jobs).items():
        rows = [members[k : k + each] for k in range(0, len(members), each)]
        bands.append(
            Band(
                name,
                len(members),
                sum(job.id in schedules for job in members),
                np.array([_workers(row, schedules, instance.horizon) for row in rows]),
                np.array([np.mean([job.arrival for job in row]) for row in rows]),
            )
        )
    return each, bands


def tasks_by_slot(rows: IntArray, slots: int = 0) -> IntArray:
    """Tasks in each slot, shape (T,): up to the last one that has any, or at least `slots`."""
    counts: IntArray = np.bincount(rows[:, SLOT], rows[:, COUNT], slots).astype(np.int64)
    return counts


def _workers(jobs: Sequence[Job], schedules: Mapping[str, Schedule], horizon: int) -> FloatArray:
    total = np.zeros(horizon)
    for job in jobs:
        if job.id in schedules:
            total += tasks_by_slot(schedules[job.id].workers, horizon)
    return total / len(jobs)


def draw_bands(ax: Axes, horizon: int, each: int, bands: Sequence[Band]) -> None:
    """Draw bands one below the other, darker where the jobs of a row have more workers."""
    step = step_of(horizon, MOST_COLUMNS)
    shown = [block_means(band.workers, step, 1) for band in bands]
    norm = Normalize(0.0, max(float(values.max()) for values in shown) or 1.0)
    top, middles, labels = 0.0, [], []
    image = None
    for band, values in zip(bands, shown, strict=True):
        bottom = top + len(values)
        image = ax.imshow(
            values,
            aspect="auto",
            interpolation="nearest",
            cmap=colour_map(),
            norm=norm,
            extent=(-0.5, values.shape[1] * step - 0.5, bottom, top),
        )
        places = top + 0.5 + np.arange(len(values))
        label = "mean arrival of the jobs of a row" if top == 0.0 else None
        ax.plot(band.arrivals, places, ">", color=ink(), markersize=3.0, label=label, zorder=3)
        ax.hlines([top, bottom], -0.5, horizon - 0.5, color="0.7", linewidth=0.5)
        middles.append((top + bottom) / 2)
        labels.append(f"{as_written(band.name)}\n{band.jobs:,} jobs,\n{band.ran:,} to their end")
        top = bottom + GAP
    if image is not None:
        ax.figure.colorbar(image, ax=ax, label="workers per job (mean)")
    slot_axis(ax, horizon, step)
    ax.set_ylim(top - GAP, 0.0)
    ax.set_yticks(middles, labels, fontsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel(f"class; a row is {each:,} jobs, in order of arrival")
    legend_below(ax, 2)


Bar = tuple[int, int, int]  # first slot, end, workers
FEWEST = 6  # rows, so that a single job is still a bar
MANY = 40  # jobs from which bars have no outlines and marks are small
TOO_MANY = 150  # jobs from which rows would be hairlines, and are bands by class


def plot_schedule(
    instance: Instance,
    schedules: Mapping[str, Schedule],
    *,
    ax: Axes | None = None,
) -> Axes:
    """Gantt chart: one row per job in order of arrival, darker where it has more workers.

    A job of several forms has the name of the one that runs beside it.

    More than 150 jobs are drawn as bands instead, in which a row stands for several jobs that
    arrive one after the other; the label of the axis says how many. A band is a class: how much
    its jobs suffer from waiting, as in the paper's section V, or the kind of their utility.

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
    ax = axes(ax, 8.0, min(10.0, 1.5 + 0.2 * max(8, len(jobs))))
    ax.set_title(f"Schedule: {len(schedules):,} of {len(jobs):,} jobs run to their end")
    if len(jobs) > TOO_MANY:
        draw_bands(ax, instance.horizon, *bands_of(instance, schedules))
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
    _name_forms(ax, instance, schedules)
    ax.set_ylabel("job, in order of arrival")
    return ax


def form_name(job: Job, form: int) -> str:
    """Name of a form: the kinds of machines that it runs on, or its number."""
    if job.speeds is not None:
        return list(job.speeds.values)[form]
    asked = job.forms[form].requires or {}
    return "/".join(value for each in asked.values() for value in each) or f"form {form}"


def _name_forms(ax: Axes, instance: Instance, schedules: Mapping[str, Schedule]) -> None:
    """Write beside each job of several forms the form in which it runs."""
    for row, job in enumerate(instance.jobs_by_arrival()):
        schedule = schedules.get(job.id)
        if schedule is None or len(job.in_forms) == 1:
            continue
        end = schedule.completion + 1
        # behind its last slot, or before its arrival where the axes end
        late = end > 0.85 * instance.horizon
        place, side = (job.arrival - 1.0, "right") if late else (end, "left")
        name = shorten(form_name(job, schedule.form))
        text = ax.text(place, row, name, ha=side, va="center", fontsize=TINY, color="0.3", zorder=4)
        # over a target that it would otherwise be crossed by
        text.set_bbox({"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 0.3})


def bars_of(schedule: Schedule) -> list[Bar]:
    """Longest stretches of slots with one number of workers: (first slot, end, workers)."""
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


ROW = 0.3  # inches of a job in the plan of a cluster
WIDTH = 8.0
LETTER = 0.075  # inches of a letter of a bar's label

Held = Mapping[str, tuple[int, int]]  # workers and parameter servers of a job on each node


def plot_cluster_plan(jobs: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw how many workers each job has in the next slots, and on which nodes.

    A label such as 3+1 is three workers and one parameter server.
    """
    figure = new_figure(WIDTH, 1.4 + ROW * max(3, len(jobs)))
    ax = figure.subplots()
    slots = [entry["slot"] for job in jobs for entry in job["plan"]]
    first, end = (min(slots), max(slots) + 1) if slots else (0, 1)
    letters = (WIDTH - 2.0) / LETTER / (end - first)  # that fit into a slot
    for row, job in enumerate(jobs):
        for begin, stop, tasks in _stretches(job["plan"]):
            ax.barh(row, stop - begin, 0.8, left=begin, color=fill(3), edgecolor=ink())
            text = next(
                (text for text in _texts(tasks) if len(text) <= letters * (stop - begin)), ""
            )
            place = (begin + stop) / 2
            ax.text(place, row, as_written(text), ha="center", va="center", fontsize=SMALL)
    ax.set_xlim(first, end)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    name_rows(ax, [shorten(job["job"]) for job in jobs], 3)
    title = "Plan: workers + parameter servers of each job, and their nodes"
    ax.set(xlabel="time (slots)", title=title)
    return figure


def _stretches(plan: Sequence[Mapping[str, Any]]) -> list[tuple[int, int, Held]]:
    """Longest stretches of slots in which a job holds the same: (first slot, end, tasks)."""
    stretches: list[tuple[int, int, Held]] = []
    for entry in sorted(plan, key=lambda entry: int(entry["slot"])):
        workers, servers = entry.get("workers", {}), entry.get("parameterServers", {})
        held = {node: (workers.get(node, 0), servers.get(node, 0)) for node in (*workers, *servers)}
        if not held:
            continue
        slot = entry["slot"]
        if stretches and stretches[-1][1:] == (slot, held):
            stretches[-1] = (stretches[-1][0], slot + 1, held)
        else:
            stretches.append((slot, slot + 1, held))
    return stretches


def _texts(tasks: Held) -> list[str]:
    """Candidate labels of a bar, from the longest to the shortest."""
    by_node = ", ".join(f"{_tasks(*counts)} on {node}" for node, counts in sorted(tasks.items()))
    workers, servers = (sum(counts) for counts in zip(*tasks.values(), strict=True))
    total = _tasks(workers, servers)
    return [by_node, f"{total} on {len(tasks)} nodes", total]


def _tasks(workers: int, servers: int) -> str:
    """Workers and parameter servers as ``oasis kubernetes plan`` prints them."""
    return f"{workers}+{servers}" if servers else str(workers)
