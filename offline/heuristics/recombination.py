"""Recombine two solutions: jobs that run alike are fixed, HiGHS chooses for the others.

Each of these runs as in the one solution, as in the other, or not at all. Two searches that
change different parts of the horizon may both have gained something. Each job has at most two
schedules to choose from, so that HiGHS usually finds the best mix within seconds. What it has found
is worth at least as much as the better of the two.

References
----------
Balas and Niehaus, Optimized crossover-based genetic algorithms for the maximum cardinality and
maximum weight clique problems, J. Heuristics 4(2), 1998: the best mix of two solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pulp

from oasis.model import rounding
from oasis.model.groups import GROUPS
from oasis.model.rounding import FloatArray
from oasis.model.schedule import COUNT, SERVER, SLOT, Schedule
from oasis.solvers.budget import Budget
from offline.heuristics.best_solution import BestSolution, PartialSolution, is_better
from offline.model.capacities import Limit, limits_of_server, solve_within
from offline.state import Phase

GROWTH = 1.5  # how much longer the next turn of a search is after one that gained nothing
MOST_WAIT = 5  # turns that a search waits


@dataclass(slots=True)
class Turn:
    """A search, the length of its turns, and what it gained per second in the last one."""

    phase: str
    search: Callable[[Budget], bool]
    amount: float
    gain_rate: float = float("inf")
    last_turn: int = -1


class Alternation:
    """Searches that improve one solution in turns; a turn has a part `most_share` of the budget."""

    def __init__(
        self,
        searches: Sequence[tuple[str, Callable[[Budget], bool]]],
        best: BestSolution,
        first_turn: float,
        most_share: float = 1.0,
        before_turn: Callable[[], None] = lambda: None,
    ) -> None:
        self.best, self._most_share, self._before_turn = best, most_share, before_turn
        self._turns = [Turn(phase, search, first_turn) for phase, search in searches]
        self._number = 0

    def search(self, budget: Budget) -> None:
        """Improve the best solution until the budget or the bound is reached."""
        while self._turns and not (budget.passed or self.best.is_proven):
            self._before_turn()
            turn = self._next()
            part = budget.share(self._most_share).within(turn.amount)
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
        """Return the search to run next: one that waited long, or that of largest gain rate."""
        waited = max(self._turns, key=lambda turn: self._number - turn.last_turn)
        if self._number - waited.last_turn > MOST_WAIT:
            return waited
        return max(self._turns, key=lambda turn: (turn.gain_rate, -turn.last_turn))


# A job by index, one of its schedules, and the variable that says whether it runs so.
Choice = tuple[int, Schedule, pulp.LpVariable]


def recombine(first: PartialSolution, second: PartialSolution, budget: Budget) -> PartialSolution:
    """Return the best mix of two solutions found in the budget, at worst the better of the two."""
    better = max((first, second), key=lambda solution: solution.value)
    mix = _common(first, second)
    problem = pulp.LpProblem("mix", pulp.LpMaximize)
    choices = list(_choices(problem, (first, second), mix))
    if not choices:
        return better
    limits = list(_limits(mix, choices))
    problem.setObjective(
        pulp.lpSum(mix.arrays.utility(k, run.completion) * chosen for k, run, chosen in choices)
    )
    by_job: dict[int, list[pulp.LpVariable]] = {}
    for k, _, chosen in choices:
        by_job.setdefault(k, []).append(chosen)
    for either in by_job.values():
        problem.addConstraint(pulp.lpSum(either) <= 1)
    for limit in limits:
        problem.addConstraint(limit.row())
    known = {
        chosen.name: min(chosen.upBound, float(better.schedules.get(k) is schedule))
        for k, schedule, chosen in choices
    }
    solution = solve_within(problem, lambda: limits, budget=budget, warm_start=known)
    solution.uninterrupted()
    for k, schedule, chosen in choices:
        if solution.values.get(chosen.name, 0.0) > 0.5:
            mix.put(k, schedule)
    return mix if is_better(mix.value, better.value) else better


def take_up(best: BestSolution, budget: Budget) -> None:
    """Take over better schedules of the state from another process, and offer a mix with them."""
    own, is_own = best.solution, best.is_own
    best.catch_up()
    if is_own and best.solution is not own and not budget.passed:
        best.state.enter(Phase.MIX)
        best.offer(recombine(own, best.solution, budget))


def _common(first: PartialSolution, second: PartialSolution) -> PartialSolution:
    """Return a solution of the jobs with the same schedule in both."""
    common = PartialSolution(first.arrays)
    for k, schedule in first.schedules.items():
        if second.schedules.get(k) == schedule:
            common.put(k, schedule)
    return common


def _choices(
    problem: pulp.LpProblem, solutions: Sequence[PartialSolution], common: PartialSolution
) -> Iterator[Choice]:
    """Yield job, schedule and a new binary variable for each schedule of jobs not in `common`."""
    for number, solution in enumerate(solutions):
        for k, schedule in solution.schedules.items():
            if k not in common.schedules:
                name = f"run_{k}_{number}"
                yield k, schedule, problem.add_variable(name, 0, 1, pulp.LpInteger)


def _limits(common: PartialSolution, choices: Sequence[Choice]) -> Iterator[Limit]:
    """Yield (4) and (5) for the choices, in the capacity that the common jobs leave free."""
    for group, free in zip(GROUPS, common.free(), strict=True):
        users: dict[tuple[int, int], list[tuple[FloatArray, pulp.LpVariable]]] = {}
        for k, schedule, chosen in choices:
            demand = group.of(common.arrays).demand[common.arrays.form_of(k, schedule)]
            for row in group.placed(schedule).tolist():
                place, used = (row[SLOT], row[SERVER]), row[COUNT] * demand
                pairs = zip(used.tolist(), free[place].tolist(), strict=True)
                if not all(rounding.fits(amount, room) for amount, room in pairs):
                    chosen.upBound = 0
                users.setdefault(place, []).append((used, chosen))
        for place, demands in users.items():
            yield from limits_of_server(free[place], demands)
