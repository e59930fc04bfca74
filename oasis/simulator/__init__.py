"""One event-driven simulator on which every policy competes (docs/simulator)."""

import inspect

from oasis.scheduling.job import NOTHING as NOTHING
from oasis.scheduling.job import Allocation as Allocation
from oasis.scheduling.job import PolicyJob as PolicyJob
from oasis.scheduling.job import TrainingCurve as TrainingCurve
from oasis.scheduling.placement import BestFit as BestFit
from oasis.scheduling.placement import Placement as Placement
from oasis.scheduling.placement import Room as Room
from oasis.scheduling.placement import RoundRobin as RoundRobin
from oasis.scheduling.policy import Plan as Plan
from oasis.scheduling.policy import Policy as Policy
from oasis.scheduling.policy import View as View
from oasis.scheduling.site import Machine as Machine
from oasis.scheduling.site import Site as Site
from oasis.simulator.costs import ChangeCosts as ChangeCosts
from oasis.simulator.elastic import elastic_from_dict as elastic_from_dict
from oasis.simulator.elastic import read_elastic as read_elastic
from oasis.simulator.engine import Engine as Engine
from oasis.simulator.engine import Outage as Outage
from oasis.simulator.observation import Observation as Observation
from oasis.simulator.outcome import JobTimes as JobTimes
from oasis.simulator.outcome import Outcome as Outcome
from oasis.simulator.run import replay as replay
from oasis.simulator.run import simulate as simulate
from oasis.simulator.speed import Communication as Communication
from oasis.simulator.speed import CpuSharing as CpuSharing
from oasis.simulator.speed import Linear as Linear
from oasis.simulator.speed import Load as Load
from oasis.simulator.speed import ScalingTable as ScalingTable
from oasis.simulator.speed import Speed as Speed
from oasis.simulator.speed import TrainingSpeed as TrainingSpeed
from oasis.simulator.workload import Workload as Workload
from oasis.simulator.workload import rigid_workload as rigid_workload
from oasis.traces.plain_job import PlainJob as PlainJob

__all__ = [name for name, it in globals().items() if name[0] != "_" and not inspect.ismodule(it)]
