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
    radius: float = 1.0,
) -> Solution:
    """A good plan in whole numbers: relax-and-fix, from the first slots to the last.

    In each step the counts of a few more slots must be whole, while those of later slots may be
    fractions; what a step has found for its slots is an upper limit on them in all later steps.
    Each step is a `close_plan`. Only the counts of `slots` are open within `near`.
    """
    for first in slots[:: params.slots_at_once]:
        last = min(first + params.slots_at_once, slots.stop)
        model.require(pulp.LpInteger, pulp.LpInteger, last)
        solution = close_plan(model, near, budget, params, rows, gap, known, radius)
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
    radius: float = 1.0,
) -> Solution:
    """The best plan of the master within limits and rows; with `known`, of those close to that.

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
        Values of a plan that the new one is close to; HiGHS starts from it.
    radius : float
        With `known`, the share of its counts, weighed by what a unit takes, that may change.

    Returns
    -------
    Solution
        With the values of all variables of the master, or none.
    """
    within = model.read(rows).limited(near)
    start: Mapping[str, float] | None = None
    if known is not None:
        within, start = nearby(within, known, model.size_of, radius), known
    part, reduced = budget.within(params.plan_limit), within.without_fixed()
    solution = highs.solve(reduced, budget=part, gap=gap, proof=False, warm_start=start)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if solution.objective is None:
        return solution
    return replace(solution, values={**within.fixed, **solution.values})


def nearby(
    model: ArrayModel, known: Mapping[str, float], size_of: Mapping[str, float], radius: float
) -> ArrayModel:
    """The model with one more limit: how much the counts may differ from known ones.

    Each unit more or less than in `known`, in any slot, counts as its size; counts that are fixed
    do not.

    Parameters
    ----------
    model : ArrayModel
        A model; the new one has more variables, each of which is 0 at `known`.
    known : mapping of str to float
        Values of the variables, by name, for whole counts.
    size_of : mapping of str to float
        Of a unit of each count, by its name.
    radius : float
        The limit, a share of what all units in `known` count together that are not fixed.
    """
    sizes = np.array([size_of.get(name, 0.0) for name in model.names])
    now = np.array([round(known.get(name, 0.0)) for name in model.names], float)
    sizes[model.is_fixed] = 0.0
    most = radius * float(sizes @ now)
    # a count of 0 now is its own change, any other one needs a variable for it
    columns, new = np.flatnonzero((sizes > 0) & (now > 0)), np.flatnonzero((sizes > 0) & (now == 0))
    number, before = len(columns), now[columns]
    apart = len(model.names) + np.arange(number)
    changes = RowArrays(
        starts=2 * np.arange(2 * number + 1),
        columns=np.column_stack([apart, columns, apart, columns]).ravel(),
        values=np.tile([1.0, -1.0, 1.0, 1.0], number),  # apart >= count - now, apart >= now - count
        lower=np.column_stack([-before, before]).ravel(),
        upper=np.full(2 * number, np.inf),
    )
    distance = RowArrays(
        starts=np.array([0, number + len(new)]),
        columns=np.append(apart, new),
        values=np.append(sizes[columns], sizes[new]),
        lower=np.array([-np.inf]),
        upper=np.array([most]),
    )
    return replace(
        model,
        names=[*model.names, *(f"apart_{model.names[k]}" for k in columns.tolist())],
        costs=np.append(model.costs, np.zeros(number)),
        lower=np.append(model.lower, np.zeros(number)),
        upper=np.append(model.upper, np.full(number, np.inf)),
        is_whole=np.append(model.is_whole, np.zeros(number, bool)),
        rows=model.rows.followed_by(changes).followed_by(distance),
    )
