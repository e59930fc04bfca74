"""One event-driven simulator on which every policy competes (docs/simulator)."""

from oasis.simulator.allocation import NOTHING, Allocation
from oasis.simulator.committed import Scheduler
from oasis.simulator.costs import ChangeCosts, Costs
from oasis.simulator.engine import Engine
from oasis.simulator.events import Outage
from oasis.simulator.outcome import JobTimes, Outcome
from oasis.simulator.placement import BestFit, Placement, Room, RoundRobin
from oasis.simulator.policy import Plan, Policy, View
from oasis.simulator.run import replay, simulate
from oasis.simulator.site import Machine, Site
from oasis.simulator.speed import Linear, ScalingTable, Speed
from oasis.simulator.workload import PlainJob, SimJob, Workload, rigid_workload

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
    "Room",
    "RoundRobin",
    "ScalingTable",
    "Scheduler",
    "SimJob",
    "Site",
    "Speed",
    "View",
    "Workload",
    "replay",
    "rigid_workload",
    "simulate",
]
