"""Random jobs for which the default scheduler's run resembles the published one.

The paper shows one run of each schedule. It does not publish the work of the jobs, nor what it
costs that several share a worker. All that is drawn from wide ranges here, and a draw is kept if
the default scheduler makes of it what is published of its own run. Nothing is chosen by what SpeCon
does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import brentq

from experiments.figures.figure import elastic
from oasis.simulator import Workload

# Section III-A, Fig. 1: part of the whole reduction of the evaluation function after a fifth of
# the time that a training takes on its own.
EARLY_PROGRESS: Mapping[str, float] = {"VAE": 0.65, "Bi-RNN": 0.98, "GRU": 0.90}

# Section III-B, Fig. 2: saving and resuming at any point takes less than this, seconds; and the
# standard deviation over the points.
SAVING_AT_MOST, SAVING_SPREAD = 5.0, 1.43


@dataclass(frozen=True, slots=True)
class DefaultRun:
    """Published figures of the default scheduler's run; times in seconds."""

    mean: float  # completion time
    makespan: float
    job: int  # whose completion time is printed, from 1 on
    time: float


@dataclass(frozen=True, slots=True)
class SpeconRun:
    """Published figures of the run of SpeCon."""

    gain: float  # by how much the mean completion time is lower than the default scheduler's
    makespan: float  # seconds
    reduced: float  # part of the jobs that complete sooner
    best: float  # largest reduction of one job, of that whose time is known under both


@dataclass(frozen=True, slots=True)
class PublishedSchedule:
    """An experiment of section VI: its jobs and workers, and its published numbers."""

    jobs: int
    workers: int
    window: float  # seconds in which all jobs arrive
    fixed: bool  # one comes every `window / jobs` seconds, all VAE; else times and models are drawn
    default: DefaultRun  # workloads are calibrated on this alone
    specon: SpeconRun  # compared with what we find, and used for nothing else


# Section VI-C2 prints no mean for Fig. 6, but it follows from what it prints: 15 jobs gain 165.7 s
# each on average, 5 lose 110.8 s each, and that is 13.6 % of what all 20 take under the default
# scheduler.
FIG6_MEAN = (15 * 165.7 - 5 * 110.8) / 20 / 0.136

SCHEDULES: Mapping[str, PublishedSchedule] = {
    "5": PublishedSchedule(  # section VI-B
        *(20, 4, 1000.0, True),
        DefaultRun(275.2, 1260.0, 17, 348.7),
        SpeconRun(1 - 234.7 / 275.2, 1190.0, 11 / 20, 0.376),
    ),
    "6": PublishedSchedule(  # section VI-C2
        *(20, 4, 300.0, False),
        DefaultRun(FIG6_MEAN, 1421.0, 14, 1167.8),
        SpeconRun(0.136, 1070.0, 15 / 20, 0.316),
    ),
    "7": PublishedSchedule(
        *(30, 4, 600.0, False),
        DefaultRun(865.7, 1760.0, 5, 1539.6),
        SpeconRun(1 - 800.2 / 865.7, 1498.0, 18 / 30, 0.288),
    ),
    "12": PublishedSchedule(  # section VI-D
        *(50, 8, 1200.0, False),
        DefaultRun(596.3, 2070.0, 50, 467.5),
        SpeconRun(1 - 553.0 / 596.3, 1840.0, 30 / 50, 0.415),
    ),
}

# Table III: alpha and interval, and what they gain on 20 VAE jobs in [0, 300].
TABLE3: Mapping[tuple[float, float], Mapping[str, float]] = {
    (0.05, 20.0): {"reduced": 0.600, "overall": 0.057, "best": 0.291, "makespan": 0.061},
    (0.05, 25.0): {"reduced": 0.600, "overall": 0.068, "best": 0.278, "makespan": 0.075},
    (0.05, 30.0): {"reduced": 0.550, "overall": 0.032, "best": 0.213, "makespan": 0.040},
    (0.01, 30.0): {"reduced": 0.650, "overall": 0.096, "best": 0.310, "makespan": 0.082},
    (0.10, 30.0): {"reduced": 0.600, "overall": 0.064, "best": 0.239, "makespan": 0.031},
}


CORES, MEMORY = 16, 64.0  # of a worker (section VI-A)
# "resources are fully occupied by each model without competitions" (section III-A)
JOB_CORES = 16.0
LOOK = 5.0  # seconds between two values of the evaluation function in the log: ours
PIECES = 64  # of a training curve
# "the loss reduces dramatically at the beginning of the process, then converges and becomes stable"
# (section I): a bend of 2, beside 1 for an exponential, see `curve`.
FLAT_TAIL = 2.0
# Table II. Of RNN and dynamic RNN no curve is published: these two numbers are ours.
EARLY = {**EARLY_PROGRESS, "RNN": 0.80, "Dynamic RNN": 0.95}
MODELS = tuple(EARLY)


def overhead(seed: int, point: int = 0) -> float:
    """Draw the seconds for saving plus resuming a container; `point` varies the draw."""
    # "All less than 5 seconds and consistent with a standard deviation value of 1.43" (Fig. 2):
    # times that are even between 0 and 5 s have a standard deviation of 1.44 s. Point 0 is for
    # whole schedules, in which it is the same for each move.
    drawn = np.random.default_rng([7, seed, point]).uniform(0.0, SAVING_AT_MOST)
    return round(float(drawn), 3)


def progress(share: float, rate: float, bend: float) -> float:
    """Part of the whole reduction made after `share` of the work; 1 at its end."""
    return math.expm1(-rate * share**bend) / math.expm1(-rate)


def pace(early: float, bend: float) -> float:
    """Find the rate with which the part `early` of the reduction is made in the first fifth."""
    # The early part grows with the rate, so halving finds it.
    low, high = 1e-6, 1e3
    while high - low > 1e-9:
        middle = (low + high) / 2
        if progress(0.2, middle, bend) < early:
            low = middle
        else:
            high = middle
    return low


def curve(model: str, bend: float = FLAT_TAIL, floor: float = 0.0) -> list[list[float]]:
    """Evaluation function of `model` as pairs of share and value, from 1 down to `floor`."""
    # One of its points is published, Fig. 1 itself is not readable. With a bend of 1 it is an
    # exponential through this point; with 2 it falls most just before the point and is flat in the
    # second half of the training. What is left of the first value at the end is not published.
    rate = pace(EARLY[model], bend)
    shares = [k / PIECES for k in range(PIECES + 1)]
    return [[share, 1.0 - (1.0 - floor) * progress(share, rate, bend)] for share in shares]


def on_workers(
    jobs: Sequence[dict[str, Any]],
    workers: int = 4,
    *,
    costs: float,
    look: float = LOOK,
    loss: float = 0.0,
) -> Workload:
    """Build a workload of jobs on `workers` machines of the testbed."""
    # `costs`: seconds to save a container and to resume it, half of them each. `look`: seconds
    # between two values of the evaluation function. `loss`: the ``crowding_loss`` of the file.
    capacity = {"memory_gb": MEMORY}
    return elastic(
        jobs,
        {"id": "worker", "count": workers, "capacity": capacity, "cpu_cores": CORES},
        costs=dict.fromkeys(("save", "migrate", "resume"), costs / 2),
        observation={"interval": look},
        crowding_loss=loss,
    )


def job_of(k: int, arrival: float, work: float, shown: list[list[float]]) -> dict[str, Any]:
    """Build job number `k`, one container, of an elastic workload."""
    return {
        "id": f"job{k + 1}",
        "arrival": arrival,
        "work": round(work, 3),
        "workers": {"min": 1, "initial": 1, "max": 1},
        "worker": {},
        "worker_cpu": JOB_CORES,
        "curve": shown,
    }


# -- draws -----------------------------------------------------------------------------------------


def pool_times(jobs: Sequence[tuple[float, float]], workers: int, loss: float = 0.0) -> list[float]:
    """Completion times of `jobs` (arrival, work), in order, if they share workers evenly."""
    # A job gets one worker at most. All that are there have the same speed, so each ends when the
    # work that every job got since the beginning reaches what it was at its arrival and its own
    # work more. With n jobs for each worker, more than one, each runs at 1 / (n (1 + loss (n - 1)))
    # of its speed.
    times = [0.0] * len(jobs)
    now = served = 0.0  # served: work that a job got that has been there from the beginning
    running: list[tuple[float, int]] = []
    for number, (arrival, work) in enumerate([*jobs, (math.inf, 0.0)]):
        while running:
            crowd = max(1.0, len(running) / workers)
            slowness = crowd * (1.0 + loss * (crowd - 1.0))
            goal, first = running[0]
            end = now + (goal - served) * slowness
            # A job that ends at the moment of an arrival leaves first.
            if end > arrival:
                served += (arrival - now) / slowness
                break
            now, served = end, goal
            heappop(running)
            times[first] = now - jobs[first][0]
        now = arrival
        heappush(running, (served + work, number))
    return times


def pooled_mean(jobs: Iterable[tuple[float, float]], workers: int, loss: float = 0.0) -> float:
    """Mean completion time if jobs moved at once and for free, so that loads are even."""
    # All workers together are shared evenly by all jobs, and a job gets one worker at most. This is
    # what moving containers comes to if it is perfect and favours no job. It is no bound on
    # policies that let some jobs have more than others.
    times = pool_times(sorted(jobs), workers, loss)
    return math.fsum(times) / len(times)


def default_times(
    arrivals: Sequence[float], work: Sequence[float], workers: int, loss: float = 0.0
) -> list[float]:
    """Completion times under the default scheduler, which places in turn and never moves."""
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
    """Randomly drawn jobs: arrivals, work and models."""

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
        """Build a workload of the jobs; `number` seeds the costs of saving and resuming."""
        rows = zip(self.arrivals, self.work, self.models, strict=True)
        jobs = [
            job_of(k, arrival, work, curve(model, bend, floor))
            for k, (arrival, work, model) in enumerate(rows)
        ]
        return on_workers(jobs, workers, costs=overhead(number), look=look, loss=self.loss)


def candidate(schedule: PublishedSchedule, seed: int, most_loss: float = LOSS) -> Draw:
    """Draw jobs that might be those of the experiment, of a median work of 1 s."""
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
    """Scale the work so that the default scheduler has its published mean completion time."""

    def too_long(log_scale: float) -> float:
        scale = math.exp(log_scale)
        work = [scale * amount for amount in draw.work]
        times = default_times(draw.arrivals, work, schedule.workers, draw.loss)
        return math.log(math.fsum(times) / len(times) / schedule.default.mean)

    # In logarithms, because the work may lie anywhere in four powers of ten.
    scale = math.exp(brentq(too_long, math.log(LEAST_WORK), math.log(MOST_WORK), xtol=1e-9))
    work = tuple(round(scale * amount, 3) for amount in draw.work)
    return replace(draw, work=work, median=scale * draw.median)


def is_as_published(draw: Draw, schedule: PublishedSchedule) -> bool:
    """Whether makespan and published job of the default run are near the published ones."""
    times = default_times(draw.arrivals, draw.work, schedule.workers, draw.loss)
    makespan = max(arrival + time for arrival, time in zip(draw.arrivals, times, strict=True))
    published = schedule.default
    return (
        abs(makespan / published.makespan - 1) <= NEAR
        and abs(times[published.job - 1] / published.time - 1) <= NEAR_JOB
    )


def as_published(figure: str, number: int, most_loss: float = LOSS) -> Draw:
    """Return draw `number` of those whose default run is near the published one."""
    # Draws are searched once per process; figures ask for the same ones many times.
    draws, more = _search(figure, most_loss)
    while len(draws) <= number:
        draws.append(next(more))
    return draws[number]


@cache
def _search(figure: str, most_loss: float) -> tuple[list[Draw], Iterator[Draw]]:
    """Return the list of draws found so far, shared by calls, and an iterator of further ones."""
    schedule = SCHEDULES[figure]
    drawn = (scaled(candidate(schedule, seed, most_loss), schedule) for seed in count())
    return [], (draw for draw in drawn if is_as_published(draw, schedule))
