"""From nodes to the machines that a policy plans on."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from oasis.kubernetes.names import API_VERSION, HOSTNAME, KIND, NODE, NODE_ROLE
from oasis.kubernetes.objects.job_forms import expressions_of
from oasis.kubernetes.objects.node_affinity import narrowed
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.kubernetes.objects.quantities import Amounts, ResourceMap, quantity, requests_of, summed
from oasis.model.cluster import Cluster
from oasis.model.errors import InstanceError, describe
from oasis.model.forms import Labels
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.scheduling.site import FINE, Machine, Site, cluster_of

ROLES = (*GROUPS, "both")
ENDED = ("Succeeded", "Failed")


class NodesError(InstanceError):
    """What the nodes say of themselves, above all by labels, gives no machines to plan on."""


@dataclass(frozen=True, slots=True)
class Place:
    """A machine of the plan: a node, or the share of a node that one group has.

    Parameters
    ----------
    id : str
        Name of the machine; that of the node unless the node is split.
    node : str
        Name of the node.
    hostname : str
        Its label ``kubernetes.io/hostname``, which pods select.
    hosts : frozenset of str
        Which tasks it takes.
    share : Fraction
        Its part of the node.
    """

    id: str
    node: str
    hostname: str
    hosts: frozenset[str]
    share: Fraction


# Taints by which the control plane says that a node is away. A node has them for a moment longer
# than its conditions say so, and for as long no new pod gets there.
AWAY = frozenset(
    f"node.kubernetes.io/{state}"
    for state in (
        "not-ready",
        "unreachable",
        "unschedulable",
        "network-unavailable",
        "out-of-service",
    )
)


def is_usable(node: Mapping[str, Any]) -> bool:
    """Whether new pods may be put on `node`: Ready, not cordoned, not on its way out."""
    spec = node.get("spec") or {}
    if node["metadata"].get("deletionTimestamp") or spec.get("unschedulable"):
        return False
    if any(taint["key"] in AWAY for taint in spec.get("taints") or ()):
        return False
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def allocatable(node: Mapping[str, Any]) -> Amounts:
    """What pods may have of `node`, in the units of the cluster."""
    given = (node.get("status") or {}).get("allocatable") or {}
    name = node["metadata"]["name"]
    return {
        resource: quantity(value, f"node {name}: status.allocatable.{resource}")
        for resource, value in given.items()
    }


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether `pod` needs nothing of its node any more."""
    return (pod.get("status") or {}).get("phase") in ENDED


def foreign_use(pods: Iterable[Mapping[str, Any]], ours: Container[str] = ()) -> dict[str, Amounts]:
    """What bound pods ask of each node, but for `ours`, which are uids of pods."""
    found: dict[str, list[Amounts]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod["metadata"]["uid"] not in ours and not has_ended(pod):
            found.setdefault(node, []).append(requests_of(pod["spec"]))
    return {node: summed(parts) for node, parts in found.items()}


def places_of(nodes: Iterable[Mapping[str, Any]], ps_share: Fraction | None) -> tuple[Place, ...]:
    """The machines: all for workers, then all for parameter servers, each group by name.

    Parameters
    ----------
    nodes : iterable of mapping
        Nodes; those without the label of a role take no part.
    ps_share : Fraction or None
        Part of each node with role ``both`` that is for parameter servers; None: such nodes stay
        whole and take tasks of both kinds.

    Raises
    ------
    NodesError
        If a role is none, a node has no hostname, or it does not say what it has for pods.
    """
    found: list[Place] = []
    for node in nodes:
        meta = node["metadata"]
        labels = meta.get("labels") or {}
        role = labels.get(NODE_ROLE)
        if role is None:
            continue
        path = f"node {meta['name']}: metadata.labels"
        if role not in ROLES:
            expected = f"expected one of {', '.join(ROLES)}, got {describe(role)}"
            raise NodesError(f"{path}.{NODE_ROLE}", expected)
        if HOSTNAME not in labels:
            raise NodesError(f"{path}.{HOSTNAME}", "missing; pods are placed by it")
        if not (node.get("status") or {}).get("allocatable"):
            raise NodesError(f"node {meta['name']}: status.allocatable", "missing")
        name, host = meta["name"], labels[HOSTNAME]
        if role == "both" and ps_share is not None:
            for group, share in zip(GROUPS, (1 - ps_share, ps_share), strict=True):
                found.append(Place(f"{name}/{group}", name, host, frozenset({group}), share))
        else:
            hosts = frozenset(GROUPS) if role == "both" else frozenset({role})
            found.append(Place(name, name, host, hosts, Fraction(1)))
    return tuple(
        # A machine's index follows from the names alone, so that
        # it survives a list in another order and a restart.
        sorted(found, key=lambda place: (TaskGroup.WORKER not in place.hosts, natural(place.id)))
    )


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key by which ``n9`` comes before ``n10``."""
    parts = re.split(r"(\d+)", name)
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts)


def site_of(
    places: tuple[Place, ...],
    nodes: Mapping[str, Mapping[str, Any]],
    foreign: Mapping[str, Amounts],
    resources: ResourceMap,
    unit_seconds: float,
    horizon: int | None = None,
) -> Site:
    """Machines with what is left to us of each node.

    Parameters
    ----------
    places : tuple of Place
        The machines.
    nodes : mapping of str to mapping
        Nodes by name.
    foreign : mapping of str to Amounts
        What others ask of them.
    resources : ResourceMap
        Turns amounts of the cluster into those of the model.
    unit_seconds : float
        Seconds of work in a slot.
    horizon : int, optional
        Slots after which nothing is worth anything.

    Raises
    ------
    NodesError
        If no machine takes workers. Without one for parameter servers, jobs that need some find no
        room, and all others run.
    """
    if not any(TaskGroup.WORKER in place.hosts for place in places):
        expected = f"expected one with the label {NODE_ROLE}={TaskGroup.WORKER}, found none"
        raise NodesError("nodes", expected)
    machines = tuple(
        Machine(
            place.id,
            tuple(
                float(amount)
                for amount in available(place, nodes[place.node], foreign, resources).values()
            ),
            place.hosts,
            FINE,
            labels=Labels({NODE: place.node}),
        )
        for place in places
    )
    end = None if horizon is None else float(horizon)
    return Site(resources.names, machines, unit_seconds, True, end)


def available(
    place: Place,
    node: Mapping[str, Any],
    foreign: Mapping[str, Amounts],
    resources: ResourceMap,
) -> dict[str, float]:
    """What is left of a machine when others have what they ask for, in units of the model."""
    others = foreign.get(place.node, {})
    left = {
        resource: max(Fraction(0), amount - others.get(resource, Fraction(0))) * place.share
        for resource, amount in allocatable(node).items()
    }
    return resources.amounts(left)


def check_groups(site: Site) -> None:
    """Refuse machines that take workers and parameter servers alike.

    Raises
    ------
    NodesError
        Naming the node and its label: the two groups of OASiS's model are disjoint.
    """
    for machine in site.machines:
        if len(machine.hosts) > 1:
            expected = "expected worker or ps, or a share for parameter servers, got both"
            raise NodesError(
                f"node {machine.id}: metadata.labels.{NODE_ROLE}",
                f"{expected}: the model's two groups are disjoint",
            )


Object = dict[str, Any]


def job_object(
    job: Job,
    clock: SlotClock,
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
    clock : SlotClock
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
    # What a job of several forms says itself is only what they leave out: each is written whole.
    several = job.forms or job.speeds is not None
    first = job.in_forms[0]
    spec: Object = {
        "utility": utility_object(job.utility, clock),
        "work": {"epochs": first.epochs, **_work_object(first, clock, slot_seconds)},
        "workers": {"maximum": first.chunks, **_pods_object(first, GROUPS[0], resources, template)},
        "gracePeriodSeconds": grace_seconds,
    }
    if first.min_workers > 1:
        spec["workers"]["minimum"] = first.min_workers
    if any(form.needs_ps for form in job.in_forms):
        spec["parameterServers"] = _pods_object(first, GROUPS[1], resources, template)
    if several:
        spec["forms"] = [
            _form_object(form, clock, resources, slot_seconds) for form in job.in_forms
        ]
    else:
        for name, required in (("workers", job.requires), ("parameterServers", job.ps_requires)):
            if required and name in spec:
                asked = narrowed(None, expressions_of(required), "matchExpressions")
                spec[name]["template"]["spec"]["affinity"] = asked
    meta = {"name": job.id, "namespace": namespace}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}


def _work_object(job: Job, clock: SlotClock, slot_seconds: float) -> Object:
    """The work of a job of one form, but for its epochs."""
    # Both times keep their length in slots. That of the exchange follows from megabytes over
    # bandwidth, so the megabytes are scaled.
    return {
        "chunks": job.chunks,
        "minibatches": job.minibatches,
        "minibatchSeconds": job.minibatch_time * clock.work_seconds,
        "gradientMb": job.gradient_mb * clock.work_seconds / slot_seconds,
    }


def _resources_object(demand: Mapping[str, float], resources: ResourceMap) -> Object:
    asked = resources.requests(demand)
    return {"requests": asked, "limits": {name: v for name, v in asked.items() if "/" in name}}


def _pods_object(
    job: Job, group: TaskGroup, resources: ResourceMap, template: Mapping[str, Any] | None
) -> Object:
    asked = _resources_object(group.of(job), resources)
    container = {"name": "train", "image": "train", "resources": asked}
    return {"template": {"spec": {**(template or {}), "containers": [container]}}}


def _form_object(
    form: Job, clock: SlotClock, resources: ResourceMap, slot_seconds: float
) -> Object:
    """A form of a job, with all that may differ from the others."""
    counts = {"minimum": form.min_workers, "maximum": form.chunks}
    worker, ps = (_resources_object(group.of(form), resources) for group in GROUPS)
    made: Object = {
        "work": _work_object(form, clock, slot_seconds),
        "workers": {**counts, "resources": worker},
    }
    if form.requires:
        made["requires"] = {name: list(values) for name, values in form.requires.items()}
    if form.needs_ps:
        required = {name: list(values) for name, values in form.ps_requires.items()}
        made["parameterServers"] = {"resources": ps, **({"requires": required} if required else {})}
    return made


def utility_object(utility: Utility, clock: SlotClock) -> Object:
    """A utility by slots as one by seconds; the inverse of `parse_utility`.

    Examples
    --------
    >>> from oasis.kubernetes.objects.oasis_job import parse_utility
    >>> clock, utility = SlotClock(slot_seconds=60.0), Deadline(value=5.0, deadline=10.0)
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
    for group in GROUPS:
        servers = [(server, name) for server in group.servers(cluster) for name in server.ids]
        for (server, made), row in zip(servers, group.capacity(cluster).tolist(), strict=True):
            name = made.replace("#", "-")
            amounts = resources.requests(dict(zip(cluster.resources, row, strict=True)))
            # 110 pods is what a kubelet allows by default.
            amounts["pods"] = "110"
            labels = {**server.labels, HOSTNAME: name, NODE_ROLE: str(group)}
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
    check_groups(site)
    return Instance(horizon, cluster_of(site), jobs, dict(metadata))
