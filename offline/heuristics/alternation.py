"""Several searches in turn: most of the time goes to the one that gains most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution
from offline.heuristics.params import AlternationParams


@dataclass(slots=True)
class Turn:
    """A search, and how it did when it last had its turn.

    Parameters
    ----------
    phase : str
        What users see while it runs.
    search : callable
        Improves the best solution until a budget is spent, and returns whether it had anything to
        try.
    amount : float
        Seconds or units of work of its next turn.
    gain_rate : float
        Utility gained per second or unit of work in its last turn; inf before the first.
    last_turn : int
        Number of its last turn, counted over the turns of all searches; -1 before the first.
    """

    phase: str
    search: Callable[[Budget], bool]
    amount: float
    gain_rate: float = float("inf")
    last_turn: int = -1


class Alternation:
    """Searches that share one best solution and take turns.

    The search that gained most per second or unit of work in its last turn goes next; of two with
    the same gain, the one that has waited longer. No search waits longer than `most_wait` turns.
    After a turn that gained nothing, the next turn of the same search is longer.

    Parameters
    ----------
    searches : sequence of (str, callable)
        Phase and search. A search that had nothing to try gets no further turn.
    best : BestSolution
        What they improve.
    params : AlternationParams
        How long turns are.
    before_turn : callable, optional
        Called before each turn, for example to take up what others have found.
    """

    def __init__(
        self,
        searches: Sequence[tuple[str, Callable[[Budget], bool]]],
        best: BestSolution,
        params: AlternationParams,
        before_turn: Callable[[], None] = lambda: None,
    ) -> None:
        self.best, self.params, self._before_turn = best, params, before_turn
        self._turns = [Turn(phase, search, params.first_turn) for phase, search in searches]
        self._number = 0

    def search(self, budget: Budget) -> None:
        """Improve the best solution until the budget or the bound is reached."""
        while self._turns and not (budget.passed or self.best.is_proven):
            self._before_turn()
            turn = self._next()
            part = budget.share(self.params.most_share).within(turn.amount)
            before = self.best.value
            self.best.state.enter(turn.phase)
            had_a_try = turn.search(part)
            gain, spent = self.best.value - before, part.elapsed
            if not had_a_try or spent <= 0:
                self._turns.remove(turn)
                continue
            turn.gain_rate = gain / spent
            turn.last_turn = self._number
            self._number += 1
            if gain <= 0:
                turn.amount *= self.params.growth

    def _next(self) -> Turn:
        waited = max(self._turns, key=lambda turn: self._number - turn.last_turn)
        if self._number - waited.last_turn > self.params.most_wait:
            return waited
        return max(self._turns, key=lambda turn: (turn.gain_rate, -turn.last_turn))
