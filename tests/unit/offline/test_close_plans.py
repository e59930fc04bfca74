"""A plan of what limits leave open is worth what the whole master with these limits is worth."""

import math
from itertools import product
from unittest import mock

import numpy as np
import pulp
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oasis.solvers import Status, highs
from oasis.solvers.arrays import narrowed
from oasis.solvers.budget import Budget
from oasis.testing import crowded_instances, small_instances
from offline.benders import primal
from offline.benders.master import CountModel
from offline.benders.primal import close_plan
from offline.benders.subproblem import Separation
from offline.model.arrays import GROUPS, OfflineArrays
from tests.strategies import fewer
from tests.unit.linear import as_pulp

SLACK = 1e-6


@pytest.fixture(autouse=True, scope="module")
def _closest():
    """The closest plan is the closest one, with no gap."""
    with mock.patch.object(primal, "DISTANCE_GAP", 0.0):
        yield


def whole(
    model,
    limits,
    rows,
    known,
):
    """The best plan, all variables left to HiGHS: limits are rows, changes have variables."""
    problem = as_pulp(model.read(rows))
    by_name = {variable.name: variable for variable in problem.variables()}
    for variable in list(by_name.values()):
        if variable.name in limits:
            least, most = limits[variable.name]
            problem.addConstraint(variable >= least)
            problem.addConstraint(variable <= most)
    if known is not None:
        changes = []
        for group in GROUPS:
            for c, size in zip(model.jobs, model.sizes(group).tolist(), strict=True):
                for variable in (by_name[v.name] for v in c.units(group).values()):
                    apart = problem.add_variable(f"apart_{variable.name}", 0)
                    problem.addConstraint(apart >= variable - known.get(variable.name, 0.0))
                    problem.addConstraint(apart >= known.get(variable.name, 0.0) - variable)
                    changes.append(size * apart)
        problem.setObjective(-pulp.lpSum(changes))
    return highs.solve(problem)


def known_plan(model, forms):
    """A plan in whole numbers in which these jobs alone may complete."""
    model.require(pulp.LpInteger, pulp.LpInteger)
    slots = range(model.arrays.horizon)
    solution = whole(model, model.completing(dict.fromkeys(forms, slots)), [], None)
    return {name: float(round(value)) for name, value in solution.values.items()}


def assert_keeps(model, limits, values):
    """Every variable of the master has a value, and these keep all rows and limits."""
    for variable in model.problem.variables():
        least, most = limits.get(variable.name, (-math.inf, math.inf))
        assert least - SLACK <= values[variable.name] <= most + SLACK
    for row in as_pulp(model.read()).constraints():
        used = math.fsum(c * values[v.name] for v, c in row.items())
        assert row.getLb() is None or used >= row.getLb() - SLACK
        assert row.getUb() is None or used <= row.getUb() + SLACK


@given(crowded_instances(most_jobs=6, most_slots=6), st.data())
def test_what_is_left_open_is_worth_what_the_whole_master_is_worth(instance, data):
    model = CountModel(OfflineArrays.of(instance))
    assume(model.jobs)
    horizon, forms = instance.horizon, [c.index for c in model.jobs]
    known = known_plan(model, data.draw(st.lists(st.sampled_from(forms), unique=True)))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, horizon)] * 2)))
    slots = range(first, last)
    ends = {form: horizon - data.draw(st.integers(0, horizon)) for form in forms}
    near = model.completing({form: range(end) for form, end in ends.items()})
    if data.draw(st.booleans()):
        near = narrowed(near, model.fixed_outside(known, slots))
    elif data.draw(st.booleans()):
        near = narrowed(near, model.capped(known, slots))
    else:
        fixed = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True))
        near = narrowed(near, {name: (known[name], known[name]) for name in fixed})
    kinds = st.sampled_from([pulp.LpInteger, pulp.LpContinuous])
    model.require(data.draw(kinds), data.draw(kinds))
    separation = Separation(model)
    for _ in range(3):  # cuts that are found on the way hold in the next plan
        share = data.draw(st.sampled_from([1.0, 1.0, 0.75]))
        rows = [
            model.within(dict.fromkeys(product(GROUPS, range(horizon)), share)),
            model.worth(data.draw(st.sampled_from([0.0, 0.1, 0.5])) * model.trivial_bound),
        ]
        start = data.draw(st.sampled_from([None, known]))
        found = close_plan(model, near, Budget(), rows, 0.0, start)
        expected = whole(model, near, rows, start)
        assert found.status is expected.status
        if expected.objective is None:
            assert found.values == {}
            return
        assert found.objective == pytest.approx(expected.objective, rel=1e-6, abs=1e-6)
        assert_keeps(model, near, found.values)
        if not separation.cut(found.values, Budget()):
            break


@given(small_instances())
@fewer(4)
def test_a_plan_in_which_nothing_is_open_is_the_known_one_or_none(instance):
    """With half of the room that its counts need, it is none, though no variable is left."""
    model = CountModel(OfflineArrays.of(instance))
    assume(model.jobs)
    known = known_plan(model, [c.index for c in model.jobs])
    limits = {v.name: (known[v.name], known[v.name]) for v in model.problem.variables()}
    found = close_plan(model, limits, Budget())
    assert found.values == known
    assert close_plan(model, limits, Budget(), known=known).objective == 0.0
    rows = model.within(dict.fromkeys(product(GROUPS, range(instance.horizon)), 0.5))
    plan = np.array([known[name] for name in model.read().names])
    needed = rows.sums(rows.values * plan[rows.columns])
    is_broken = bool((needed > 0.5 + 1e-9).any())
    found = close_plan(model, limits, Budget(), [rows])
    assert (found.status is Status.INFEASIBLE) == (found.values == {}) == is_broken
