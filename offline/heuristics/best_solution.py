"""The best verified solution so far: heuristics start from it, and offer it better ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Self

from oasis.certify.verify import verify
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from offline.heuristics.partial_solution import PartialSolution
from offline.model.arrays import OfflineArrays
from offline.state import SolveState

BETTER = 1e-12  # relative: what rounding may add to a total utility


class BestSolution:
    """The incumbent as a solution that heuristics can change.

    Parameters
    ----------
    start : PartialSolution
        A feasible solution.
    state : SolveState
        Is told of every improvement.
    verify : callable
        Returns the value of schedules by job id, and raises `VerificationError` if they break a
        constraint.

    Attributes
    ----------
    solution : PartialSolution
        The best so far; never changed in place.
    is_own : bool
        Whether it was offered here, rather than known at the start or taken up from elsewhere.
    """

    def __init__(
        self,
        start: PartialSolution,
        state: SolveState,
        verify: Callable[[Mapping[str, Schedule]], float],
    ) -> None:
        self.solution = start
        self.is_own = False
        self.state = state
        self._verify = verify
        state.found(verify(start.by_id), start.by_id)

    @classmethod
    def of(cls, instance: Instance, arrays: OfflineArrays, state: SolveState) -> Self:
        """The incumbent of a state; what is offered is verified on the instance."""
        return cls(PartialSolution(arrays, state.schedules), state, partial(verify, instance))

    @property
    def value(self) -> float:
        """Total utility (1)."""
        return self.solution.value

    def offer(self, solution: PartialSolution) -> bool:
        """Keep a solution if it is better, and return whether it was.

        Raises
        ------
        VerificationError
            If it is better, but not feasible.
        """
        if not is_better(solution.value, self.value):
            return False
        value = self._verify(solution.by_id)
        self.solution, self.is_own = solution, True
        self.state.found(value, solution.by_id)
        return True

    def catch_up(self) -> None:
        """Take up schedules that the state has from elsewhere, if they are better."""
        known = self.state.incumbent
        if known is not None and is_better(known, self.value):
            self.solution = PartialSolution(self.solution.arrays, self.state.schedules)
            self.is_own = False

    @property
    def is_proven(self) -> bool:
        """Whether the bound leaves nothing to gain."""
        return self.state.is_proven


def is_better(value: float, known: float) -> bool:
    """Whether a total utility exceeds another by more than rounding."""
    return value > known * (1 + BETTER)
