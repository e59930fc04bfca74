"""Plans: solutions of the master close to one before, in fractions or in whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pulp

from oasis.solvers import Solution, Status, highs
from oasis.solvers.arrays import ArrayModel, Limits, RowArrays, narrowed
from oasis.solvers.budget import Budget
from offline.benders.master import CountModel
from offline.benders.params import PrimalParams


def whole_plan(
    model: CountModel,
    near: Limits,
    budget: Budget,
    params: PrimalParams,
    rows: Sequence[pulp.LpConstraint],
    gap: float,
    slots: range,
    known: Mapping[str, float] | None = None,
) -> Solution:
    """A good plan in whole numbers: relax-and-fix, from the first slots to the last.

    In each step the counts of a few more slots must be whole, while those of later slots may be
    fractions; what a step has found for its slots is an upper limit on them in all later steps.
    Each step is a `close_plan`. Only the counts of `slots` are open within `near`.
    """
    for first in slots[:: params.slots_at_once]:
        last = min(first + params.slots_at_once, slots.stop)
        model.require(pulp.LpInteger, pulp.LpInteger, last)
        solution = close_plan(model, near, budget, params, rows, gap, known)
        if not solution.values:
            break
        near = narrowed(near, model.held(solution.values, range(first, last)))
    return solution


def close_plan(
    model: CountModel,
    near: Limits,
    budget: Budget,
    params: PrimalParams,
    rows: Sequence[pulp.LpConstraint] = (),
    gap: float = 0.0,
    known: Mapping[str, float] | None = None,
) -> Solution:
    """The best plan of the master within limits and rows; with `known`, the one closest to it.

    HiGHS gets what the limits leave open, and no more.

    Parameters
    ----------
    model : CountModel
        The master; it is not changed.
    near : mapping of str to (float, float)
        Limits of variables, by name, that keep the plan close to another one.
    budget : Budget
        When to stop; no plan takes longer than ``params.plan_limit``.
    params : PrimalParams
        That.
    rows : sequence of pulp.LpConstraint
        Further rows: what the plan must be worth, or how much room it may use.
    gap : float
        Difference of bound and plan at which to stop, in utility.
    known : mapping of str to float, optional
        Values of a plan. The plan that is found then changes the fewest counts, weighed by what a
        unit takes; the rows say what it must be worth.

    Returns
    -------
    Solution
        With the values of all variables of the master, or none.
    """
    within = model.read(rows).limited(near)
    if known is not None:
        within, scale = closest(within, known, model.size_of)
        gap = params.distance_gap * scale
    part = budget.within(params.plan_limit)
    solution = highs.solve(within.without_fixed(), budget=part, gap=gap, proof=False)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if solution.objective is None:
        return solution
    return replace(solution, values={**within.fixed, **solution.values})


def closest(
    model: ArrayModel, known: Mapping[str, float], size_of: Mapping[str, float]
) -> tuple[ArrayModel, float]:
    """The model with another objective: as few changes of counts as possible.

    Each unit more or less than in `known`, in any slot, counts as its size.

    Parameters
    ----------
    model : ArrayModel
        A model; the new one has more variables.
    known : mapping of str to float
        Values of the variables, by name, for whole counts.
    size_of : mapping of str to float
        Of a unit of each count, by its name.

    Returns
    -------
    tuple of ArrayModel and float
        The model, and what all units in `known` count together.
    """
    sizes = np.array([size_of.get(name, 0.0) for name in model.names])
    now = np.array([round(known.get(name, 0.0)) for name in model.names], float)
    scale, is_fixed = float(sizes @ now), model.is_fixed
    moved = float(sizes[is_fixed] @ np.abs(model.lower - now)[is_fixed])
    sizes[is_fixed] = 0.0
    # a count of 0 now is its own change, any other one needs a variable for it
    columns = np.flatnonzero((sizes > 0) & (now > 0))
    number, before = len(columns), now[columns]
    apart = len(model.names) + np.arange(number)
    rows = RowArrays(
        starts=2 * np.arange(2 * number + 1),
        columns=np.column_stack([apart, columns, apart, columns]).ravel(),
        values=np.tile([1.0, -1.0, 1.0, 1.0], number),  # apart >= count - now, apart >= now - count
        lower=np.column_stack([-before, before]).ravel(),
        upper=np.full(2 * number, np.inf),
    )
    changes = replace(
        model,
        names=[*model.names, *(f"apart_{model.names[k]}" for k in columns.tolist())],
        costs=-np.append(np.where(now > 0, 0.0, sizes), sizes[columns]),
        constant=-moved,
        lower=np.append(model.lower, np.zeros(number)),
        upper=np.append(model.upper, np.full(number, np.inf)),
        is_whole=np.append(model.is_whole, np.zeros(number, bool)),
        rows=model.rows.followed_by(rows),
    )
    return changes, scale
