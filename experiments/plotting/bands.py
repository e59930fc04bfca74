"""A schedule of more jobs than a picture has rows: bands by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from experiments.plotting.canvas import (
    MOST_COLUMNS,
    SMALL,
    as_written,
    block_means,
    colour_map,
    ink,
    legend_below,
    slot_axis,
    step_of,
)
from experiments.plotting.classes import ClassOf, by_class
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SLOT, Schedule

MOST_ROWS = 60
GAP = 1.0  # rows between two bands


@dataclass(frozen=True, slots=True)
class Band:
    """The jobs of one class, in rows of neighbours by arrival.

    Parameters
    ----------
    name : str
        The class.
    jobs, ran : int
        How many there are, and how many run to their end.
    workers : (N, T) float array
        Workers in each slot, per job of the row.
    arrivals : (N,) float array
        Mean arrival slot of the jobs of each row.
    """

    name: str
    jobs: int
    ran: int
    workers: FloatArray
    arrivals: FloatArray


def bands_of(
    instance: Instance, schedules: Mapping[str, Schedule], class_of: ClassOf
) -> tuple[int, list[Band]]:
    """Bands of all jobs, and how many jobs a row stands for."""
    jobs = instance.jobs_by_arrival()
    each = step_of(len(jobs), MOST_ROWS)
    found = []
    for name, members in by_class(jobs, class_of).items():
        rows = [members[k : k + each] for k in range(0, len(members), each)]
        found.append(
            Band(
                name,
                len(members),
                sum(job.id in schedules for job in members),
                np.array([_workers(row, schedules, instance.horizon) for row in rows]),
                np.array([np.mean([job.arrival for job in row]) for row in rows]),
            )
        )
    return each, found


def _workers(jobs: Sequence[Job], schedules: Mapping[str, Schedule], horizon: int) -> FloatArray:
    total = np.zeros(horizon)
    for job in jobs:
        if job.id in schedules:
            rows = schedules[job.id].workers
            np.add.at(total, rows[:, SLOT], rows[:, COUNT])
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
