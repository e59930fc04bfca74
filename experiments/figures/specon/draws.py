"""Random jobs for which the default scheduler's run resembles the published one.

The paper shows one run of each schedule. It does not publish the work of the jobs, nor what it
costs that several share a worker. All that is drawn from wide ranges here, and a draw is kept if
the default scheduler makes of it what is published of its own run. Nothing is chosen by what SpeCon
does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from itertools import count

import numpy as np
from scipy.optimize import brentq

from experiments.figures.specon.models import (
    FLAT_TAIL,
    LOOK,
    MODELS,
    SCHEDULES,
    PublishedSchedule,
    curve,
    job_of,
    on_workers,
    overhead,
)
from oasis.simulator import Workload


def pool_times(jobs: Sequence[tuple[float, float]], workers: int, loss: float = 0.0) -> list[float]:
    """Completion times of jobs that share all workers evenly, in their order."""
    # A job gets one worker at most. All that are there have the same speed, so each ends when the
    # work that every job got since the beginning reaches what it was at its arrival and its own
    # work more. With n jobs for each worker, more than one, each runs at 1 / (n (1 + loss (n - 1)))
    # of its speed.
    times = [0.0] * len(jobs)
    now = each = 0.0  # each: work that a job got that has been there from the beginning
    running: list[tuple[float, int]] = []
    for number, (arrival, work) in enumerate([*jobs, (math.inf, 0.0)]):
        while running:
            crowd = max(1.0, len(running) / workers)
            slowness = crowd * (1.0 + loss * (crowd - 1.0))
            goal, first = running[0]
            end = now + (goal - each) * slowness
            # A job that ends at the moment of an arrival leaves first.
            if end > arrival:
                each += (arrival - now) / slowness
                break
            now, each = end, goal
            heappop(running)
            times[first] = now - jobs[first][0]
        now = arrival
        heappush(running, (each + work, number))
    return times


def pooled_mean(jobs: Iterable[tuple[float, float]], workers: int, loss: float = 0.0) -> float:
    """Mean completion time if jobs moved at once and for nothing, so that loads are always even."""
    # All workers together are shared evenly by all jobs, and a job gets one worker at most. This is
    # what moving containers comes to if it is perfect and favours no job. It is no bound on
    # policies that let some jobs have more than others.
    times = pool_times(sorted(jobs), workers, loss)
    return math.fsum(times) / len(times)


def default_times(
    arrivals: Sequence[float], work: Sequence[float], workers: int, loss: float = 0.0
) -> list[float]:
    """Completion times under the default scheduler: jobs are placed in turn and never move."""
    times = [0.0] * len(work)
    jobs = list(zip(arrivals, work, strict=True))
    for worker in range(workers):
        times[worker::workers] = pool_times(jobs[worker::workers], 1, loss)
    return times


# How far a draw may be from the published makespan, and from the time of the job that is published.
NEAR, NEAR_JOB = 0.02, 0.05
# Ranges to draw from, all ours and wide: standard deviations of the logarithm of the work, between
# kinds of jobs (a model on a platform) and within a kind; and what each further job on a worker
# costs the others, up to as much as its own work. The default scheduler's numbers of Figs. 5, 7 and
# 12 bound that loss before the range does.
BETWEEN, WITHIN, LOSS = 1.0, 0.5, 1.0
PLATFORMS = 2  # PyTorch and TensorFlow (Table II)
LEAST_WORK, MOST_WORK = 1.0, 1e4  # seconds, of a median job: where the published mean is looked for


@dataclass(frozen=True, slots=True)
class Draw:
    """The jobs of one draw."""

    seed: int
    arrivals: tuple[float, ...]
    work: tuple[float, ...]  # seconds of each job on its own
    models: tuple[str, ...]
    median: float  # work of a median job
    within: float  # standard deviation of the logarithm of the work within a kind of jobs
    loss: float  # what each further job on a worker costs, as in `oasis.simulator.ScalingTable`

    def workload(
        self,
        workers: int,
        number: int,
        bend: float = FLAT_TAIL,
        floor: float = 0.0,
        look: float = LOOK,
    ) -> Workload:
        """Workload of these jobs on workers; `number` decides what saving and resuming costs."""
        rows = zip(self.arrivals, self.work, self.models, strict=True)
        jobs = [
            job_of(k, arrival, work, curve(model, bend, floor))
            for k, (arrival, work, model) in enumerate(rows)
        ]
        return on_workers(jobs, workers, costs=overhead(number), look=look, loss=self.loss)


def candidate(schedule: PublishedSchedule, seed: int, most_loss: float = LOSS) -> Draw:
    """Jobs as they might have been, of a median work of 1 s."""
    # The seed counts candidates; which of them are kept depends on the default scheduler alone.
    rng = np.random.default_rng([9, seed])
    between, within, loss = rng.uniform(0.0, (BETWEEN, WITHIN, 1.0)).tolist()
    jobs = schedule.jobs
    own = within * rng.standard_normal(jobs)
    if schedule.fixed:
        arrivals = np.arange(jobs) * (schedule.window / jobs)
        names = ("VAE",) * jobs
    else:
        arrivals = np.sort(rng.uniform(0.0, schedule.window, jobs)).round(1)
        kinds = rng.integers(0, len(MODELS) * PLATFORMS, jobs)
        own += (between * rng.standard_normal(len(MODELS) * PLATFORMS))[kinds]
        names = tuple(MODELS[kind // PLATFORMS] for kind in kinds)
    work = tuple(np.exp(own).tolist())
    return Draw(seed, tuple(arrivals.tolist()), work, names, 1.0, within, most_loss * loss)


def scaled(draw: Draw, schedule: PublishedSchedule) -> Draw:
    """`draw` with the work that gives the default scheduler its published mean completion time."""

    def too_long(log_scale: float) -> float:
        scale = math.exp(log_scale)
        work = [scale * each for each in draw.work]
        times = default_times(draw.arrivals, work, schedule.workers, draw.loss)
        return math.log(math.fsum(times) / len(times) / schedule.default.mean)

    # In logarithms, because the work may lie anywhere in four powers of ten.
    scale = math.exp(brentq(too_long, math.log(LEAST_WORK), math.log(MOST_WORK), xtol=1e-9))
    work = tuple(round(scale * each, 3) for each in draw.work)
    return replace(draw, work=work, median=scale * draw.median)


def is_as_published(draw: Draw, schedule: PublishedSchedule) -> bool:
    """Return whether the default run of a scaled draw is near the published one."""
    times = default_times(draw.arrivals, draw.work, schedule.workers, draw.loss)
    makespan = max(arrival + time for arrival, time in zip(draw.arrivals, times, strict=True))
    known = schedule.default
    return (
        abs(makespan / known.makespan - 1) <= NEAR
        and abs(times[known.job - 1] / known.time - 1) <= NEAR_JOB
    )


def as_published(figure: str, number: int, most_loss: float = LOSS) -> Draw:
    """Return the draw with this number whose default run is near the published one."""
    # Draws are searched once per process; figures ask for the same ones many times.
    found, more = _search(figure, most_loss)
    while len(found) <= number:
        found.append(next(more))
    return found[number]


@cache
def _search(figure: str, most_loss: float) -> tuple[list[Draw], Iterator[Draw]]:
    """Draws found so far, and the generator of the next ones."""
    schedule = SCHEDULES[figure]
    drawn = (scaled(candidate(schedule, seed, most_loss), schedule) for seed in count())
    return [], (draw for draw in drawn if is_as_published(draw, schedule))
