"""Which jobs, and how many workers in each slot: the compact model on merged servers.

All worker servers become one, and all hosts of parameter servers: a relaxation with a hundredth of
the variables that HiGHS solves well. `offline.heuristics.packing` carries its solution over to the
real servers, where a little room is lost; so the plan is made for a little less room than there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule
from oasis.solvers import Status
from oasis.solvers.budget import Budget
from offline.model.compact import prove
from offline.state import Standing


@dataclass(frozen=True, slots=True)
class Slack:
    """Shares of the capacity that a plan leaves free on the worker servers and on the hosts."""

    worker: float
    ps: float


def merged(instance: Instance, slack: Slack = Slack(0.0, 0.0)) -> Instance:
    """One worker server and one host with all the capacity; a relaxation without slack."""
    cluster = instance.cluster

    def one(name: str, capacity: FloatArray, share: float) -> tuple[Server]:
        total = (capacity.sum(axis=0) * (1.0 - share)).tolist()
        return (Server(name, dict(zip(cluster.resources, total, strict=True))),)

    servers = (
        one("workers", cluster.worker_capacity, slack.worker),
        one("hosts", cluster.ps_capacity, slack.ps),
    )
    return replace(instance, cluster=Cluster(cluster.resources, *servers, cluster.slot_seconds))


def plan(instance: Instance, slack: Slack, budget: Budget) -> tuple[dict[int, Schedule], float]:
    """Schedules on merged servers by job index, and a bound: valid for `instance` without slack."""
    standing = Standing(budget)
    status = prove(merged(instance, slack), standing, budget)
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    index = {job.id: k for k, job in enumerate(instance.jobs)}
    schedules = {index[name]: schedule for name, schedule in standing.schedules.items()}
    return schedules, standing.bound
