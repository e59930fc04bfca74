"""The machines that the policy plans on, and their changes since the last plan."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from oasis.kubernetes.cluster.nodes import (
    Place,
    available,
    check_groups,
    foreign_use,
    is_usable,
    places_of,
    site_of,
)
from oasis.kubernetes.cluster.pods import by_job, is_ending, lingers, uids_of
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.quantities import Amounts
from oasis.model.errors import InputError
from oasis.scheduling.policy import Policy, wants
from oasis.scheduling.site import Site

Seen = Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines that the policy plans on, and their nodes, as they are at one moment."""

    places: tuple[Place, ...]  # from the index of a machine to its node
    site: Site  # as the policy knows them
    foreign: Mapping[str, Amounts]  # what pods that are not ours asked of each node
    offers: Mapping[str, Mapping[str, str]]  # what each node had for pods
    settings: ControllerSettings

    @classmethod
    def of(cls, seen: Seen, settings: ControllerSettings, clock: SlotClock) -> Machines:
        """Return the machines that the nodes make now; raise `NodesError` if labels are wrong."""
        nodes = by_name(seen)
        foreign = foreign_use(seen["pods"], uids_of(by_job(seen)))
        places = places_of(nodes.values(), settings.ps_share)
        site = site_of(
            places, nodes, foreign, settings.resources, clock.work_seconds, settings.horizon
        )
        offers = {place.node: nodes[place.node]["status"]["allocatable"] for place in places}
        return cls(places, site, foreign, offers, settings)

    def have_grown(self, seen: Seen) -> bool:
        """Whether the nodes make machines that the policy does not know."""
        # A node that is gone is no reason to plan anew: it
        # counts as lost, and keeps its index in case it returns.
        return not {*places_of(seen["nodes"], self.settings.ps_share)} <= {*self.places}

    def resized(self, seen: Seen, short: Container[str], late: float = -math.inf) -> Machines:
        """Return the machines at their present size; new pods of others count only on `short`."""
        # What pods of others give back counts at once, and what they take only on nodes that were
        # `short` of room for a gang: pods of others come and go all the time, and each time jobs
        # are placed again where a machine is smaller. Pods of ours that were to be gone by the time
        # `late` count as pods of others: their end is unknown.
        stay = {pod["metadata"]["uid"] for pod in seen["pods"] if lingers(pod, late)}
        nodes, using = by_name(seen), foreign_use(seen["pods"], uids_of(by_job(seen)) - stay)
        foreign, machines = dict(self.foreign), list(self.site.machines)
        offers = dict(self.offers)
        for k, place in enumerate(self.places):
            node, used = nodes.get(place.node), using.get(place.node, {})
            if node is None:
                continue
            known, offer = self.foreign.get(place.node, {}), node["status"]["allocatable"]
            if place.node not in short:
                used = {name: min(used[name], known[name]) for name in used.keys() & known.keys()}
            if used != known or offer != self.offers[place.node]:
                foreign[place.node], offers[place.node] = used, offer
                amounts = available(place, node, foreign, self.settings.resources)
                machines[k] = replace(machines[k], amounts=tuple(amounts.values()))
        if machines == list(self.site.machines):
            return self
        site = replace(self.site, machines=tuple(machines))
        return replace(self, site=site, foreign=foreign, offers=offers)

    def taken(self, machines: Machines, seen: Seen) -> dict[int, str]:
        """Return by index of each machine smaller in `machines` a sentence on who took room."""
        if machines is self:
            return {}
        takers, mine = {}, uids_of(by_job(seen))
        foreign = [pod for pod in seen["pods"] if pod["metadata"]["uid"] not in mine]
        for k, (place, old) in enumerate(zip(self.places, self.site.machines, strict=True)):
            amounts = zip(machines.site.machines[k].amounts, old.amounts, strict=True)
            if any(now < before for now, before in amounts):
                metas = [p["metadata"] for p in foreign if p["spec"].get("nodeName") == place.node]
                last = max(metas, key=lambda m: str(m.get("creationTimestamp")), default=None)
                taker = f"pod {last['namespace']}/{last['name']}" if last else "somebody else"
                takers[k] = f"{taker} has taken room on node {place.node}"
        return takers

    def changing(self, seen: Seen, nodes: set[str], late: float) -> set[str]:
        """Return those of `nodes` whose room is about to change, as pods end or others came."""
        ending = (pod for pod in seen["pods"] if is_ending(pod) and not lingers(pod, late))
        changing = nodes & {pod["spec"].get("nodeName") for pod in ending} if nodes else nodes
        if nodes - changing:
            machines = self.resized(seen, nodes - changing, late).site.machines
            known = zip(self.places, machines, self.site.machines, strict=True)
            changing |= {place.node for place, new, old in known if new != old}
        return changing

    def lost(self, seen: Seen) -> frozenset[int]:
        """Return the indices of machines whose nodes are gone, cordoned or not ready."""
        nodes = by_name(seen)
        return frozenset(
            k
            for k, place in enumerate(self.places)
            if place.node not in nodes or not is_usable(nodes[place.node])
        )


def by_name(seen: Seen) -> dict[str, Mapping[str, Any]]:
    """Return the nodes of a snapshot by name."""
    return {node["metadata"]["name"]: node for node in seen["nodes"]}


def check_fits_nodes(policy: Policy, site: Site, minimum_run: int = 0) -> None:
    """Raise if a policy cannot plan on the nodes of `site`, or keep a minimum run time."""
    # With a minimum run time, refuse a policy that does not keep it.
    if minimum_run and not wants(policy, "keeps_run_times"):
        expected = f"expected none with policy {policy.name}, which may change a job in every slot"
        raise InputError("minimum_run_time", expected)
    if wants(policy, "plans_in_model"):
        check_groups(site)
