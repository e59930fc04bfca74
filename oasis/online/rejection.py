"""Explanations of rejections: the reason, and the utility at which the job is admitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import Cluster
from oasis.model.decision import Bottleneck, Explanation, Rejection
from oasis.model.forms import NOT_ADMITTED
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.online.ledger import Ledger
from oasis.online.search import Search


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a schedule: for each row of its workers (P, R) and parameter servers (Q, R)."""

    workers: FloatArray
    ps: FloatArray

    @property
    def total(self) -> float:
        """Cost of the whole schedule."""
        return float(self.workers.sum() + self.ps.sum())


def schedule_cost(schedule: Schedule, job: Job, ledger: Ledger) -> Cost:
    """Return what the `schedule` of `job` costs at the prices of `ledger`, by row."""
    parts, job = [], job.in_form(schedule.form)
    for group in GROUPS:
        rows = group.placed(schedule)
        units = rows[:, COUNT, None] * as_array(group.of(job), ledger.cluster.resources)
        price = group.of(ledger).price_at(rows[:, SLOT] - ledger.origin, rows[:, SERVER])
        parts.append(units * price)
    return Cost(*parts)


class Reason(StrEnum):
    """Kinds of rejection; the ``reason`` of a rejected job starts with one of these."""

    LABELS = NOT_ADMITTED
    HORIZON = "cannot finish by the horizon at full parallelism"
    WORTHLESS = "worth nothing at its earliest completion"
    NO_ROOM = "no room"
    PAYOFF = "payoff not positive"


def explanation(forms: Sequence[Search]) -> Explanation:
    """Return why no schedule pays, for the form that came nearest, and what utility would pay."""
    rejections = [explain_rejection(search) for search in forms]
    reasons = [reason_of(*pair) for pair in zip(forms, rejections, strict=True)]
    # Reasons go from the most basic to the most particular one.
    order = list(Reason)
    furthest = max(reasons, key=order.index)
    nearest = min(
        (k for k, reason in enumerate(reasons) if reason is furthest),
        key=lambda k: rounding.key(_factor(rejections[k])),
    )
    why = why_none(forms[nearest], rejections[nearest])
    if len(forms) > 1:
        why += f" (form {nearest}, the nearest of {len(forms)})"
    return why, _least(rejections)


def _factor(rejection: Rejection | None) -> float:
    """Return the factor on the utility that would admit the job; infinity if it is unknown."""
    known = None if rejection is None else rejection.utility_factor
    return np.inf if known is None else known


def _least(rejections: Sequence[Rejection | None]) -> Rejection | None:
    """The rejection with the least utility needed, and the least factor; None if none is known."""
    known = [rejection for rejection in rejections if rejection is not None]
    if not known:
        return None
    cheapest = min(known, key=lambda rejection: rounding.key(rejection.smallest_utility))
    factor = min(_factor(rejection) for rejection in known)
    return replace(cheapest, utility_factor=factor if factor < np.inf else None)


def reason_of(search: Search, rejection: Rejection | None) -> Reason:
    """Return the kind of reason why a search found no schedule of positive payoff."""
    # From the most basic reason to the most particular one: the
    # first that applies is the one to name.
    if search.ledger.cluster.unmet(search.job):
        return Reason.LABELS
    if not search.ends.utility.size:
        return Reason.HORIZON
    if search.ends.log_best == -np.inf:
        return Reason.WORTHLESS
    if rejection is None or rejection.utility_factor is None:
        return Reason.NO_ROOM
    return Reason.PAYOFF


def why_none(search: Search, rejection: Rejection | None) -> str:
    """Say in a sentence why `search` found no schedule that pays, with numbers of `rejection`."""
    job, ledger, ends = search.job, search.ledger, search.ends
    reason = reason_of(search, rejection)
    if reason is Reason.LABELS:
        return f"{reason}: {ledger.cluster.unmet(job)}"
    if reason is Reason.HORIZON:
        slots = job.shortest_duration(ledger.cluster.slot_seconds)
        remaining = max(0, ledger.end - job.arrival)
        return f"{reason}: needs {slots} slots, {remaining} remain"
    if reason is Reason.NO_ROOM:
        last = ends.first + int(np.flatnonzero(ends.counted)[-1])
        lacking = f"scarcest is {scarcest_resource(search, last)}"
        if rejection is not None and rejection.bottleneck is not None:  # one resource is named
            spot = rejection.bottleneck
            lacking = f"later it would pay most for {spot.resource} of the {spot.group} servers"
        return (
            f"{reason}: {search.room_until(last)} of {search.work} worker-slots free by "
            f"slot {last}, the last completion that counts; {lacking}"
        )
    if rejection is None or rejection.utility_factor is None:
        return reason.value
    return (
        f"{reason}: every schedule costs at least {rejection.utility_factor:.6g} times "
        "what the job is worth at its completion"
    )


def scarcest_resource(search: Search, last: int) -> str:
    """Name the resource and server group with the least free capacity from arrival to `last`.

    Room: the tasks that would fit if this resource were the only one, over those the job can use.
    """
    job, ledger = search.job, search.ledger
    rows, lengths = ledger.runs(search.start, last + 1)
    most = search.most
    scarcest, least = "the servers", np.inf
    for group, admitted in zip(GROUPS, (search.admitted, search.ps_admitted), strict=True):
        demand = as_array(group.of(job), ledger.cluster.resources)
        limit = most if group is TaskGroup.WORKER else int(job.ps_needed(most))
        if not limit or not demand.any():
            continue
        room = group.of(ledger).room_by_resource(demand, rows, limit, admitted)
        units = np.minimum(room, limit) @ lengths
        rooms = units / lengths.sum() / limit
        k = int(rounding.first_of_least(rooms))
        # Of two that are equally scarce the first is named, always the same.
        if rounding.key(float(rooms[k])) < rounding.key(least):
            resource = ledger.cluster.resources[demand.nonzero()[0][k]]
            scarcest, least = f"{resource} of the {group} servers", rooms[k]
    return scarcest


def explain_rejection(search: Search) -> Rejection | None:
    """Return the least utility that would admit a job; None if no capacity is left for it.

    The payoff is positive at completion t if and only if f(t) > cost(t).
    """
    # All slots up to the horizon are searched, also those whose completion counts for
    # nothing: a utility that does not fall could use them.
    cheapest = search.cheapest()
    if cheapest is None:
        return None
    schedule = search.schedule(cheapest)
    cost = schedule_cost(schedule, search.job, search.ledger)
    return Rejection(
        smallest_utility=cost.total,
        smallest_utility_completion=schedule.completion,
        utility_factor=search.smallest_factor(),
        bottleneck=bottleneck(schedule, cost, search.ledger.cluster),
    )


def bottleneck(schedule: Schedule, cost: Cost, cluster: Cluster) -> Bottleneck | None:
    """Return the resource with the largest part of `cost`, and where; None if all is free."""
    sums = np.array([group.placed(cost).sum(axis=0) for group in GROUPS])
    if not sums.any():
        return None
    place, resource = (
        int(k) for k in np.unravel_index(rounding.first_of_least(-sums.ravel()), sums.shape)
    )
    group = GROUPS[place]
    rows, ids, part = group.placed(schedule), group.ids(cluster), group.placed(cost)[:, resource]
    return Bottleneck(
        resource=cluster.resources[resource],
        group=str(group),
        servers=tuple(ids[server] for server in _half(rows[:, SERVER], part)),
        slots=tuple(sorted(_half(rows[:, SLOT], part))),
        cost=float(sums[place, resource]),
        share=float(sums[place, resource] / sums.sum()),
    )


def _half(keys: IntArray, cost: FloatArray) -> list[int]:
    """Fewest `keys` that carry at least half of `cost`, largest cost first, ties by lower key."""
    names = np.bincount(keys).nonzero()[0]
    sums: FloatArray = np.bincount(keys, weights=cost)[names].astype(np.float64)
    # The stable sort of rising keys puts the lower one of two equals first.
    order = rounding.ascending(-sums)
    half = sums.sum() / 2 * (1 - rounding.TOLERANCE)
    enough = int(sums[order].cumsum().searchsorted(half)) + 1
    names_taken: list[int] = names[order[:enough]].tolist()
    return names_taken
