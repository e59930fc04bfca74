"""Which placement the baselines use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from oasis.scheduling import EmptyCluster, Placement, Site, check_placement, placement_named


class Placing:
    """The choice of a placement rule, an option of every policy.

    Parameters
    ----------
    name : str or None
        A key of `oasis.scheduling.PLACEMENTS`. None: round-robin on slotted instances, as the
        OASiS paper's rivals place, and best fit on other workloads.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = check_placement(name)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The name, None where the workload decides."""
        return {"placement": self.name}

    def on(self, site: Site) -> Placement:
        """A new rule for `site`."""
        return placement_named(self.name, site)

    def empty(self, site: Site) -> EmptyCluster:
        """What the empty cluster holds under this rule."""
        return EmptyCluster(site, partial(self.on, site))
