"""One event-driven simulator on which every policy competes (docs/simulator)."""

from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.placement import BestFit, Placement, Room, RoundRobin
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.site import Machine, Site
from oasis.simulator.committed import Scheduler
from oasis.simulator.costs import ChangeCosts, Costs
from oasis.simulator.engine import Engine
from oasis.simulator.events import Outage
from oasis.simulator.outcome import JobTimes, Outcome
from oasis.simulator.run import replay, simulate
from oasis.simulator.speed import Linear, ScalingTable, Speed
from oasis.simulator.workload import Workload, rigid_workload
from oasis.traces.plain_job import PlainJob

__all__ = [
    "NOTHING",
    "Allocation",
    "BestFit",
    "ChangeCosts",
    "Costs",
    "Engine",
    "JobTimes",
    "Linear",
    "Machine",
    "Outage",
    "Outcome",
    "Placement",
    "PlainJob",
    "Plan",
    "Policy",
    "PolicyJob",
    "Room",
    "RoundRobin",
    "ScalingTable",
    "Scheduler",
    "Site",
    "Speed",
    "View",
    "Workload",
    "replay",
    "rigid_workload",
    "simulate",
]
