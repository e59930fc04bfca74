"""What balancing could gain at most if cores are shared evenly: all workers as one pool."""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heappop, heappush


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
        What crowding costs: with n jobs for each worker, more than one, each runs at
        1 / (n (1 + loss (n - 1))) of its speed.

    Examples
    --------
    Three jobs of 60 s on two workers, all at once: each gets two thirds of a worker.

    >>> pooled_mean([(0.0, 60.0)] * 3, 2)
    90.0
    """
    coming = sorted(jobs)
    now = each = 0.0  # each: work that a job got that has been there from the beginning
    running: list[tuple[float, float]] = []
    times = []
    for arrival, work in [*coming, (math.inf, 0.0)]:
        while running:
            crowd = max(1.0, len(running) / workers)
            slowness = crowd * (1.0 + loss * (crowd - 1.0))
            goal, since = running[0]
            end = now + (goal - each) * slowness
            if end > arrival:
                each += (arrival - now) / slowness
                break
            now, each = end, goal
            heappop(running)
            times.append(now - since)
        now = arrival
        heappush(running, (each + work, arrival))
    return math.fsum(times) / len(times)
