"""Scheduling policies: their view, their plan, and the free capacity to plan on.

Nothing here has a clock or knows prices. The simulator drives policies with events; an adapter to a
real cluster can drive the same policies.
"""

from oasis.scheduling.book import NEVER_FITS, EmptyCluster, JobBook
from oasis.scheduling.job import (
    NOTHING,
    Allocation,
    PolicyJob,
    TrainingCurve,
)
from oasis.scheduling.placement import (
    PLACEMENTS,
    BestFit,
    FirstFit,
    MinimumOnOneNode,
    MostIdle,
    OneNode,
    Placement,
    Room,
    RoundRobin,
    Spread,
    check_placement,
    placement_named,
)
from oasis.scheduling.policy import BasePolicy, Plan, Policy, View
from oasis.scheduling.site import Machine, Site, policy_job

__all__ = [
    "NEVER_FITS",
    "NOTHING",
    "PLACEMENTS",
    "Allocation",
    "BasePolicy",
    "BestFit",
    "EmptyCluster",
    "FirstFit",
    "JobBook",
    "Machine",
    "MinimumOnOneNode",
    "MostIdle",
    "OneNode",
    "Placement",
    "Plan",
    "Policy",
    "PolicyJob",
    "Room",
    "RoundRobin",
    "Site",
    "Spread",
    "TrainingCurve",
    "View",
    "check_placement",
    "placement_named",
    "policy_job",
]
