"""From nodes to the machines that a policy plans on, and how these change."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from oasis.kubernetes.api.resources import PODS
from oasis.kubernetes.cluster.pods import has_ended, is_ending, lingers, target_node
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.names import HOSTNAME, NODE, NODE_ROLE
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.kubernetes.objects.quantities import (
    Amounts,
    ResourceMap,
    quantity,
    requests_of,
    take,
)
from oasis.model.errors import InputError, InstanceError, describe
from oasis.model.forms import Labels
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.instance import Instance
from oasis.scheduling.policy import Policy, wants
from oasis.scheduling.site import FINE, Machine, Site, cluster_of

ROLES = (*GROUPS, "both")


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


def allocatable(node: Mapping[str, Any]) -> Amounts:
    """Return the resources of `node` that pods may use, in units of the cluster."""
    amounts = (node.get("status") or {}).get("allocatable") or {}
    name = node["metadata"]["name"]
    return {
        resource: quantity(value, f"node {name}: status.allocatable.{resource}")
        for resource, value in amounts.items()
    }


def foreign_use(pods: Iterable[Mapping[str, Any]]) -> dict[str, Amounts]:
    """Return the requests of bound pods by node."""
    used: dict[str, Amounts] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and not has_ended(pod):
            take(used.setdefault(node, {}), requests_of(pod["spec"]), -1)
    return used


def free_room(seen: Seen) -> dict[str, Amounts]:
    """Return the capacity of each node that no pod uses, bound or, if it is ours, sent there."""
    free = {name: dict(allocatable(node)) for name, node in seen.nodes.items()}
    using = [(pod["spec"].get("nodeName"), pod) for pod in seen.others]
    for node, pod in using + [(target_node(pod), pod) for pod in seen.ours]:
        # A pod that is ending still holds its node, until the kubelet has stopped it.
        if node in free and not has_ended(pod):
            take(free[node], {**requests_of(pod["spec"]), "pods": Fraction(1)})
    return free


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


def available(
    place: Place, node: Mapping[str, Any], used: Amounts, resources: ResourceMap
) -> tuple[float, ...]:
    """Return the capacity of a machine minus what others have `used`, in units of the model."""
    free = {
        resource: max(Fraction(0), amount - used.get(resource, Fraction(0))) * place.share
        for resource, amount in allocatable(node).items()
    }
    return tuple(resources.amounts(free).values())


def check_groups(site: Site) -> None:
    """Raise if a machine takes both workers and parameter servers."""
    for machine in site.machines:
        if len(machine.hosts) > 1:
            expected = "expected worker or ps, or a share for parameter servers, got both: "
            expected += "the model's two groups are disjoint"
            raise NodesError(f"node {machine.id}: metadata.labels.{NODE_ROLE}", expected)


def check_fits_nodes(policy: Policy, site: Site, minimum_run: int = 0) -> None:
    """Raise if a policy cannot plan on the nodes of `site`, or keep a minimum run time."""
    if minimum_run and not wants(policy, "keeps_run_times"):
        expected = f"expected none with policy {policy.name}, which may change a job in every slot"
        raise InputError("minimum_run_time", expected)
    if wants(policy, "plans_in_model"):
        check_groups(site)


def instance_of(
    specs: Iterable[tuple[JobSpec, int]], site: Site, horizon: int, metadata: Mapping[str, Any]
) -> Instance:
    """Return an instance of the machines and of `specs`, pairs of a job and its slot of arrival."""
    jobs = tuple(replace(spec.job, arrival=arrival) for spec, arrival in specs)
    check_groups(site)
    return Instance(horizon, cluster_of(site), jobs, dict(metadata))


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines that the policy plans on, and their nodes, as they are at one moment."""

    places: tuple[Place, ...]  # from the index of a machine to its node
    site: Site  # as the policy knows them
    nodes: Mapping[str, Mapping[str, Any]]  # by name, as they were
    foreign: Mapping[str, Amounts]  # what pods that are not ours asked of each
    resources: ResourceMap
    ps_share: Fraction | None  # as in `places_of`

    @classmethod
    def of(
        cls,
        seen: Seen,
        resources: ResourceMap,
        ps_share: Fraction | None,
        unit_seconds: float,
        horizon: int | None = None,
    ) -> Machines:
        """Return the machines that the nodes make now; raise `NodesError` if labels are wrong."""
        # A slot has `unit_seconds` of work; from the slot `horizon` on nothing is worth anything.
        places, foreign = places_of(seen.nodes.values(), ps_share), foreign_use(seen.others)
        if not any(TaskGroup.WORKER in place.hosts for place in places):
            expected = f"expected one with the label {NODE_ROLE}={TaskGroup.WORKER}, found none"
            raise NodesError("nodes", expected)
        machines = []
        for place in places:
            used, label = foreign.get(place.node, {}), Labels({NODE: place.node})
            amounts = available(place, seen.nodes[place.node], used, resources)
            machines.append(Machine(place.id, amounts, place.hosts, FINE, labels=label))
        end = None if horizon is None else float(horizon)
        site = Site(resources.names, tuple(machines), unit_seconds, True, end)
        return cls(places, site, seen.nodes, foreign, resources, ps_share)

    def have_grown(self, seen: Seen) -> bool:
        """Whether the nodes make machines that the policy does not know."""
        # A node that is gone is no reason to plan anew: it
        # counts as lost, and keeps its index in case it returns.
        return not {*places_of(seen.nodes.values(), self.ps_share)} <= {*self.places}

    def resized(self, seen: Seen, short: Container[str], late: float = -math.inf) -> Machines:
        """Return the machines at their present size; new pods of others count only on `short`."""
        # What pods of others give back counts at once, and what they take only on nodes that were
        # `short` of room for a gang: pods of others come and go all the time, and each time jobs
        # are placed again where a machine is smaller. Pods of ours that were to be gone by the time
        # `late` count as pods of others: their end is unknown.
        using = foreign_use([*seen.others, *(pod for pod in seen.ours if lingers(pod, late))])
        foreign, machines = dict(self.foreign), list(self.site.machines)
        for k, place in enumerate(self.places):
            node, used = seen.nodes.get(place.node), using.get(place.node, {})
            if node is None:
                continue
            known = self.foreign.get(place.node, {})
            if place.node not in short:
                used = {name: min(used[name], known[name]) for name in used.keys() & known.keys()}
            if used != known or node is not self.nodes.get(place.node):
                foreign[place.node] = used
                amounts = available(place, node, used, self.resources)
                machines[k] = replace(machines[k], amounts=amounts)
        if machines == list(self.site.machines):
            return self
        site = replace(self.site, machines=tuple(machines))
        return replace(self, site=site, nodes=seen.nodes, foreign=foreign)

    def taken(self, machines: Machines, seen: Seen) -> dict[int, str]:
        """Return by index of each machine smaller in `machines` a sentence on who took room."""
        if machines is self:
            return {}
        takers = {}
        for k, (place, old) in enumerate(zip(self.places, self.site.machines, strict=True)):
            amounts = zip(machines.site.machines[k].amounts, old.amounts, strict=True)
            if any(now < before for now, before in amounts):
                there = (pod for pod in seen.others if pod["spec"].get("nodeName") == place.node)
                metas = [pod["metadata"] for pod in there]
                last = max(metas, key=lambda m: str(m.get("creationTimestamp")), default=None)
                taker = f"pod {last['namespace']}/{last['name']}" if last else "somebody else"
                takers[k] = f"{taker} has taken room on node {place.node}"
        return takers

    def changing(self, seen: Seen, nodes: set[str], late: float) -> set[str]:
        """Return those of `nodes` whose room is about to change, as pods end or others came."""
        ending = (pod for pod in seen.of(PODS) if is_ending(pod) and not lingers(pod, late))
        changing = nodes & {pod["spec"].get("nodeName") for pod in ending} if nodes else nodes
        if nodes - changing:
            machines = self.resized(seen, nodes - changing, late).site.machines
            known = zip(self.places, machines, self.site.machines, strict=True)
            changing |= {place.node for place, new, old in known if new != old}
        return changing

    def lost(self, seen: Seen) -> frozenset[int]:
        """Return the indices of machines whose nodes are gone, cordoned or not ready."""
        return frozenset(k for k, at in enumerate(self.places) if at.node not in seen.usable)
