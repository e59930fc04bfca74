"""What a job could do if the cluster were its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.resources import as_array
from oasis.model.rounding import IntArray, units

GROUPS = ("worker", "ps")


@dataclass(frozen=True, slots=True)
class Alone:
    """What one job could do if the cluster were its own.

    Parameters
    ----------
    workers : int
        Most workers at once, with the parameter servers that they need; 0 if it can never run.
    ps : int
        Parameter servers that go with them.
    completion : int or None
        Slot in which it would complete; None if the horizon is too short.
    utility : float
        What that is worth; 0 without completion.
    """

    workers: int
    ps: int
    completion: int | None
    utility: float


def run_alone(job: Job, instance: Instance) -> Alone:
    """Run `job` on an empty cluster, with as many workers as it may have.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> alone = run_alone(instance.jobs[0], instance)
    >>> alone.workers <= instance.jobs[0].chunks, alone.completion
    (True, 6)
    """
    workers, hosts = (_room(job, group, instance.cluster, job.chunks) for group in GROUPS)
    counts = np.arange(min(workers, job.chunks) + 1)
    needed: IntArray = job.ps_needed(counts)
    most = int(counts[needed <= hosts][-1])
    if most < job.min_workers:
        return Alone(0, 0, None, 0.0)
    last = job.arrival - (-job.work(instance.slot_seconds) // most) - 1
    if last >= instance.horizon:
        return Alone(most, int(needed[most]), None, 0.0)
    return Alone(most, int(needed[most]), last, float(job.utility(last - job.arrival)))


def is_wide(job: Job, cluster: Cluster) -> bool:
    """Whether a worker fits on some server, but two of them on none."""
    return max(_tasks(job, "worker", cluster, 2), default=0) == 1


def servers_of(cluster: Cluster, group: str) -> tuple[Server, ...]:
    """The servers of a group, identical ones together."""
    return cluster.worker_servers if group == "worker" else cluster.ps_servers


def _room(job: Job, group: str, cluster: Cluster, most: int) -> int:
    """Tasks that fit on all empty servers of the group together, at most `most` on each."""
    tasks = _tasks(job, group, cluster, most)
    servers = servers_of(cluster, group)
    return sum(count * server.count for count, server in zip(tasks, servers, strict=True))


def _tasks(job: Job, group: str, cluster: Cluster, most: int) -> list[int]:
    """Tasks that fit on one empty server of each kind, at most `most`."""
    demand: Mapping[str, float] = getattr(job, group)
    servers = servers_of(cluster, group)
    table = np.array([as_array(server.capacity, cluster.resources) for server in servers])
    found: list[int] = units(table, as_array(demand, cluster.resources), most).tolist()
    return found
