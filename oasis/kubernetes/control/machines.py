"""The machines that the policy plans on, and what became of them since it was told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from oasis.kubernetes.cluster.nodes import Place, foreign_use, is_usable, places_of, site_of
from oasis.kubernetes.control.settings import Settings
from oasis.kubernetes.objects.oasis_job import Clock
from oasis.kubernetes.objects.quantities import Amounts
from oasis.scheduling.site import Site

Seen = Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines at one moment.

    Parameters
    ----------
    places : tuple of Place
        From the index of a machine to its node.
    site : Site
        As the policy knows them.
    foreign : mapping of str to Amounts
        What pods that are not ours asked of each node.
    shapes : mapping of str to mapping
        What each node offered.
    """

    places: tuple[Place, ...]
    site: Site
    foreign: Mapping[str, Amounts]
    shapes: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, seen: Seen, settings: Settings, clock: Clock) -> Machines:
        """The machines that the nodes are now.

        Raises
        ------
        NodesError
            If labels are missing or wrong.
        """
        nodes = _by_name(seen)
        foreign = foreign_use(seen["pods"])
        places = places_of(nodes.values(), settings.ps_share)
        site = site_of(
            places, nodes, foreign, settings.resources, clock.work_seconds, settings.horizon
        )
        shapes = {place.node: nodes[place.node]["status"]["allocatable"] for place in places}
        return cls(places, site, foreign, shapes)

    def have_grown(self, seen: Seen, ps_share: Fraction | None) -> bool:
        """Whether there are nodes, or amounts, that the policy does not know of."""
        nodes, known = _by_name(seen), set(self.places)
        return any(place not in known for place in places_of(nodes.values(), ps_share)) or any(
            name in nodes and nodes[name]["status"]["allocatable"] != shape
            for name, shape in self.shapes.items()
        )

    def crowded(self, seen: Seen) -> set[str]:
        """Nodes of which others ask more than when the policy was told."""
        nothing: Amounts = {}
        return {
            node
            for node, used in foreign_use(seen["pods"]).items()
            if any(amount > self.foreign.get(node, nothing).get(k, 0) for k, amount in used.items())
        }

    def lost(self, seen: Seen) -> frozenset[int]:
        """Machines whose node is gone, cordoned or not ready."""
        nodes = _by_name(seen)
        return frozenset(
            k
            for k, place in enumerate(self.places)
            if place.node not in nodes or not is_usable(nodes[place.node])
        )


def _by_name(seen: Seen) -> dict[str, Mapping[str, Any]]:
    return {node["metadata"]["name"]: node for node in seen["nodes"]}
