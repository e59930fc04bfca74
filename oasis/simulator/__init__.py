"""One event-driven simulator on which every policy competes (docs/simulator)."""

from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.curve import TrainingCurve
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.parameter_servers import ByBandwidth, FixedPs
from oasis.scheduling.placement import BestFit, Placement, RoundRobin
from oasis.scheduling.policy import Plan, Policy, View
from oasis.scheduling.room import Room
from oasis.scheduling.site import Machine, Site
from oasis.simulator.committed import Scheduler
from oasis.simulator.costs import ChangeCosts, Costs
from oasis.simulator.elastic import ElasticWorkload
from oasis.simulator.elastic_file import elastic_from_dict, read_elastic, write_elastic
from oasis.simulator.elastic_generator import generate_elastic
from oasis.simulator.engine import Engine
from oasis.simulator.events import Outage
from oasis.simulator.job_times import JobTimes
from oasis.simulator.load import Load
from oasis.simulator.observation import Observation
from oasis.simulator.outcome import Outcome
from oasis.simulator.run import replay, simulate
from oasis.simulator.speed import Linear, ScalingTable, Speed
from oasis.simulator.training_speed import Communication, CpuSharing, TrainingSpeed
from oasis.simulator.workload import Workload, rigid_workload
from oasis.traces.plain_job import PlainJob

__all__ = [
    "NOTHING",
    "Allocation",
    "BestFit",
    "ByBandwidth",
    "ChangeCosts",
    "Communication",
    "Costs",
    "CpuSharing",
    "ElasticWorkload",
    "Engine",
    "FixedPs",
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
    "Scheduler",
    "Site",
    "Speed",
    "TrainingCurve",
    "TrainingSpeed",
    "View",
    "Workload",
    "elastic_from_dict",
    "generate_elastic",
    "read_elastic",
    "replay",
    "rigid_workload",
    "simulate",
    "write_elastic",
]
