"""Plans: solutions of the master close to one before, in fractions or in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulp

from oasis.solvers import Solution, Status, highs
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import PrimalParams

Room = Mapping[tuple[str, int], float]  # factor on the capacity of a group in a slot; 1 if missing


def whole_plan(
    model: CountModel,
    near: Sequence[pulp.LpConstraint],
    budget: Budget,
    params: PrimalParams,
    room: Room,
    gap: float,
    slots: range,
    known: Mapping[str, float] | None = None,
) -> Solution:
    """A good plan in whole numbers: relax-and-fix, from the first slots to the last.

    In each step the counts of a few more slots must be whole, while those of later slots may be
    fractions; what a step has found for its slots is an upper limit on them in all later steps.
    Each step is a `close_plan`. Only the counts of `slots` are open within `near`.
    """
    kept = list(near)
    for first in slots[:: params.slots_at_once]:
        last = min(first + params.slots_at_once, slots.stop)
        model.require(pulp.LpInteger, pulp.LpInteger, last)
        solution = close_plan(model, kept, budget, params, room, gap, known)
        if not solution.values:
            break
        kept += model.held(solution.values, range(first, last))
    return solution


def close_plan(
    model: CountModel,
    near: Sequence[pulp.LpConstraint],
    budget: Budget,
    params: PrimalParams,
    room: Room | None = None,
    gap: float = 0.0,
    known: Mapping[str, float] | None = None,
) -> Solution:
    """The best plan of the master within further rows; with `known`, the one closest to it.

    Parameters
    ----------
    model : CountModel
        The master; it is not changed.
    near : sequence of pulp.LpConstraint
        Rows that keep the plan close to another one.
    budget : Budget
        When to stop; no plan takes longer than ``params.plan_limit``.
    params : PrimalParams
        That.
    room : mapping of (str, int) to float, optional
        Which share of the capacity of a group in a slot the plan may use; 1 where left out.
    gap : float
        Difference of bound and plan at which to stop, in utility.
    known : mapping of str to float, optional
        Values of a plan. The plan that is found then changes the fewest counts, weighed by what a
        unit takes; the rows say what it must be worth.
    """
    problem = model.problem.copy()
    for row in (*near, *model.within(room or {})):
        problem.addConstraint(row)
    if known is not None:
        gap = params.distance_gap * model.distance(problem, known)
    part = budget.within(params.plan_limit)
    solution = highs.solve(problem, budget=part, gap=gap, proof=False)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
