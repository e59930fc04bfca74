"""What dives find can be placed, and is never worth more than the optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oasis import Instance, verify
from oasis.solvers.budget import WorkLimit
from offline import solve
from offline.benders.params import BendersParams, DiveParams
from offline.benders.parts import Parts
from offline.benders.slot_model import Fill
from offline.benders.solve import Benders
from offline.heuristics.best_solution import PartialSolution
from offline.model.arrays import OfflineArrays
from offline.problem import OfflineProblem
from offline.state import OnlinePrices, SolveState, WarmStart
from tests.strategies import crowded_instances, fewer

SLACK = 1e-6


def parts_of(instance: Instance, params: BendersParams) -> Parts:
    """The parts of the decomposition, with prices of 0 and no schedules, and work to spend."""
    state, arrays = SolveState(WorkLimit(1000.0).start()), OfflineArrays.of(instance)
    state.found(0.0, {})
    shapes = (len(group.capacity) for group in (arrays.worker, arrays.ps))
    resources = len(instance.cluster.resources)
    worker, ps = (np.zeros((arrays.horizon, servers, resources)) for servers in shapes)
    rng = np.random.default_rng(0)
    problem = OfflineProblem(instance, WarmStart({}, OnlinePrices(worker, ps, {})), state)
    return Benders(params).prepared(problem, state.budget, rng).parts


@fewer(3)
@given(
    crowded_instances(most_jobs=6, most_slots=6),
    st.integers(1, 3),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.02, 0.3]),
)
def test_a_dive_is_worth_what_it_says_and_no_more_than_there_is(
    instance: Instance, ahead: int, rounds: int, span: int, reserve: float
) -> None:
    dive = DiveParams(look_ahead=ahead, rounds=rounds, span=span, reserve=reserve)
    params = BendersParams(dive=dive)
    parts = parts_of(instance, params)
    model, best = parts.model, parts.best
    assume(model.jobs)
    optimum = solve(instance, "milp").objective
    found = parts.primal._dive.search({}, lambda: -1.0, 0.0, best.state.budget)
    assert found is not None
    units, done = found
    work = np.array([c.work for c in model.jobs])
    fill = Fill.of(units, np.array([done.get(c.index, -1) for c in model.jobs]))
    assert (fill.workers.sum(axis=0) <= work).all()
    planned = math.fsum(c.utility[done[c.index]] for c in model.jobs if c.index in done)
    if not fill.shortfall(work).any():  # else the last slot found no server for something
        assert planned <= optimum * (1 + SLACK) + SLACK
    offered: list[PartialSolution] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts.primal._dive, "search", lambda *_: found)
        patch.setattr(best, "offer", offered.append)
        parts.primal.dive({}, best.state.budget)
    value = verify(instance, offered[0].by_id)
    assert value <= optimum * (1 + SLACK) + SLACK
    if not fill.shortfall(work).any():
        assert value >= planned * (1 - SLACK)  # a job may be done before it is due
