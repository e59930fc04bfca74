"""One event-driven simulator on which every policy competes (docs/simulator)."""

from oasis.scheduling.job import NOTHING, Allocation, PolicyJob, TrainingCurve
from oasis.scheduling.placement import BestFit, Placement, Room, RoundRobin
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.site import Machine, Site
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.elastic import elastic_from_dict, read_elastic
from oasis.simulator.engine import Engine, Outage
from oasis.simulator.observation import Observation
from oasis.simulator.outcome import JobTimes, Outcome
from oasis.simulator.run import replay, simulate
from oasis.simulator.speed import (
    Communication,
    CpuSharing,
    Linear,
    Load,
    ScalingTable,
    Speed,
    TrainingSpeed,
)
from oasis.simulator.workload import Workload, rigid_workload
from oasis.traces.plain_job import PlainJob

__all__ = [
    "NOTHING",
    "Allocation",
    "BestFit",
    "ChangeCosts",
    "Communication",
    "CpuSharing",
    "Engine",
    "JobTimes",
    "Linear",
    "Load",
    "Machine",
    "Observation",
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
    "Site",
    "Speed",
    "TrainingCurve",
    "TrainingSpeed",
    "View",
    "Workload",
    "elastic_from_dict",
    "read_elastic",
    "replay",
    "rigid_workload",
    "simulate",
]
