"""A bound from periods: prices for the links between them, then each period as a MILP.

The links are relaxed (Lagrange). Their prices are the dual values of the linear relaxation, at
which the periods add up to its bound. As MILPs they add up to a lower one: branch and bound works
on each of them by itself, and what it gains in one adds to what it gains in the others, where a
tree of the whole horizon would have to branch on all of them at once. Solutions of periods break
cuts on what fits in a slot, which then count in all slots, and the next round is better.

A job that runs in several periods has a part in each. The part says by which slot of the period the
job has completed, how many workers it has, whether it enters the period unfinished and how much
work it brings along, and whether it leaves the period unfinished and how much work it takes along.
Of a later part, what enters is at most what leaves the part before: these links are all that the
periods share. Parameter servers are what workers need of them at least, a fixed ratio per job.

Everything here is wider than the problem (1)-(13), so that bounds hold for it: counts may be
fractions, and completions with nearly the same utility count as one, at the last of their slots and
with the utility of the first.

References
----------
Geoffrion, Lagrangean relaxation for integer programming, Mathematical Programming Study 2, 1974.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from oasis.model.rounding import CAPACITY_TOLERANCE, FloatArray
from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel, RowArrays
from oasis.solvers.budget import Budget
from oasis.solvers.lp import Relaxation
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution
from offline.model.arrays import GROUPS
from offline.model.constraints import ps_ratio
from offline.model.variables import JobVariables
from offline.state import Phase


class Row(NamedTuple):
    """``lower <= sum of coefficient times variable <= upper``."""

    terms: Mapping[int, float]
    lower: float
    upper: float


def at_least(terms: Mapping[int, float], lower: float = 0.0) -> Row:
    """Return the row that bounds a sum of terms from below."""
    return Row(terms, lower, np.inf)


def at_most(terms: Mapping[int, float], upper: float = 0.0) -> Row:
    """Return the row that bounds a sum of terms from above."""
    return Row(terms, -np.inf, upper)


def as_arrays(rows: Sequence[Row], first: int = 0) -> RowArrays:
    """Convert rows to arrays; the variable with the number `first` becomes number 0."""
    lengths = [len(row.terms) for row in rows]
    columns = [column - first for row in rows for column in row.terms]
    return RowArrays(
        starts=np.append(0, np.cumsum(lengths, dtype=np.int64)),
        columns=np.array(columns, dtype=np.int64),
        values=np.array([value for row in rows for value in row.terms.values()], dtype=float),
        lower=np.array([row.lower for row in rows], dtype=float),
        upper=np.array([row.upper for row in rows], dtype=float),
    )


@dataclass(frozen=True, slots=True)
class PeriodPart:
    """The variables of a job in one period, by number."""

    job: int
    done: Mapping[int, int]
    workers: Mapping[int, int]
    enters: int | None
    brought: int | None
    leaves: int | None
    taken: int | None
    most_brought: float

    @property
    def admitted(self) -> list[int]:
        """Variables of which one is 1 if the job runs: it completes in the period, or leaves it."""
        ends = (*[*self.done.values()][-1:], self.leaves)
        return [column for column in ends if column is not None]

    def before(self, slot: int) -> int | None:
        """The variable that is 1 if the job has completed before a slot; None if it cannot have."""
        latest = None
        for completion, column in self.done.items():
            if completion >= slot:
                break
            latest = column
        return latest


def utility_steps(utility: Mapping[int, float], step: float) -> dict[int, float]:
    """Merge completions that differ by `step` of the best or less: {last slot: first utility}."""
    steps: dict[int, float] = {}
    allowed, value = step * max(utility.values()), 0.0
    last = None
    for slot, worth in sorted(utility.items()):
        if last is None or value - worth > allowed:
            value = worth
        else:
            del steps[last]
        steps[slot], last = value, slot
    return steps


def ps_a_worker(c: JobVariables) -> float:
    """Parameter servers that a worker needs at least, (6); 0 if some workers need none."""
    ratio = ps_ratio(c.job, c.parallel) if c.ps else None
    return 0.0 if ratio is None or ratio[2] > 0 else ratio[0] / ratio[1]


def rows_of(c: JobVariables, part: PeriodPart, most_taken: float) -> list[Row]:
    """Return the rows of a job in one period; `most_taken` bounds the work that it takes along."""
    parallel, work = float(c.parallel), float(c.work)
    chain = list(part.done.values())
    rows = [at_least({b: 1.0, a: -1.0}) for a, b in itertools.pairwise(chain)]
    admitted = dict.fromkeys(part.admitted, 1.0)
    if part.enters is None or part.brought is None:
        rows.append(at_most(admitted, 1.0))
    else:
        rows.append(at_most({**admitted, part.enters: -1.0}))
        rows.append(at_most({part.brought: 1.0, part.enters: -part.most_brought}))
    brought = {} if part.brought is None else {part.brought: 1.0}
    for slot, workers in part.workers.items():  # (3): none unless the job is running
        terms = {workers: 1.0} | dict.fromkeys(admitted, -parallel)
        before = part.before(slot)
        if before is not None:
            terms[before] = terms.get(before, 0.0) + parallel
        rows.append(at_most(terms))
    for slot, done in part.done.items():  # (2): a job done by then has had its work
        had = {column: 1.0 for t, column in part.workers.items() if t <= slot}
        rows.append(at_least({**had, **brought, done: -work}))
    if part.leaves is not None and part.taken is not None:
        terms = dict.fromkeys(part.workers.values(), -1.0)
        terms |= dict.fromkeys(brought, -1.0) | {part.taken: 1.0}
        terms |= dict.fromkeys(chain[-1:], work)
        rows.append(at_most(terms))
        rows.append(at_most({part.taken: 1.0, part.leaves: -most_taken}))
    return rows


BROKEN = 1e-6  # relative excess from which a cut counts as broken


class PeriodModel:
    """The variables and rows of all periods, and the links between them."""

    def __init__(self, master: CountModel, periods: list[range], step: float) -> None:
        self.master, self.periods = master, periods
        self.parts: list[list[PeriodPart]] = []
        self.links: list[tuple[int, int]] = []
        self.new: list[Row] = []
        self.ratios = np.array([ps_a_worker(c) for c in master.jobs])
        self._names: list[str] = []
        self._costs: list[float] = []
        self._most: list[float] = []
        self._is_whole: list[bool] = []
        self._rows: list[list[Row]] = []
        self._ends: list[int] = []
        self._placed: dict[tuple[str, int, int], Row] = {}
        steps = [utility_steps(c.utility, step) for c in master.jobs]
        before: dict[int, PeriodPart] = {}
        for period in periods:
            self._rows.append([])
            self.parts.append([])
            for i in range(len(master.jobs)):
                part = self._part(i, period, steps[i], before.get(i))
                if part is not None:
                    before[i] = part
                    self.parts[-1].append(part)
            self._rows[-1] += self._one_form()
            self._ends.append(len(self._names))

    def add(self, period: int, row: Row) -> None:
        """Add a row over the variables of one period."""
        self._rows[period].append(row)
        self.new.append(row)

    @property
    def size(self) -> int:
        """Number of variables of all periods together."""
        return len(self._names)

    def whole(self) -> ArrayModel:
        """Return the model of all periods; the rows of the links come first."""
        links = [at_most({later: 1.0, earlier: -1.0}) for later, earlier in self.links]
        numbers = range(len(self.periods))
        rows = [*links, *(row for number in numbers for row in self._rows_of(number))]
        return self._model(0, self.size, np.array(self._costs), rows)

    def period(self, number: int, prices: FloatArray) -> ArrayModel:
        """Return a period's model: `prices` charge work brought in, and pay for work passed on."""
        costs = np.array(self._costs)
        for (later, earlier), price in zip(self.links, prices.tolist(), strict=True):
            costs[later] -= price
            costs[earlier] += price
        first, end = self.columns(number)
        return self._model(first, end, costs[first:end], self._rows_of(number))

    def _rows_of(self, number: int) -> list[Row]:
        """The rows of a period, those of its cuts included."""
        slots = self.periods[number]
        cuts = (row for (_, _, slot), row in self._placed.items() if slot in slots)
        return [*self._rows[number], *cuts]

    def columns(self, number: int) -> tuple[int, int]:
        """Return the number of a period's first variable, and of the first one after it."""
        return (self._ends[number - 1] if number else 0), self._ends[number]

    def counts(self, values: FloatArray) -> FloatArray:
        """Return the workers (I, T) of each job in a solution."""
        counts = np.zeros((len(self.master.jobs), self.master.arrays.horizon))
        for part in (part for parts in self.parts for part in parts):
            counts[part.job, list(part.workers)] = values[list(part.workers.values())]
        return counts

    def units(self, group: str, counts: FloatArray) -> FloatArray:
        """Return the units of a group for workers `counts` (I,): these, or parameter servers."""
        return counts * self.ratios if group == "ps" else counts

    def keep_cuts(self, values: FloatArray) -> int:
        """Add the rows of the master's cuts that a solution breaks; return how many."""
        counts, number_before = self.counts(values), len(self._placed)
        for number, slots in enumerate(self.periods):
            for group in GROUPS:
                units = self.units(group, counts[:, slots.start : slots.stop].T).T
                for k, cut in enumerate(self.master.cuts[group]):
                    for column in np.flatnonzero(cut.weights @ units > 1.0 + BROKEN).tolist():
                        self._place(number, group, k, slots[column])
        return len(self._placed) - number_before

    def _place(self, number: int, group: str, k: int, slot: int) -> None:
        """Add the row of the master's cut `k` for a slot, unless it has been added before."""
        if (group, k, slot) not in self._placed:
            row = self._cut_row(number, group, k, slot)
            self._placed[group, k, slot] = row
            self.new.append(row)

    def _cut_row(self, number: int, group: str, k: int, slot: int) -> Row:
        """Return the row of a cut of the master in a slot of a period."""
        weights = self.master.cuts[group][k].weights * (self.ratios if group == "ps" else 1.0)
        terms = {
            part.workers[slot]: float(weights[part.job])
            for part in self.parts[number]
            if slot in part.workers and weights[part.job] > 0
        }
        return at_most(terms, 1.0 + CAPACITY_TOLERANCE)

    def _part(
        self, i: int, period: range, steps: Mapping[int, float], before: PeriodPart | None
    ) -> PeriodPart | None:
        """Make the variables and rows of a job in a period; None if it cannot run there."""
        c, last = self.master.jobs[i], max(steps)
        slots = range(max(period.start, c.job.arrival), min(period.stop, last + 1))
        if not slots:
            return None
        passes = last >= period.stop
        name = f"{i}_{period.start}"
        slots_inside = [slot for slot in steps if slot in slots]
        # `done` says "by the end of a slot", so each variable earns the difference to the next.
        worth = [*(steps[slot] for slot in slots_inside), 0.0]
        done = {
            slot: self._variable(f"c_{name}_{slot}", 1.0, worth[k] - worth[k + 1], whole=True)
            for k, slot in enumerate(slots_inside)
        }
        # The tighter these limits, the less a fraction of `enters` can bring along.
        most = float(min(c.work, c.parallel * max(0, period.start - c.job.arrival)))
        most_taken = float(min(c.work, c.parallel * (slots.stop - c.job.arrival)))
        part = PeriodPart(
            i,
            done,
            {slot: self._variable(f"y_{name}_{slot}", float(c.parallel)) for slot in slots},
            None if before is None else self._variable(f"enters_{name}", 1.0, whole=True),
            None if before is None else self._variable(f"brought_{name}", most),
            self._variable(f"leaves_{name}", 1.0, whole=True) if passes else None,
            self._variable(f"taken_{name}", most_taken) if passes else None,
            most,
        )
        self._rows[-1] += rows_of(c, part, most_taken)
        if before is not None:
            pairs = ((part.enters, before.leaves), (part.brought, before.taken))
            self.links += [(a, b) for a, b in pairs if a is not None and b is not None]
        return part

    def _one_form(self) -> Iterator[Row]:
        """Yield rows of the last period: a job that arrives in it runs in one form at most."""
        first: dict[int, list[PeriodPart]] = {}
        for part in self.parts[-1]:
            if part.enters is None:
                first.setdefault(self.master.jobs[part.job].owner, []).append(part)
        for parts in first.values():
            if len(parts) > 1:
                terms = [part.admitted for part in parts]
                yield at_most({column: 1.0 for own in terms for column in own}, 1.0)

    def _variable(self, name: str, most: float, cost: float = 0.0, *, whole: bool = False) -> int:
        """Add a variable from 0 to `most` with the objective's `cost`; return its number."""
        self._names.append(name)
        self._most.append(most)
        self._costs.append(cost)
        self._is_whole.append(whole)
        return len(self._names) - 1

    def _model(self, first: int, end: int, costs: FloatArray, rows: list[Row]) -> ArrayModel:
        """Return the model of the variables from `first` to before `end`, with only these rows."""
        return ArrayModel(
            self._names[first:end],
            costs,
            0.0,
            np.zeros(end - first),
            np.array(self._most[first:end]),
            np.array(self._is_whole[first:end]),
            as_arrays(rows, first),
            maximise=True,
        )


CLEAR = 2e-3  # of a job's work: by how much a row must be broken
SOME = 1e-6  # a smaller part of a completion is only HiGHS's rounding


def keep_rates(model: PeriodModel, values: FloatArray) -> int:
    """Add the rate rows (`rate_row`) that a solution breaks clearly; return how many."""
    broken = [
        (number, row)
        for number, parts in enumerate(model.parts)
        for part in parts
        for row in broken_rates(model.master.jobs[part.job], part, values)
    ]
    for number, row in broken:
        model.add(number, row)
    return len(broken)


def broken_rates(c: JobVariables, part: PeriodPart, values: FloatArray) -> Iterator[Row]:
    """Yield the rate rows (`rate_row`) of one part that a solution breaks clearly."""
    previous = 0.0
    for slot, done in part.done.items():
        completed = float(values[done])
        if completed - previous > SOME:
            row = rate_row(c, part, slot, values)
            sides = sum(value * values[column] for column, value in row.terms.items())
            if sides < -CLEAR * c.work:
                yield row
        previous = completed


def rate_row(c: JobVariables, part: PeriodPart, slot: int, values: FloatArray) -> Row:
    """The row of completions up to `slot` with the smaller term of each minimum in a solution.

    C(k) says whether the job has completed in its period by slot k; it has N workers at most, W
    worker-slots of work, and brings along B of them at most. What is done of it by slot k works in
    slot t with at most N (C(k) - C(t - 1)) workers, so that

        sum over t <= k of min(y(t), N (C(k) - C(t - 1))) + min(brought, B C(k)) >= W C(k).

    Either term of each minimum gives a linear row that holds. A solution in fractions breaks the
    row of the smaller terms most.
    """
    done = part.done[slot]
    terms = {done: -float(c.work)}
    if part.brought is not None:
        if values[part.brought] <= part.most_brought * values[done]:
            terms[part.brought] = 1.0
        else:
            terms[done] += part.most_brought
    for t, workers in part.workers.items():
        if t > slot:
            break
        before = part.before(t)
        share = values[done] - (0.0 if before is None else values[before])
        if values[workers] <= c.parallel * share:
            terms[workers] = 1.0
        else:
            terms[done] += c.parallel
            if before is not None:
                terms[before] = terms.get(before, 0.0) - c.parallel
    return at_least(terms)


# Share of a job's best utility: completions whose utilities differ by no more count as one.
STEP = 2e-3
# Rounds of cuts of the relaxation over which the bound must fall, and by how much, relatively.
PATIENCE = 2
LEAST_PROGRESS = 3e-4
LIMIT = 40.0  # for one period in a round; seconds or units of work
# Shares of the difference of bound and incumbent: at which the solutions of all periods together
# are good enough, and by which a round must lower the bound for another one.
GAP = 0.02
SLOW = 0.01

SOLVED = (Status.OPTIMAL, Status.GAP_LIMIT)
SAFETY = 1e-9  # relative, on top of bounds, for rounding in sums


class PeriodBound:
    """Lowers the bound of a horizon split into periods of about `slots` slots, round by round."""

    def __init__(
        self,
        master: CountModel,
        separation: Separation,
        best: BestSolution,
        slots: int,
    ) -> None:
        self.separation, self.best = separation, best
        self.model = PeriodModel(master, split(master.arrays.horizon, slots), STEP)
        self.is_settled = False
        self._relaxation = Relaxation(self.model.whole())
        self._relaxed_bound = math.inf
        self.model.new.clear()
        self.prices = np.zeros(len(self.model.links))
        self._solution = np.zeros(self.model.size)
        self._begin()

    def _begin(self) -> None:
        """Discard the bounds of the periods, because the prices of the links have changed."""
        self._bounds = [math.inf] * len(self.model.periods)
        self._has_news = [True] * len(self.model.periods)  # since the period was solved

    def relax(self, budget: Budget) -> None:
        """Solve the linear relaxation repeatedly, and add the rate rows and cuts it violates."""
        self.best.state.enter(Phase.CUTTING_PLANES)
        bounds = list[float]()
        slots = range(self.model.master.arrays.horizon)
        while not (budget.passed or self.best.is_proven):
            values = self._solve_relaxation(budget)
            if values is None:
                break
            bounds.append(self._relaxed_bound)
            if len(bounds) > PATIENCE:
                progress = bounds[-1 - PATIENCE] - bounds[-1]
                if progress <= LEAST_PROGRESS * bounds[-1]:
                    break
            rates = keep_rates(self.model, values)
            if self._cut(values, slots, budget) + rates == 0:
                break
        self._begin()

    def round(self, budget: Budget) -> None:
        """Solve each period at the prices of the links, and add cuts for counts that do not fit."""
        state = self.best.state
        state.enter(Phase.PERIODS)
        before, gap = state.bound, max(0.0, state.bound - self.best.value)
        for number in range(len(self.model.periods)):
            # At the same prices the same rows give the same bound.
            if self._has_news[number]:
                solution = self._solved(number, budget)
                # A bound of fewer rows at the same prices holds as well.
                self._bounds[number] = min(self._bounds[number], solution.bound)
                if solution.objective is not None:
                    first, end = self.model.columns(number)
                    self._solution[first:end] = list(solution.values.values())
                    self._has_news[number] = solution.status not in SOLVED
                if budget.passed or self.best.is_proven:
                    break
        state.record_bound(math.fsum(self._bounds) * (1 + SAFETY))
        for number, slots in enumerate(self.model.periods):
            self._has_news[number] |= self._cut(self._solution, slots, budget) > 0
        is_worth_it = state.bound < before - SLOW * gap
        self.is_settled = not (is_worth_it and any(self._has_news))

    def _solved(self, number: int, budget: Budget) -> Solution:
        """Solve one period as a MILP; the solution's values are in the order of its variables."""
        difference = max(0.0, self.best.state.bound - self.best.value)
        return highs.solve(
            self.model.period(number, self.prices),
            budget=budget.within(LIMIT),
            # The gaps of all periods add up in the bound.
            gap=GAP * difference / len(self.model.periods),
            proof=False,
            is_relaxation=True,
        ).uninterrupted()

    def _solve_relaxation(self, budget: Budget) -> FloatArray | None:
        """Return values of the linear relaxation with all stored cuts; None if time is up."""
        while True:
            rows = as_arrays(self.model.new)
            self.model.new.clear()
            self._relaxation.add(rows)
            solution = self._relaxation.solve(budget)
            if solution is None:
                return None
            self._relaxed_bound = solution.bound * (1 + SAFETY)
            self.best.state.record_bound(self._relaxed_bound)
            # Optimal for the linear relaxation, so that the periods begin with its bound.
            self.prices = self._relaxation.duals[: len(self.model.links)]
            values = np.array(list(solution.values.values()))
            if not self.model.keep_cuts(values):
                return values

    def _cut(self, values: FloatArray, slots: Collection[int], budget: Budget) -> int:
        """Find and add cuts that a solution breaks in these slots; return how many it breaks."""
        counts = self.model.counts(values)
        cuts = self.model.master.cuts
        broken = 0
        for slot, group in product(slots, GROUPS):
            units = self.model.units(group, counts[:, slot])
            # A known cut costs one product, a new one a search.
            is_known = any(cut.is_violated(units) for cut in cuts[group])
            broken += is_known or self.separation.cut_off(group, units, (), budget)
        self.model.keep_cuts(values)
        return broken


def split(horizon: int, slots: int) -> list[range]:
    """Split `horizon` into at least two periods of about `slots` slots, as equal as possible."""
    number = max(2, round(horizon / slots))
    ends = [round(k * horizon / number) for k in range(number + 1)]
    return [range(*pair) for pair in pairwise(ends) if pair[0] < pair[1]]
