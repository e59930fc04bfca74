"""What would have changed the answer: the explanation of a rejection."""

from __future__ import annotations

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.decision import Bottleneck, Rejection
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import SERVER, SLOT, Schedule
from oasis.online.cost import Cost, schedule_cost
from oasis.online.search import Search


def explain_rejection(search: Search) -> Rejection | None:
    """Say what would have admitted a job; None if there is no room for it at any price.

    The payoff is positive at completion t if and only if f(t) > cost(t). So a utility that does
    not depend on time must exceed the smallest cost, and a multiple of the job's own f must
    exceed the smallest cost(t) / f(t).
    """
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
    """The resource and group with the largest part of `cost`, and where that part arises."""
    sums = np.array([cost.workers.sum(axis=0), cost.ps.sum(axis=0)])
    if not sums.any():
        return None
    group, resource = (int(k) for k in np.unravel_index(np.argmax(sums), sums.shape))
    rows, parts = ((schedule.workers, cost.workers), (schedule.ps, cost.ps))[group]
    ids = (cluster.worker_ids, cluster.ps_ids)[group]
    part = parts[:, resource]
    return Bottleneck(
        resource=cluster.resources[resource],
        group=("worker", "ps")[group],
        servers=tuple(ids[server] for server in _half(rows[:, SERVER], part)),
        slots=tuple(sorted(_half(rows[:, SLOT], part))),
        cost=float(sums[group, resource]),
        share=float(sums[group, resource] / sums.sum()),
    )


def _half(keys: IntArray, cost: FloatArray) -> list[int]:
    """The fewest keys that carry at least half of `cost`, largest first, ties by lower key."""
    names, where = np.unique(keys, return_inverse=True)
    sums = np.bincount(where, weights=cost)
    order = np.argsort(-sums, kind="stable")
    enough = int(np.searchsorted(np.cumsum(sums[order]), sums.sum() / 2)) + 1
    return [int(key) for key in names[order[:enough]]]
