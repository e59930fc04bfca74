"""Weak duality: an upper bound on the offline optimum from any non-negative prices.

OPT <= D(p, q) = sum_i max(0, best payoff of i at p, q on the empty cluster) + sum p c + sum q c
(docs/theory, "The bound that always holds"). The best payoff is found by a plain dynamic
programme of this module's own; it shares no code with the search it is used to check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import Cluster
from oasis.model.errors import InputError
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance, Job, expect_instance
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray


def dual_bound(instance: Instance, worker_prices: FloatArray, ps_prices: FloatArray) -> float:
    """Return the dual objective (19) at any non-negative prices: at least the offline optimum.

    Parameters
    ----------
    instance : Instance
        The problem, with its original utilities.
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        p_h^r(t) and q_k^r(t), utility per unit of resource r; non-negative and finite.

    Returns
    -------
    float
        D(p, q).

    Raises
    ------
    ValueError
        If a price is negative, infinite or NaN, or an array has the wrong shape.

    Examples
    --------
    At the prices that a run of OASiS leaves, the bound is above what the run earned.

    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.OASiS.from_instance(instance)
    >>> run = oasis.simulate(instance, scheduler)
    >>> ledger = scheduler.ledger
    >>> bound = oasis.dual_bound(instance, ledger.worker_prices, ledger.ps_prices)
    >>> print(f"{run.total_utility:.1f} <= {bound:.1f}")
    100.7 <= 3597.7
    """
    expect_instance(instance)
    return dual_objective(instance, worker_prices, ps_prices)


def dual_objective(instance: Instance, worker_prices: FloatArray, ps_prices: FloatArray) -> float:
    """Return D(p, q) of (19), where `instance` is known to be one."""
    cluster = instance.cluster
    rent = []
    for group, prices in zip(GROUPS, (worker_prices, ps_prices), strict=True):
        name, capacity = f"{group}_prices", group.capacity(cluster)
        expected = (instance.horizon, *capacity.shape)
        if np.shape(prices) != expected:
            raise InputError(name, f"expected shape {expected}", np.shape(prices))
        if not (np.isfinite(prices).all() and (np.asarray(prices) >= 0).all()):
            raise InputError(name, "expected non-negative finite prices")
        # sum p c and sum q c of (19): whatever is used of it, all of the capacity is charged.
        rent.append(float((prices * capacity).sum()))
    # On the empty cluster: a schedule that fits some residual capacity fits this, so that (20)
    # holds for every schedule that any solution can contain.
    # The schedules of a job are those of all its forms.
    payoffs = (
        max(empty_payoff(instance, form, worker_prices, ps_prices) for form in job.in_forms)
        for job in instance.jobs
    )
    return math.fsum([*rent, *(max(0.0, payoff) for payoff in payoffs)])


def empty_payoff(
    instance: Instance, job: Job, worker_prices: FloatArray, ps_prices: FloatArray
) -> float:
    """Return the best payoff of `job`, which has one form, at these prices on an empty cluster.

    -inf if it cannot run.
    """
    cluster = instance.cluster
    machines, hosts = (_admitting(cluster, job, group) for group in GROUPS)
    work = job.work(instance.slot_seconds)
    # Not even all workers in all slots can do the work; a table of that length may not fit memory.
    if work > job.chunks * (instance.horizon - job.arrival):
        return -math.inf
    cheapest = np.full(work + 1, np.inf)
    cheapest[0] = 0.0
    best = -math.inf
    for slot in range(job.arrival, instance.horizon):
        workers = _unit_costs(
            job.worker, job.chunks, cluster.resources, machines, worker_prices[slot]
        )
        units = _unit_costs(job.ps, len(workers), cluster.resources, hosts, ps_prices[slot])
        # A slot without a worker is always allowed and costs nothing.
        after = cheapest.copy()
        for count in range(1, min(len(workers), work) + 1):
            # A gang runs its whole minimum even where less work is asked for.
            busy = max(count, job.min_workers)
            servers = int(job.ps_needed(busy))
            if busy > len(workers) or servers > len(units):
                break
            cost = sum(workers[:busy]) + sum(units[:servers])
            # DP_COST for every amount of work at once, from the table of the slot before.
            after[count:] = np.minimum(after[count:], cheapest[:-count] + cost)
        cheapest = after
        best = max(best, float(job.utility(slot - job.arrival)) - float(cheapest[work]))
    return best


def _admitting(cluster: Cluster, job: Job, group: TaskGroup) -> dict[int, FloatArray]:
    """Return the capacity (R,), by index, of each machine with the labels that a form requires."""
    machines = (server for server in group.servers(cluster) for _ in server.ids)
    required, capacity = group.required(job), group.capacity(cluster)
    return {
        k: capacity[k]
        for k, machine in enumerate(machines)
        if all(machine.labels.get(name) in values for name, values in required.items())
    }


def _unit_costs(
    demand: Mapping[str, float],
    limit: int,
    resources: tuple[str, ...],
    machines: Mapping[int, FloatArray],
    prices: FloatArray,
) -> list[float]:
    """Return the costs, in order, of the `limit` cheapest tasks that the empty `machines` hold."""
    needs = as_array(demand, resources)
    costs: list[float] = []
    for server, capacity in machines.items():
        ratios = [
            min(float(limit), float(capacity[r]) / float(needs[r]))
            for r in range(len(needs))
            if needs[r] > 0
        ]
        fits = min([limit, *(int(rounding.floor(ratio)) for ratio in ratios)])
        costs.extend([float(np.dot(prices[server], needs))] * fits)
    # The greedy of (32): any n units cost at least as much as the n cheapest.
    return sorted(costs)[:limit]
