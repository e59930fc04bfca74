"""Jobs that share workers evenly, without a simulator: for thousands of draws.

On a single worker that is the default scheduler, which moves nothing; with all workers as one pool
it is what balancing could gain at most if cores are shared evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush


def pool_times(jobs: Sequence[tuple[float, float]], workers: int, loss: float = 0.0) -> list[float]:
    """Completion times of jobs that share all workers evenly, in their order.

    A job gets one worker at most. All that are there have the same speed, so each ends when the
    work that every job got since the beginning reaches what it was at its arrival and its own
    work more.

    Parameters
    ----------
    jobs : sequence of (float, float)
        Arrival and work on its own of each, in seconds, in order of arrival.
    workers : int
        How many.
    loss : float
        What crowding costs: with n jobs for each worker, more than one, each runs at
        1 / (n (1 + loss (n - 1))) of its speed.

    Examples
    --------
    Two jobs on one worker: 50 s alone, then both share, and the first ends 20 s later.

    >>> pool_times([(0.0, 60.0), (50.0, 60.0)], 1)
    [70.0, 70.0]
    """
    times = [0.0] * len(jobs)
    now = each = 0.0  # each: work that a job got that has been there from the beginning
    running: list[tuple[float, int]] = []
    for number, (arrival, work) in enumerate([*jobs, (math.inf, 0.0)]):
        while running:
            crowd = max(1.0, len(running) / workers)
            slowness = crowd * (1.0 + loss * (crowd - 1.0))
            goal, first = running[0]
            end = now + (goal - each) * slowness
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
    """Mean completion time if jobs moved at once and for nothing, so that loads are always even.

    All workers together are shared evenly by all jobs, and a job gets one worker at most. This is
    what moving containers comes to if it is perfect and favours nobody. It is no bound on policies
    that let some jobs have more than others.

    Parameters
    ----------
    jobs : iterable of (float, float)
        Arrival and work on its own of each, in seconds.
    workers : int
        How many.
    loss : float
        What crowding costs, as for `pool_times`.

    Examples
    --------
    Three jobs of 60 s on two workers, all at once: each gets two thirds of a worker.

    >>> pooled_mean([(0.0, 60.0)] * 3, 2)
    90.0
    """
    times = pool_times(sorted(jobs), workers, loss)
    return math.fsum(times) / len(times)


def default_times(
    arrivals: Sequence[float], work: Sequence[float], workers: int, loss: float = 0.0
) -> list[float]:
    """Completion times under the default scheduler: jobs are placed in turn and never move.

    Parameters
    ----------
    arrivals, work : sequence of float
        Of each job, in order of arrival: seconds, and seconds on its own.
    workers : int
        How many.
    loss : float
        What crowding costs, as for `pool_times`.

    Examples
    --------
    If crowding costs half as much again, two jobs on a worker run at a third of their speed each.

    >>> default_times([0.0, 50.0], [60.0, 60.0], 1, 0.5)
    [80.0, 80.0]
    """
    times = [0.0] * len(work)
    jobs = list(zip(arrivals, work, strict=True))
    for worker in range(workers):
        times[worker::workers] = pool_times(jobs[worker::workers], 1, loss)
    return times
