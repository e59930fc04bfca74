"""What a scheduling policy is: what it sees, what it answers, and the room it plans on.

Nothing here has a clock or knows prices. The simulator drives policies with events; an adapter to a
real cluster can drive the same policies.
"""

from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.book import NEVER_FITS, EmptyCluster, JobBook
from oasis.scheduling.curve import TrainingCurve
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.model_job import policy_job
from oasis.scheduling.node_placement import MinimumOnOneNode, MostIdle, OneNode
from oasis.scheduling.parameter_servers import ByBandwidth, FixedPs, PsRule
from oasis.scheduling.placement import BestFit, FirstFit, Placement, RoundRobin, Spread
from oasis.scheduling.placements import PLACEMENTS, check_placement, placement_named
from oasis.scheduling.policy import BasePolicy, Plan, Policy, View
from oasis.scheduling.room import Room
from oasis.scheduling.site import Machine, Site

__all__ = [
    "NEVER_FITS",
    "NOTHING",
    "PLACEMENTS",
    "Allocation",
    "BasePolicy",
    "BestFit",
    "ByBandwidth",
    "EmptyCluster",
    "FirstFit",
    "FixedPs",
    "JobBook",
    "Machine",
    "MinimumOnOneNode",
    "MostIdle",
    "OneNode",
    "Placement",
    "Plan",
    "Policy",
    "PolicyJob",
    "PsRule",
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
