"""OASiS: online primal-dual scheduling of distributed training jobs on shared clusters."""

from oasis.best_schedule import BestSchedule, best_schedule
from oasis.certificate import Certificate, certify
from oasis.duality import dual_bound
from oasis.errors import InstanceError, OasisError, PolicyError, SolverError, VerificationError
from oasis.io import read, write
from oasis.online import OASiS
from oasis.prices import PriceBounds, PriceFunction
from oasis.problem import Cluster, Instance, Job, Server
from oasis.recourse import Recourse
from oasis.resources import ResourceVector
from oasis.result import Decision, Rejection, Run
from oasis.schedule import Schedule
from oasis.simulator import simulate
from oasis.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.verify import verify
from oasis.version import __version__
from oasis.workloads import generate

__all__ = [
    "BestSchedule",
    "Certificate",
    "Cluster",
    "Constant",
    "Deadline",
    "Decision",
    "Instance",
    "InstanceError",
    "Job",
    "OASiS",
    "OasisError",
    "Piecewise",
    "PolicyError",
    "PriceBounds",
    "PriceFunction",
    "Recourse",
    "Rejection",
    "ResourceVector",
    "Run",
    "Schedule",
    "Server",
    "Sigmoid",
    "SolverError",
    "Utility",
    "VerificationError",
    "__version__",
    "best_schedule",
    "certify",
    "dual_bound",
    "generate",
    "read",
    "simulate",
    "verify",
    "write",
]
