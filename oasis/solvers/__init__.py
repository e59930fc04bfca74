"""Reports of solvers, as plain data that can be read without a solver.

Nothing here imports a solver, and ``import oasis`` does not import this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["PROOF", "TRUST", "Solution", "SolveProgress", "Status", "relative_gap"]

TINY = 1e-9  # in place of an objective of 0, by which no gap can be divided

# Solution and bound that agree this far (relative) prove each other optimal.
PROOF = 1e-6

# A solver computes its bounds in floating point. One that lies below a verified schedule by up
# to this much (relative) is taken for that schedule's value; by more, it refutes the solver
# (docs/theory, "What proven means in floating point").
TRUST = 1e-5


class Status(StrEnum):
    """Why a solve ended. Only `OPTIMAL` claims a proof.

    Examples
    --------
    >>> from oasis.solvers import Status
    >>> Status("time_limit") is Status.TIME_LIMIT
    True
    """

    OPTIMAL = "optimal"
    TIME_LIMIT = "time_limit"
    WORK_LIMIT = "work_limit"
    NODE_LIMIT = "node_limit"
    GAP_LIMIT = "gap_limit"
    NO_IMPROVEMENT = "no_improvement"
    INTERRUPTED = "interrupted"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible_or_unbounded"


@dataclass(frozen=True, slots=True)
class SolveProgress:
    """What a running solve reports: time, best objective, bound and relative gap so far."""

    elapsed: float
    incumbent: float | None
    bound: float
    gap: float
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solve found: why it ended, objective, bound, gap and values of variables."""

    status: Status
    objective: float | None  # of the best solution found
    bound: float  # no solution is better, larger or smaller; infinite if nothing is proven
    gap: float  # `relative_gap` of the two
    values: Mapping[str, float]  # of the variables; empty without a solution

    def uninterrupted(self) -> Solution:
        """Return the solution itself; raise `KeyboardInterrupt` if Ctrl-C ended the solve."""
        if self.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self


def relative_gap(objective: float | None, bound: float) -> float:
    """Return ``|bound - objective| / max(|objective|, 1e-9)``; infinite without an objective."""
    if objective is None:
        return float("inf")
    return abs(bound - objective) / max(abs(objective), TINY)
