"""The offline problem (1)-(13): exact optima and certified intervals to judge OASiS by."""

from oasis.solvers import Status
from offline.benders.solve import solve_benders
from offline.column_generation.bound import ConfigurationBound, configuration_bound
from offline.column_generation.solve import solve_configuration
from offline.enumeration import solve_brute_force
from offline.model.compact import solve_milp
from offline.result import Milestone, OfflineResult
from offline.solve import METHODS, solve

__all__ = [
    "METHODS",
    "ConfigurationBound",
    "Milestone",
    "OfflineResult",
    "Status",
    "configuration_bound",
    "solve",
    "solve_benders",
    "solve_brute_force",
    "solve_configuration",
    "solve_milp",
]
