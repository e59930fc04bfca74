"""OASiS: online primal-dual scheduling of distributed training jobs on shared clusters."""

from oasis.certify.certificate import Certificate, certify
from oasis.certify.duality import dual_bound
from oasis.certify.verify import verify
from oasis.model.decision import Decision, Rejection
from oasis.model.errors import (
    InstanceError,
    OasisError,
    PolicyError,
    SolverError,
    VerificationError,
)
from oasis.model.instance import Cluster, Instance, Job, Server
from oasis.model.instance_file import read, write
from oasis.model.resources import ResourceVector
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid, Utility
from oasis.online.best_schedule import BestSchedule, best_schedule
from oasis.online.live import LiveScheduler
from oasis.online.oasis import OASiS
from oasis.online.prices import PriceBounds, PriceFunction
from oasis.online.recourse.learned import LearnedPrices
from oasis.simulator import simulate
from oasis.simulator.recourse import Recourse
from oasis.simulator.result import Run
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
    "LearnedPrices",
    "LiveScheduler",
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
