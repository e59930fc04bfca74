"""The offline problem (1)-(13): exact optima and certified intervals to judge OASiS by."""

from oasis.model.extras import require

require("solving offline", "pulp", "highspy")

from oasis.solvers import Status
from offline.benders.params import BendersParams
from offline.benders.solve import solve_benders
from offline.both import BothParams, solve_both
from offline.column_generation.bound import ConfigurationBound, configuration_bound
from offline.column_generation.params import ColumnGenerationParams, ConfigurationParams
from offline.column_generation.solve import solve_configuration
from offline.enumeration import EnumerationParams, solve_brute_force
from offline.learning import learn_prices
from offline.model.milp import CompactParams, solve_milp
from offline.result import Milestone, OfflineResult
from offline.solve import METHODS, AutoParams, solve
from offline.state import OnlinePrices, Phase, WarmStart

__all__ = [
    "METHODS",
    "AutoParams",
    "BendersParams",
    "BothParams",
    "ColumnGenerationParams",
    "CompactParams",
    "ConfigurationBound",
    "ConfigurationParams",
    "EnumerationParams",
    "Milestone",
    "OfflineResult",
    "OnlinePrices",
    "Phase",
    "Status",
    "WarmStart",
    "configuration_bound",
    "learn_prices",
    "solve",
    "solve_benders",
    "solve_both",
    "solve_brute_force",
    "solve_configuration",
    "solve_milp",
]
