"""Between instance files and objects of the cluster, both ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from oasis.kubernetes.cluster.nodes import cluster_of
from oasis.kubernetes.names import API_VERSION, HOSTNAME, KIND, NODE_ROLE
from oasis.kubernetes.objects.oasis_job import Clock, JobSpec
from oasis.kubernetes.objects.quantities import ResourceMap
from oasis.model.cluster import Cluster
from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.scheduling.site import GROUPS, Site

Object = dict[str, Any]


def job_object(
    job: Job,
    clock: Clock,
    resources: ResourceMap,
    *,
    slot_seconds: float,
    namespace: str = "default",
    template: Mapping[str, Any] | None = None,
    grace_seconds: int = 0,
) -> Object:
    """A job of an instance as an ``OasisJob``, its times scaled to the clock of a cluster.

    Parameters
    ----------
    job : Job
        The job.
    clock : Clock
        Of the cluster.
    resources : ResourceMap
        Names of the resources there.
    slot_seconds : float
        Length of a slot in the instance.
    namespace : str
        Of the object.
    template : mapping, optional
        What the spec of each pod has beside its container, such as tolerations.
    grace_seconds : int
        Time for a checkpoint.
    """
    work = {
        "epochs": job.epochs,
        "chunks": job.chunks,
        "minibatches": job.minibatches,
        "minibatchSeconds": job.minibatch_time * clock.work_seconds,
        "gradientMb": job.gradient_mb * clock.work_seconds / slot_seconds,
    }

    def pods(demand: Mapping[str, float]) -> Object:
        asked = resources.requests(demand)
        extended = {name: value for name, value in asked.items() if "/" in name}
        container = {
            "name": "train",
            "image": "train",
            "resources": {"requests": asked, "limits": extended},
        }
        return {"template": {"spec": {**(template or {}), "containers": [container]}}}

    spec: Object = {
        "utility": utility_object(job.utility, clock),
        "work": work,
        "workers": {"maximum": job.chunks, **pods(job.worker)},
        "gracePeriodSeconds": grace_seconds,
    }
    if job.min_workers > 1:
        spec["workers"]["minimum"] = job.min_workers
    if job.needs_ps:
        spec["parameterServers"] = pods(job.ps)
    meta = {"name": job.id, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}


def utility_object(utility: Utility, clock: Clock) -> Object:
    """A utility by slots as one by seconds; the inverse of `parse_utility`.

    Examples
    --------
    >>> from oasis.kubernetes.objects.oasis_job import parse_utility
    >>> clock, utility = Clock(slot_seconds=60.0), Deadline(value=5.0, deadline=10.0)
    >>> parse_utility(utility_object(utility, clock), clock) == utility
    True
    """
    seconds = clock.slot_seconds
    if isinstance(utility, Sigmoid):
        return {
            "kind": "sigmoid",
            "priority": utility.priority,
            "decayPerSecond": utility.decay / seconds,
            "targetSeconds": utility.target * seconds,
        }
    if isinstance(utility, Deadline):
        limit = utility.deadline * seconds
        return {"kind": "deadline", "value": utility.value, "deadlineSeconds": limit}
    if isinstance(utility, Constant):
        return {"kind": "constant", "value": utility.value}
    if isinstance(utility, Piecewise):
        delays = [delay * seconds for delay in utility.delays]
        return {"kind": "piecewise", "delaysSeconds": delays, "values": list(utility.values)}
    raise InstanceError("utility", f"expected one of the four kinds, got {utility!r:.60}")


def node_objects(cluster: Cluster, resources: ResourceMap) -> list[Object]:
    """The servers of an instance as nodes, for clusters whose nodes are made up (kwok)."""
    found = []
    for group, ids, table in zip(
        GROUPS,
        (cluster.worker_ids, cluster.ps_ids),
        (cluster.worker_capacity.tolist(), cluster.ps_capacity.tolist()),
        strict=True,
    ):
        for server, row in zip(ids, table, strict=True):
            name = server.replace("#", "-")
            amounts = resources.requests(dict(zip(cluster.resources, row, strict=True)))
            amounts["pods"] = "110"
            labels = {HOSTNAME: name, NODE_ROLE: group}
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": labels},
                    "status": {"allocatable": amounts, "capacity": amounts},
                }
            )
    return found


def instance_of(
    specs: Iterable[tuple[JobSpec, int]], site: Site, horizon: int, metadata: Mapping[str, Any]
) -> Instance:
    """What is on the cluster as an instance.

    Parameters
    ----------
    specs : iterable of (JobSpec, int)
        Jobs, and the slots in which they arrived, counted from the first of the instance.
    site : Site
        The machines.
    horizon : int
        Number of slots.
    metadata : mapping
        Where it came from.

    Raises
    ------
    InstanceError
        If a job arrives outside the horizon.
    """
    jobs = tuple(replace(spec.job, arrival=arrival) for spec, arrival in specs)
    return Instance(horizon, cluster_of(site), jobs, dict(metadata))
