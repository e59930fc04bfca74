"""A mean completion time of elastic jobs that no policy can be below, clairvoyant ones included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush

from oasis.simulator.elastic import ElasticWorkload
from offline.elastic_bound import ROUNDING, best_rates, pool


def mean_completion_bound(made: ElasticWorkload) -> float:
    """A lower bound on the mean time from arrival to completion if every job is completed.

    It is the largest of the means of two relaxations:

    1. Each job runs from its arrival on with the workers with which it is fastest.
    2. To complete job j, a policy spends at least a_j = work_j * min_n (n w_j / rate_j(n)) of a
       resource, where n are workers that need w_j each and rate_j(n) is the best speed that n of
       them can have; and all jobs together never have more than the capacity C of all machines. So
       whatever it does is also a schedule of one machine that works at speed C, may be preempted at
       any time, and has to do a_j for job j, with the same completion times. On such a machine the
       job with the shortest remaining time first is optimal for the sum of completion times
       (Schrage, 1968). The bound takes the resource that gives most.

    Changes, parameter servers, locality and jobs that share a machine only slow jobs down.

    Parameters
    ----------
    made : ElasticWorkload
        Jobs, machines and speeds.

    Returns
    -------
    float
        Seconds; infinity if a job can never be completed.

    Examples
    --------
    Two jobs of 60 s of one GPU at the same time, and one GPU: 60 and 120 s.

    >>> from oasis.simulator import elastic_from_dict
    >>> def job(name):
    ...     return {"id": name, "arrival": 0.0, "work": 60.0, "workers": 1, "worker": {"gpu": 1}}
    >>> made = elastic_from_dict(
    ...     {"format": "oasis-elastic-workload", "version": 1, "resources": ["gpu"],
    ...      "machines": [{"id": "a", "capacity": {"gpu": 1}}], "jobs": [job("x"), job("y")]})
    >>> round(mean_completion_bound(made), 3)
    90.0
    """
    totals, demands = pool(made)
    jobs = made.workload.jobs
    fastest: list[float] = []
    areas: list[list[float]] = [[] for _ in totals]  # seconds of the whole pool, by resource
    for job, demand in zip(jobs, demands.tolist(), strict=True):
        rates = best_rates(made, job)
        able = [
            n
            for n, rate in enumerate(rates)
            if rate > 0 and all(n * w <= total for w, total in zip(demand, totals, strict=True))
        ]
        if not able:
            return math.inf
        fastest.append(job.work / max(rates[n] for n in able))
        best = max(rates[n] / n for n in able)
        for share, needed, total in zip(areas, demand, totals.tolist(), strict=True):
            share.append(job.work / best * needed / total if needed else 0.0)
    arrivals = [job.arrival for job in jobs]
    sums = [math.fsum(fastest), *(shortest_first(arrivals, area) for area in areas)]
    # runs subtract times that are rounded
    rounded = ROUNDING * (max(arrivals) + max(sums))
    return max(0.0, max(sums) / len(jobs) - rounded)


def shortest_first(arrivals: Sequence[float], work: Sequence[float]) -> float:
    """Sum of the times from arrival to completion, shortest remaining time first, preemptively.

    Parameters
    ----------
    arrivals, work : sequence of float
        Of each job on one machine, in seconds.

    Examples
    --------
    The short job interrupts the long one:

    >>> shortest_first([0.0, 1.0], [5.0, 1.0])
    7.0
    """
    order = sorted(range(len(work)), key=lambda k: arrivals[k])
    left: list[tuple[float, int]] = []
    now, ends = 0.0, []
    for place, k in enumerate(order):
        now = max(now, arrivals[k])
        heappush(left, (work[k], k))
        until = arrivals[order[place + 1]] if place + 1 < len(order) else math.inf
        while left and now < until:
            rest, job = heappop(left)
            if now + rest > until:
                heappush(left, (rest - (until - now), job))
                now = until
            else:
                now += rest
                ends.append(now - arrivals[job])
    return math.fsum(ends)
