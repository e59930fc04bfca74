"""What the default scheduler makes of a schedule, without a simulator: for thousands of draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush


def default_times(
    arrivals: Sequence[float], work: Sequence[float], workers: int, loss: float = 0.0
) -> list[float]:
    """Completion times when jobs are placed in turn and never move.

    The n jobs on a worker share its cores in equal parts, and each further job costs them a part
    `loss` of it beside: each runs at 1 / (n (1 + loss (n - 1))) of its speed. A job ends when the
    work that each of them got since the worker began reaches what it was at its arrival, and the
    work of the job more.

    Parameters
    ----------
    arrivals, work : sequence of float
        Of each job, in order of arrival: seconds, and seconds on its own.
    workers : int
        How many.
    loss : float
        What crowding costs, as in `oasis.simulator.ScalingTable`.

    Examples
    --------
    Two jobs on one worker: 50 s alone, then both share, and the first ends 20 s later. If crowding
    costs half as much again, the two work at a third of their speed each.

    >>> default_times([0.0, 50.0], [60.0, 60.0], 1)
    [70.0, 70.0]
    >>> default_times([0.0, 50.0], [60.0, 60.0], 1, 0.5)
    [80.0, 80.0]
    """
    times = [0.0] * len(work)
    for worker in range(workers):
        now = each = 0.0
        running: list[tuple[float, int]] = []
        for job in [*range(worker, len(work), workers), None]:
            arrival = math.inf if job is None else arrivals[job]
            while running:
                slowness = len(running) * (1.0 + loss * (len(running) - 1))
                goal, done = running[0]
                end = now + (goal - each) * slowness
                if end > arrival:
                    each += (arrival - now) / slowness
                    break
                now, each = end, goal
                heappop(running)
                times[done] = now - arrivals[done]
            if job is not None:
                now = arrival
                heappush(running, (each + work[job], job))
    return times
