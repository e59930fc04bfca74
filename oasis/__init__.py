"""OASiS: online primal-dual scheduling of distributed training jobs on shared clusters."""

from oasis.errors import InstanceError, OasisError, SolverError, VerificationError
from oasis.io import read, write
from oasis.prices import PriceBounds, PriceFunction
from oasis.problem import Cluster, Instance, Job, Server
from oasis.resources import ResourceVector
from oasis.schedule import Schedule
from oasis.utility import Constant, Deadline, Piecewise, Sigmoid, Utility

__version__ = "0.1.0"

__all__ = [
    "Cluster",
    "Constant",
    "Deadline",
    "Instance",
    "InstanceError",
    "Job",
    "OasisError",
    "Piecewise",
    "PriceBounds",
    "PriceFunction",
    "ResourceVector",
    "Schedule",
    "Server",
    "Sigmoid",
    "SolverError",
    "Utility",
    "VerificationError",
    "read",
    "write",
]
