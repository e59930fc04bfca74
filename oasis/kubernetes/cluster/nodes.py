"""From nodes to the machines that a policy plans on."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from oasis.kubernetes.names import HOSTNAME, NODE, NODE_ROLE
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.objects.quantities import Amounts, ResourceMap, quantity, requests_of, summed
from oasis.model.errors import InstanceError, describe
from oasis.model.forms import Labels
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance
from oasis.scheduling.site import FINE, Machine, Site, cluster_of

ROLES = (*GROUPS, "both")
ENDED = ("Succeeded", "Failed")


class NodesError(InstanceError):
    """The labels of the nodes give no machines to plan on."""


@dataclass(frozen=True, slots=True)
class Place:
    """A machine of the plan: a node, or the share of a node that one group has."""

    id: str  # that of the node unless the node is split
    node: str
    hostname: str  # label ``kubernetes.io/hostname`` of the node, which pods select
    hosts: frozenset[str]  # which tasks it takes
    share: Fraction  # of the node


# Taints by which the control plane says that a node is away. A node has them for a moment longer
# than its conditions say so, and for as long no new pod gets there.
_STATES = "not-ready unreachable unschedulable network-unavailable out-of-service"
AWAY = frozenset(f"node.kubernetes.io/{state}" for state in _STATES.split())


def is_usable(node: Mapping[str, Any]) -> bool:
    """Return whether `node` takes new pods: Ready, not cordoned, not being deleted."""
    spec = node.get("spec") or {}
    if node["metadata"].get("deletionTimestamp") or spec.get("unschedulable"):
        return False
    if any(taint["key"] in AWAY for taint in spec.get("taints") or ()):
        return False
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def allocatable(node: Mapping[str, Any]) -> Amounts:
    """Return the resources of `node` that pods may use, in units of the cluster."""
    amounts = (node.get("status") or {}).get("allocatable") or {}
    name = node["metadata"]["name"]
    return {
        resource: quantity(value, f"node {name}: status.allocatable.{resource}")
        for resource, value in amounts.items()
    }


def phase_of(pod: Mapping[str, Any]) -> str | None:
    """Return the phase of `pod`; None before it has a status."""
    return (pod.get("status") or {}).get("phase")


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Return whether `pod` succeeded or failed, so that it uses no resources of its node."""
    return phase_of(pod) in ENDED


def foreign_use(pods: Iterable[Mapping[str, Any]], own: Container[str] = ()) -> dict[str, Amounts]:
    """Return the requests of bound pods by node, without those whose uid is in `own`."""
    requests: dict[str, list[Amounts]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod["metadata"]["uid"] not in own and not has_ended(pod):
            requests.setdefault(node, []).append(requests_of(pod["spec"]))
    return {node: summed(parts) for node, parts in requests.items()}


def places_of(nodes: Iterable[Mapping[str, Any]], ps_share: Fraction | None) -> tuple[Place, ...]:
    """Return the machines by name, for workers first; `ps_share` splits nodes of role ``both``."""
    # Nodes without the label of a role take no part. `ps_share` is the part of each node with role
    # ``both`` that is for parameter servers; None: such nodes stay whole and take both kinds.
    places: list[Place] = []
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
                places.append(Place(f"{name}/{group}", name, host, frozenset({group}), share))
        else:
            hosts = frozenset(GROUPS) if role == "both" else frozenset({role})
            places.append(Place(name, name, host, hosts, Fraction(1)))
    return tuple(
        # A machine's index follows from the names alone, so that
        # it survives a list in another order and a restart.
        sorted(places, key=lambda place: (TaskGroup.WORKER not in place.hosts, natural(place.id)))
    )


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key by which ``n9`` comes before ``n10``."""
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
    """Return the machines to plan on, each with the capacity that `foreign` requests leave."""
    # A slot has `unit_seconds` of work; from the slot `horizon` on nothing is worth anything.
    if not any(TaskGroup.WORKER in place.hosts for place in places):
        expected = f"expected one with the label {NODE_ROLE}={TaskGroup.WORKER}, found none"
        raise NodesError("nodes", expected)
    machines = []
    for place in places:
        amounts = available(place, nodes[place.node], foreign, resources)
        label = Labels({NODE: place.node})
        machines.append(Machine(place.id, tuple(amounts.values()), place.hosts, FINE, labels=label))
    end = None if horizon is None else float(horizon)
    return Site(resources.names, tuple(machines), unit_seconds, True, end)


def available(
    place: Place,
    node: Mapping[str, Any],
    foreign: Mapping[str, Amounts],
    resources: ResourceMap,
) -> dict[str, float]:
    """Return the capacity of a machine minus the requests of other pods, in units of the model."""
    used = foreign.get(place.node, {})
    free = {
        resource: max(Fraction(0), amount - used.get(resource, Fraction(0))) * place.share
        for resource, amount in allocatable(node).items()
    }
    return resources.amounts(free)


def check_groups(site: Site) -> None:
    """Raise if a machine takes both workers and parameter servers."""
    for machine in site.machines:
        if len(machine.hosts) > 1:
            expected = "expected worker or ps, or a share for parameter servers, got both"
            raise NodesError(
                f"node {machine.id}: metadata.labels.{NODE_ROLE}",
                f"{expected}: the model's two groups are disjoint",
            )


def instance_of(
    specs: Iterable[tuple[JobSpec, int]], site: Site, horizon: int, metadata: Mapping[str, Any]
) -> Instance:
    """Return an instance of the machines and of `specs`, pairs of a job and its slot of arrival."""
    jobs = tuple(replace(spec.job, arrival=arrival) for spec, arrival in specs)
    check_groups(site)
    return Instance(horizon, cluster_of(site), jobs, dict(metadata))
