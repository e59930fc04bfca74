"""What a scheduling policy is: what it sees, what it answers, and the room it plans on.

Nothing here has a clock or knows prices. The simulator drives policies with events; an adapter to a
real cluster can drive the same policies.
"""

from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.placement import BestFit, Placement, Room, RoundRobin
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.site import Machine, Site

__all__ = [
    "NOTHING",
    "Allocation",
    "BestFit",
    "Machine",
    "Placement",
    "Plan",
    "Policy",
    "PolicyJob",
    "Room",
    "RoundRobin",
    "Site",
    "View",
]
