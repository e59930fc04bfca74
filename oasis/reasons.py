"""Why a job has no schedule, in words."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from oasis import rounding
from oasis.resources import as_array
from oasis.search import Search


class Reason(StrEnum):
    """Kinds of rejection; every ``reason`` starts with one of these."""

    HORIZON = "cannot finish by the horizon at full parallelism"
    WORTHLESS = "worth nothing at its earliest completion"
    NO_ROOM = "no room"
    PAYOFF = "payoff not positive"


def obstacle(search: Search) -> str | None:
    """Why there is no schedule that counts, whatever it costs; None if there is one."""
    job = search.job
    if not search.ends.utility.size:
        slots = job.shortest_duration(search.cluster.slot_seconds)
        left = len(search.prices.worker_prices) - job.arrival
        return f"{Reason.HORIZON}: needs {slots} slots, {left} remain"
    if search.ends.log_best == -np.inf:
        return Reason.WORTHLESS.value
    if search.best() is None:
        last = search.ends.first + int(np.flatnonzero(search.ends.counted)[-1])
        room = search.room_until(last)
        return (
            f"{Reason.NO_ROOM}: {room} of {search.work} worker-slots free by slot {last}, the last "
            f"completion that counts; scarcest is {scarcest_resource(search, last)}"
        )
    return None


def unprofitable(search: Search, end: int) -> str:
    """Say that the completion with index `end`, the best, costs what it is worth or more."""
    slot, utility, cost = search.ends.first + end, search.ends.utility[end], search.cost[end]
    return (
        f"{Reason.PAYOFF}: the best completion, slot {slot}, is worth {utility:.6g} "
        f"and costs {cost:.6g}"
    )


def scarcest_resource(search: Search, last: int) -> str:
    """The resource and server group with least room for the job from its arrival to `last`.

    Room is counted in workers (or parameter servers) as if the resource were the only one, and
    compared with what the whole job needs.
    """
    job, cluster, prices = search.job, search.cluster, search.prices
    slots = slice(job.arrival, last + 1)
    most = min(job.chunks, search.work)
    groups = (
        ("worker servers", job.worker, cluster.worker_capacity, prices.worker_used, most),
        ("ps servers", job.ps, cluster.ps_capacity, prices.ps_used, int(job.ps_needed(most))),
    )
    scarcest, least = "the worker servers", np.inf
    for name, amounts, capacity, used, limit in groups:
        demand = as_array(amounts, cluster.resources)
        for r in np.flatnonzero(demand) if limit else ():
            units = rounding.floor((capacity[:, r] - used[slots, :, r]) / demand[r])
            room = np.minimum(np.clip(units, 0, None).sum(axis=1), limit).sum() / limit
            if room < least:
                scarcest, least = f"{cluster.resources[r]} of the {name}", room
    return scarcest
