"""Searches that share one best solution and take turns: who gains most has most of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution

GROWTH = 1.5  # how much longer the next turn of a search is after one that gained nothing
MOST_WAIT = 5  # turns that a search waits


@dataclass(slots=True)
class Turn:
    """A search, and how it did when it last had its turn."""

    phase: str
    search: Callable[[Budget], bool]
    amount: float
    gain_rate: float = float("inf")
    last_turn: int = -1


class Alternation:
    """Gives searches their turns."""

    def __init__(
        self,
        searches: Sequence[tuple[str, Callable[[Budget], bool]]],
        best: BestSolution,
        first_turn: float,
    ) -> None:
        self.best = best
        self._turns = [Turn(phase, search, first_turn) for phase, search in searches]
        self._number = 0

    def search(self, budget: Budget) -> None:
        """Improve the best solution until the budget or the bound is reached."""
        while self._turns and not (budget.passed or self.best.is_proven):
            turn = self._next()
            part = budget.within(turn.amount)
            before = self.best.value
            self.best.state.enter(turn.phase)
            had_a_try = turn.search(part)
            gain, spent = self.best.value - before, part.elapsed
            # Without this, a search that has nothing to try would be chosen for ever.
            if not had_a_try or spent <= 0:
                self._turns.remove(turn)
                continue
            turn.gain_rate = gain / spent
            turn.last_turn = self._number
            self._number += 1
            if gain <= 0:
                # A search may need more time than its turn has for its first gain.
                turn.amount *= GROWTH

    def _next(self) -> Turn:
        # What gained nothing from the last schedules may gain from those that others found since.
        waited = max(self._turns, key=lambda turn: self._number - turn.last_turn)
        if self._number - waited.last_turn > MOST_WAIT:
            return waited
        return max(self._turns, key=lambda turn: (turn.gain_rate, -turn.last_turn))
