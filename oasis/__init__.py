"""OASiS: online primal-dual scheduling of distributed training jobs on shared clusters.

A dozen names do most of the work: `read`, `generate`, `OASiS`, `Recourse`, `simulate`, `verify`,
`certify`, `dual_bound`, `best_schedule`, `solve`, `competitive_ratio` and `compare`. The public
names are those of `__all__`. Nearly all are imported when they are first used, so that ``import
oasis`` takes little longer than ``import numpy``; `solve` and `competitive_ratio` need the extra
``solve`` then.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from oasis.model import starting

starting.guard_command()  # before numpy is loaded

# The function `certify` has the name of its room: imported later, the room would take its place.
importlib.import_module("oasis.certify")
del certify  # noqa: F821 (the room, as an attribute)

from oasis.version import __version__  # noqa: E402

if TYPE_CHECKING:  # for type checkers and editors; at run time NAMES says where a name is
    from experiments.evaluation.comparison import compare as compare
    from experiments.evaluation.competitive_ratio import competitive_ratio as competitive_ratio
    from oasis.certify.certificate import Certificate as Certificate
    from oasis.certify.certificate import certify as certify
    from oasis.certify.duality import dual_bound as dual_bound
    from oasis.certify.verify import verify as verify
    from oasis.driver.live import LiveScheduler as LiveScheduler
    from oasis.model.cluster import Cluster as Cluster
    from oasis.model.cluster import Server as Server
    from oasis.model.decision import Decision as Decision
    from oasis.model.decision import Rejection as Rejection
    from oasis.model.errors import (
        InputError as InputError,
    )
    from oasis.model.errors import (
        InstanceError as InstanceError,
    )
    from oasis.model.errors import (
        OasisError as OasisError,
    )
    from oasis.model.errors import (
        PolicyError as PolicyError,
    )
    from oasis.model.errors import (
        SolverError as SolverError,
    )
    from oasis.model.errors import (
        VerificationError as VerificationError,
    )
    from oasis.model.examples import read_example as read_example
    from oasis.model.forms import Form as Form
    from oasis.model.forms import Speeds as Speeds
    from oasis.model.instance import Instance as Instance
    from oasis.model.instance_file import read as read
    from oasis.model.instance_file import write as write
    from oasis.model.job import Job as Job
    from oasis.model.job import gpu_job as gpu_job
    from oasis.model.resources import ResourceVector as ResourceVector
    from oasis.model.schedule import Schedule as Schedule
    from oasis.model.utility import (
        Constant as Constant,
    )
    from oasis.model.utility import (
        Deadline as Deadline,
    )
    from oasis.model.utility import (
        Piecewise as Piecewise,
    )
    from oasis.model.utility import (
        Sigmoid as Sigmoid,
    )
    from oasis.model.utility import (
        Utility as Utility,
    )
    from oasis.online.best_schedule import (
        BestSchedule as BestSchedule,
    )
    from oasis.online.best_schedule import (
        best_schedule as best_schedule,
    )
    from oasis.online.oasis import OASiS as OASiS
    from oasis.online.prices import PriceBounds as PriceBounds
    from oasis.online.prices import PriceFunction as PriceFunction
    from oasis.online.recourse.learned import LearnedPrices as LearnedPrices
    from oasis.online.recourse.policy import Recourse as Recourse
    from oasis.simulator.result import Run as Run
    from oasis.simulator.result import read_result as read_result
    from oasis.simulator.run import simulate as simulate
    from oasis.workloads.generator import generate as generate
    from offline.solve import solve as solve

NAMES = {
    "certify.certificate": ("Certificate", "certify"),
    "certify.duality": ("dual_bound",),
    "certify.verify": ("verify",),
    "model.cluster": ("Cluster", "Server"),
    "model.decision": ("Decision", "Rejection"),
    "model.errors": (
        *("InputError", "InstanceError", "OasisError", "PolicyError", "SolverError"),
        "VerificationError",
    ),
    "model.examples": ("read_example",),
    "model.forms": ("Form", "Speeds"),
    "model.instance": ("Instance",),
    "model.instance_file": ("read", "write"),
    "model.job": ("Job", "gpu_job"),
    "model.resources": ("ResourceVector",),
    "model.schedule": ("Schedule",),
    "model.utility": ("Constant", "Deadline", "Piecewise", "Sigmoid", "Utility"),
    "online.best_schedule": ("BestSchedule", "best_schedule"),
    "driver.live": ("LiveScheduler",),
    "online.oasis": ("OASiS",),
    "online.prices": ("PriceBounds", "PriceFunction"),
    "online.recourse.learned": ("LearnedPrices",),
    "online.recourse.policy": ("Recourse",),
    "simulator.result": ("Run", "read_result"),
    "simulator.run": ("simulate",),
    "workloads.generator": ("generate",),
}
# From the packages above this one, which build on it: the one place that knows them, so that
# ``import oasis`` is enough. A listed exception to the direction of imports (setup.cfg).
ABOVE = {
    "experiments.evaluation.comparison": ("compare",),
    "experiments.evaluation.competitive_ratio": ("competitive_ratio",),
    "offline.solve": ("solve",),
}
PACKAGES = ("model", "online", "scheduling", "simulator", "solvers", "traces", "workloads")
_MODULE_OF = {
    **{name: f"oasis.{module}" for module, names in NAMES.items() for name in names},
    **{name: module for module, names in ABOVE.items() for name in names},
}

__all__ = [  # noqa: PLE0604 (they are texts)
    *sorted(_MODULE_OF),
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name, or a room, when it is first used."""
    if name in _MODULE_OF:
        found = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = found
        return found
    if name in PACKAGES:
        return importlib.import_module(f"oasis.{name}")
    raise AttributeError(f"module 'oasis' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *PACKAGES})
