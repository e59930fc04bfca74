"""Why a job has no schedule, in words."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from oasis.model.decision import Rejection
from oasis.model.resources import as_array
from oasis.online.search import Search


class Reason(StrEnum):
    """Kinds of rejection; every ``reason`` starts with one of these."""

    HORIZON = "cannot finish by the horizon at full parallelism"
    WORTHLESS = "worth nothing at its earliest completion"
    NO_ROOM = "no room"
    PAYOFF = "payoff not positive"


def why_none(search: Search, rejection: Rejection | None) -> str:
    """Why a search found no schedule of positive payoff; `rejection` says what would change it."""
    job, ledger, ends = search.job, search.ledger, search.ends
    if not ends.utility.size:
        slots = job.shortest_duration(ledger.cluster.slot_seconds)
        left = max(0, ledger.horizon - job.arrival)
        return f"{Reason.HORIZON}: needs {slots} slots, {left} remain"
    if ends.log_best == -np.inf:
        return Reason.WORTHLESS.value
    if rejection is None or rejection.utility_factor is None:
        last = ends.first + int(np.flatnonzero(ends.counted)[-1])
        return (
            f"{Reason.NO_ROOM}: {search.room_until(last)} of {search.work} worker-slots free by "
            f"slot {last}, the last completion that counts; "
            f"scarcest is {scarcest_resource(search, last)}"
        )
    return (
        f"{Reason.PAYOFF}: every schedule costs at least {rejection.utility_factor:.6g} times "
        "what the job is worth at its completion"
    )


def scarcest_resource(search: Search, last: int) -> str:
    """The resource and server group with least room for the job from its arrival to `last`.

    Room is counted in workers (or parameter servers) as if the resource were the only one, and
    compared with what the whole job could use.
    """
    job, ledger = search.job, search.ledger
    slots = np.arange(job.arrival, last + 1)
    most = min(job.chunks, search.work)
    groups = (
        ("worker servers", ledger.worker, job.worker, most),
        ("ps servers", ledger.ps, job.ps, int(job.ps_needed(most))),
    )
    scarcest, least = "the servers", np.inf
    for name, group, amounts, limit in groups:
        demand = as_array(amounts, ledger.cluster.resources)
        for r in np.flatnonzero(demand) if limit else ():
            alone = np.zeros_like(demand)
            alone[r] = demand[r]
            units = group.room(alone, slots, limit).sum(axis=1)
            room = np.minimum(units, limit).mean() / limit
            if room < least:
                scarcest, least = f"{ledger.cluster.resources[r]} of the {name}", room
    return scarcest
