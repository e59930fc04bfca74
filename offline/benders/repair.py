"""Plans of a dive made again, with as little loss as possible: a cut or a misfit has refuted them.

Whole parameter servers make plans hard to find, where completions may change at will. So a plan
keeps what it can of the one before: its completions, and at first most of its counts. Only where
that is impossible may completions change, and then first where that costs next to nothing. All
plans leave the reserve of later slots free.

References
----------
Pochet and Wolsey, Production Planning by Mixed Integer Programming, Springer 2006: relax-and-fix.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from oasis.solvers import Solution, Status
from oasis.solvers.arrays import Limits, RowArrays, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import DiveParams, PrimalParams
from offline.benders.plans import close_plan
from offline.benders.subproblem import Separation
from offline.model.arrays import GROUPS

# For the first plan with all reserves that are tried, and for the plan in fractions before it, if
# there is one; seconds or units of work. All that follows depends on it.
FIRST_LIMIT = 30.0
# Where completions change: share of the loss that is allowed at which a plan is good enough.
LOSS_GAP = 0.25

WHOLE = 1e-4  # by which HiGHS may miss a whole number

Values = Mapping[str, float]  # of the variables of the master, by name


class Stage(NamedTuple):
    """How far a dive has come.

    Parameters
    ----------
    slots : range
        Slots that are not placed yet.
    whole : range
        Those of them in which workers are whole numbers, the next one or none.
    near : mapping of str to (float, float)
        Limits of variables of the master.
    """

    slots: range
    whole: range
    near: Limits


class PlanRepair:
    """Makes plans of a dive again.

    Parameters
    ----------
    model : CountModel
        The master.
    separation : Separation
        Of its cuts.
    params : DiveParams
        How long each part may take.

    Attributes
    ----------
    cuts : int
        How many rows it has added to the master.
    ahead : int
        Slots in which parameter servers are whole numbers, the next one and those after it.
    reserve : float
        Share of each later slot that plans leave free.
    """

    def __init__(self, model: CountModel, separation: Separation, params: DiveParams) -> None:
        self.model, self.separation, self.params = model, separation, params
        self.cuts, self.ahead, self.reserve = 0, params.look_ahead, 0.0
        self._later: list[RowArrays] = []

    def require(self, stage: Stage) -> None:
        """Let counts be whole numbers where they must be at a stage, and keep the reserve.

        The reserve of a slot becomes free when its turn comes. What found no place in the slots
        before it, and what whole numbers take beyond fractions, then has room there.
        """
        self.model.require_whole(stage.whole, stage.slots[: self.ahead])
        shares = shares_left(stage.slots, self.reserve, self.params).items()
        open_slots = [(slot, share) for slot, share in shares if slot not in stage.whole]
        room = {(group, slot): share for group in GROUPS for slot, share in open_slots}
        self._later = [self.model.within(room)]

    def as_planned(
        self, plan: Mapping[int, int], stage: Stage, least: Callable[[], float], budget: Budget
    ) -> Values | None:
        """Values of a first plan in which the jobs complete as in a known one, by form.

        None if there is no such plan, or none that is worth more than the least. Where all
        completions are given, HiGHS finds in a second what it misses where it may choose them.
        """
        self.require(stage)
        limits = narrowed(stage.near, self.completing_in(plan))
        values = self._plan(limits, budget, limit=FIRST_LIMIT).values
        return values if values and self.model.value_of(values) > least() else None

    def first(
        self, stage: Stage, least: Callable[[], float], gap: float, budget: Budget
    ) -> Values | None:
        """Values of a first plan of a dive that is worth more than the least, if any is found.

        What breaks a cut is cut off, and the plan is made anew, a few times: to keep what can be
        kept would lose more, because the plan is the best one for other rows.
        """
        limit = FIRST_LIMIT
        self.require(stage)
        values = self._plan(stage.near, budget, gap=gap, limit=limit).values
        for _ in range(self.params.rounds):
            if not values or self.model.value_of(values) <= least():
                return None
            broken = [] if budget.passed else self.separation.cut(values, budget, stage.slots)
            self.cuts += len(broken)
            if not broken:
                return values
            self.require(stage)
            values = self._plan(stage.near, budget, gap=gap, limit=limit).values or values
        return values if values and self.model.value_of(values) > least() else None

    def cut(
        self, values: Values | None, stage: Stage, least: Callable[[], float], budget: Budget
    ) -> Values | None:
        """Cut off what breaks a cut, and plan again; a few times.

        New cuts are looked for in the slots whose workers are whole, or in all if there are none.
        None if there are no values, or no plan.
        """
        for _ in range(self.params.rounds):
            if values is None or budget.passed:
                break
            new = stage.whole or stage.slots
            broken = self.separation.cut(values, budget, stage.slots, new)
            self.cuts += len(broken)
            if not broken:
                break
            changed = {slot for _, _, slot in broken}
            values = self.again(values, changed, stage, least, budget)
        return values

    def again(
        self,
        before: Values,
        changed: Collection[int],
        stage: Stage,
        least: Callable[[], float],
        budget: Budget,
    ) -> Values | None:
        """Values of a plan that loses as little as possible of the one `before`, if any is found.

        All completions stay, if that is possible. Else they may change where that costs next to
        nothing, and in each further attempt where it costs twice as much, up to all that the plan
        is worth more than the least. Where little may be lost, few completions are open, so that an
        attempt takes little time.
        """
        value = self.model.value_of(before)
        room = value - least()
        if room <= 0.0:
            return None
        values = self._unchanged(before, changed, stage, budget)
        limits = narrowed(stage.near, self._far(before, changed, stage.slots))
        for halvings in reversed(range(self.params.attempts)):
            if values or budget.passed:
                break
            values = self.losing(limits, value, room / 2**halvings, budget)
            limits = stage.near
        return values or None

    def _unchanged(
        self, before: Values, changed: Collection[int], stage: Stage, budget: Budget
    ) -> Values:
        """Values of a plan with the completions of another one, none if none is found.

        At first, the counts of far slots stay, and the whole parameter servers of slots that are
        not `changed`; then these may change by one, then at will, then far slots, too. Where that
        can neither be found nor refuted, fewer slots have whole parameter servers from then on.
        """
        self.require(stage)
        same = narrowed(stage.near, self.completing_as(before))
        far = self._far(before, changed, stage.slots)
        close = narrowed(same, far)
        others = set(stage.slots).difference(changed)
        ps = [limits for by in (0, 1) if (limits := self.kept_ps(others, before, by))]
        attempts = [*(narrowed(close, limits) for limits in ps), close, *([same] if far else [])]
        while not budget.passed:
            for limits in attempts:
                solution = self._plan(limits, budget)
                if solution.values:
                    return solution.values
            if solution.status is Status.INFEASIBLE or self.ahead == 1:
                break
            self.ahead = -(-min(self.ahead, len(stage.slots)) // 2)
            self.require(stage)
            attempts = [same]
        return {}

    def keeping(
        self, plan: Values, near: Limits, rows: Sequence[RowArrays], budget: Budget
    ) -> Values:
        """Values of a plan that keeps these rows and the completions of `plan`, if any is found."""
        return self._plan(narrowed(near, self.completing_as(plan)), budget, rows).values

    def losing(
        self,
        near: Limits,
        value: float,
        loss: float,
        budget: Budget,
        rows: Sequence[RowArrays] = (),
    ) -> Values:
        """Values of a good plan that is worth `value` less `loss` at least, if any is found."""
        least = self.model.worth(value - loss)
        return self._plan(near, budget, [*rows, least], LOSS_GAP * loss).values

    def _plan(
        self,
        near: Limits,
        budget: Budget,
        rows: Sequence[RowArrays] = (),
        gap: float = 0.0,
        limit: float | None = None,
    ) -> Solution:
        """A plan that keeps the rows and the reserve; it takes `plan_limit` unless told else."""
        params = PrimalParams(plan_limit=self.params.plan_limit if limit is None else limit)
        rows = [*rows, *self._later]
        return close_plan(self.model, near, budget, params, rows, gap, is_search=True)

    def completing_as(self, values: Values) -> Limits:
        """Limits by which the same jobs complete, in the same slots."""
        return self.completing_in(self.model.completions(values))

    def completing_in(self, slots: Mapping[int, int]) -> Limits:
        """Limits by which these forms complete in their slots, and others do not."""
        limits = self.model.completing({form: [slot] for form, slot in slots.items()})
        done = (c.done[slots[c.index]].name for c in self.model.jobs if c.index in slots)
        return {**limits, **dict.fromkeys(done, (1.0, 1.0))}

    def kept_ps(self, slots: Collection[int], values: Values, by: int) -> Limits:
        """Limits by which whole parameter servers of these slots change by so many at most."""
        return {
            variable.name: (max(0.0, now - by), min(float(variable.upBound), now + by))
            for c in self.model.jobs
            for (slot, _), variable in c.ps.items()
            if slot in slots
            for now in [float(round(values[variable.name]))]
            if abs(now - values[variable.name]) <= WHOLE
        }

    def _far(self, values: Values, changed: Collection[int], slots: range) -> Limits:
        """Limits by which the counts of far slots stay, but for those that are `changed`."""
        far = set(slots[self.params.span :]).difference(changed)
        return {
            variable.name: (now, now)
            for c, group in product(self.model.jobs, GROUPS)
            for (slot, _), variable in c.units(group).items()
            if slot in far
            for now in [min(max(0.0, values[variable.name]), variable.upBound)]
        }


def shares_left(slots: range, reserve: float, params: DiveParams) -> dict[int, float]:
    """The share of each of these slots, the last ones of the horizon, that a reserve leaves."""
    last = slots[-params.last_slots :]
    factors = {slot: params.last_factor if slot in last else 1.0 for slot in slots}
    return {slot: max(0.0, 1.0 - reserve * factor) for slot, factor in factors.items()}
