"""Which placement the baselines use."""

from __future__ import annotations

from oasis.simulator import BestFit, Placement, RoundRobin, Site


def placement_for(site: Site) -> Placement:
    """Round-robin on slotted instances, as the paper's rivals place; best fit for plain traces."""
    return RoundRobin() if site.slotted else BestFit()
