"""What a solver reports, as plain data that needs no solver to read.

Nothing here imports a solver, and ``import oasis`` does not import this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Progress", "Solution", "Status", "relative_gap"]

TINY = 1e-9


class Status(StrEnum):
    """Why a solve ended. Only `OPTIMAL` claims a proof."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible_or_unbounded"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running solve stands.

    Parameters
    ----------
    elapsed : float
        Seconds since the solve began.
    incumbent : float or None
        Value of the best solution so far, None before the first.
    bound : float
        No solution is better than this; infinite at first.
    gap : float
        `relative_gap` of the two; infinite without an incumbent.
    """

    elapsed: float
    incumbent: float | None
    bound: float
    gap: float


@dataclass(frozen=True, slots=True)
class Solution:
    """Outcome of a solve.

    Parameters
    ----------
    status : Status
        Why the solve ended.
    objective : float or None
        Value of the best solution found, None if there is none.
    bound : float
        Proven limit of every solution's value: an upper bound when maximising, a lower one when
        minimising; infinite if nothing is proven.
    gap : float
        `relative_gap` of the two; infinite without a solution.
    values : mapping of str to float
        Variables by name; empty without a solution.
    """

    status: Status
    objective: float | None
    bound: float
    gap: float
    values: Mapping[str, float]


def relative_gap(objective: float | None, bound: float) -> float:
    """``|bound - objective| / max(|objective|, 1e-9)``; infinite without an objective."""
    if objective is None:
        return float("inf")
    return abs(bound - objective) / max(abs(objective), TINY)
