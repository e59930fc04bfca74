"""The offline problem (1)-(13): exact optima and certified intervals to judge OASiS by."""

from oasis.extras import require

require("solving offline", "pulp", "highspy")

from oasis.solvers import Status
from oasis.solvers.budget import Gap, NoImprovement, Stop, TimeLimit, WorkLimit
from offline.column_generation.bound import ConfigurationBound, configuration_bound
from offline.learning import learn_prices
from offline.own_constraints import OfflineModel
from offline.params import (
    AutoParams,
    BendersParams,
    ColumnGenerationParams,
    CompactParams,
    ConfigurationParams,
    EnumerationParams,
)
from offline.result import Milestone, OfflineResult
from offline.solve import METHODS, solve
from offline.state import OnlinePrices, Phase, WarmStart

__all__ = [
    "METHODS",
    "AutoParams",
    "BendersParams",
    "ColumnGenerationParams",
    "CompactParams",
    "ConfigurationBound",
    "ConfigurationParams",
    "EnumerationParams",
    "Gap",
    "Milestone",
    "NoImprovement",
    "OfflineModel",
    "OfflineResult",
    "OnlinePrices",
    "Phase",
    "Status",
    "Stop",
    "TimeLimit",
    "WarmStart",
    "WorkLimit",
    "configuration_bound",
    "learn_prices",
    "solve",
]
