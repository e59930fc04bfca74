"""What dives find can be placed, and is never worth more than the optimum."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from oasis import Instance, verify
from oasis.solvers.budget import Budget
from offline import solve
from offline.benders.dive import Dive
from offline.benders.master import CountModel
from offline.benders.params import BendersParams, DiveParams
from offline.benders.separation import Separation
from offline.benders.shortfall import Fill
from offline.benders.slot_model import SlotModel
from offline.heuristics.partial_solution import PartialSolution
from offline.model.arrays import GROUPS, OfflineArrays
from offline.model.schedule_model import without_surplus
from tests.strategies import crowded_instances

SLACK = 1e-6


def solution_of(model: CountModel, fill: Fill) -> PartialSolution:
    """The jobs that have all of their work, on the servers where the slots have them."""
    solution = PartialSolution(model.arrays)
    work = np.array([c.work for c in model.jobs])
    for i, c in enumerate(model.jobs):
        if fill.due[i] >= 0 and fill.shortfall(work)[i] == 0:
            rows = (
                [
                    (slot, server, count)
                    for slot, here in enumerate(fill.units)
                    for server, count in enumerate(here[group][i].tolist())
                    if count
                ]
                for group in GROUPS
            )
            solution.put(c.index, without_surplus(c, *rows))
    return solution


@given(crowded_instances(most_jobs=6, most_slots=6), st.integers(1, 3), st.integers(0, 5))
def test_a_dive_finds_schedules_that_verify_and_no_more_than_there_is(
    instance: Instance, ahead: int, rounds: int
) -> None:
    model = CountModel(OfflineArrays.of(instance))
    assume(model.jobs)
    cuts = BendersParams().cuts
    slots, separation = SlotModel(model, cuts), Separation(model, cuts)
    params = DiveParams(look_ahead=ahead, rounds=rounds)
    run = Dive(model, separation, slots, np.ones(len(model.jobs)), params)
    nothing = [slots.empty() for _ in range(instance.horizon)]
    budget = Budget.of(None, 1000.0)
    found = run.search({}, nothing, range(instance.horizon), -1.0, 0.0, budget)
    assert found is not None
    units, done = found
    due = np.array([done.get(c.job.id, -1) for c in model.jobs])
    fill = Fill.of(units, due)
    solution = solution_of(model, fill)
    value = verify(instance, solution.by_id)
    optimum = solve(instance, "milp").objective
    assert value <= optimum * (1 + SLACK) + SLACK
    planned = math.fsum(c.utility[done[c.job.id]] for c in model.jobs if c.job.id in done)
    lacks = fill.shortfall(np.array([c.work for c in model.jobs])).any()
    if not lacks:
        assert value >= planned * (1 - SLACK)  # a job may be done before it is due
    # only a plan whose last slot found no server for something can be worth more than there is
    assert lacks or planned <= optimum * (1 + SLACK) + SLACK
