"""The bound from periods: schedules keep its rows, and no optimum exceeds it at any prices."""

from dataclasses import dataclass
from unittest import mock

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from oasis.model.schedule import COUNT, SLOT
from oasis.solvers import highs
from oasis.solvers.budget import Budget, WorkLimit
from oasis.testing import crowded_instances
from offline import periods as bounding
from offline import solve
from offline.benders.master import CountModel
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution
from offline.model.arrays import OfflineArrays
from offline.periods import PeriodBound, PeriodModel, rate_row
from offline.state import SolveState
from tests.strategies import fewer

SLACK = 1e-6

INSTANCES = crowded_instances(most_jobs=5, most_slots=6)


@dataclass(frozen=True)
class Cutting:
    """Cuts of a horizon, and the distance of utilities that count as one."""

    ends: frozenset[int]
    step: float

    def model(self, master):
        horizon = master.arrays.horizon
        inner = sorted(end for end in self.ends if end < horizon)
        ends = [0, *inner, horizon]
        return PeriodModel(master, [*map(range, ends, ends[1:])], self.step)


CUTTINGS = st.builds(
    Cutting, st.frozensets(st.integers(1, 5), min_size=1), st.sampled_from([0.0, 1e-3, 0.3])
)


def values_of(model, schedules):
    """What schedules mean for the variables of all periods, from the definitions alone."""
    values = np.zeros(len(model.whole().names))
    slots = {(part.job, slot) for parts in model.parts for part in parts for slot in part.done}
    for period, parts in zip(model.periods, model.parts, strict=True):
        for part in parts:
            c = model.master.jobs[part.job]
            schedule = schedules.get(c.job.id)
            if schedule is None or schedule.completion not in c.done:
                continue
            # the last of the slots that count as one with it
            end = min(t for i, t in slots if i == part.job and t >= schedule.completion)
            workers = np.zeros(model.master.arrays.horizon)
            np.add.at(workers, schedule.workers[:, SLOT], schedule.workers[:, COUNT])
            for slot, column in part.done.items():
                values[column] = period.start <= end <= slot
            for slot, column in part.workers.items():
                values[column] = workers[slot]
            brought = min(workers[: period.start].sum(), c.work)
            if part.enters is not None and end >= period.start:
                values[part.enters], values[part.brought] = 1.0, brought
            if part.leaves is not None and end >= period.stop:
                taken = min(workers[: period.stop].sum(), c.work)
                values[part.leaves], values[part.taken] = 1.0, taken
    return values


def assert_kept(model, values):
    sums = model.rows.sums(model.rows.values * values[model.rows.columns])
    assert (sums >= model.rows.lower - SLACK).all()
    assert (sums <= model.rows.upper + SLACK).all()
    assert (values >= model.lower - SLACK).all()
    assert (values <= model.upper + SLACK).all()


def noted_cuts(separation, model, rng):
    """Note some cuts that random counts break, and give each a row in every slot."""
    most = np.array([c.parallel for c in model.master.jobs], float)
    for _ in range(3):
        for group in ("worker", "ps"):
            counts = model.units(group, rng.uniform(0.0, most))
            separation.cut_off(group, counts, (), Budget())
    model.keep_cuts(np.full(len(model.whole().names), 1e9))


@given(INSTANCES, CUTTINGS, st.integers(0, 2**32 - 1))
def test_the_best_schedules_keep_all_rows_and_are_worth_no_less(instance, cutting, seed):
    rng = np.random.default_rng(seed)
    master = CountModel(OfflineArrays.of(instance))
    assume(master.jobs)
    model = cutting.model(master)
    noted_cuts(Separation(master), model, rng)
    optimum = solve(instance, "milp")
    values = values_of(model, optimum.schedules)
    for number, parts in enumerate(model.parts):
        for part in parts:
            add_rates(model, number, part, rng)
    whole = model.whole()
    assert_kept(whole, values)
    assert whole.costs @ values >= optimum.objective * (1 - SLACK) - SLACK


def add_rates(model, number, part, rng):
    """Add a row for each completion of a part, as some solution in fractions would want it."""
    point = rng.uniform(size=len(model.whole().names))
    for column in part.workers.values():
        point[column] *= model.master.jobs[part.job].parallel
    if part.brought is not None:
        point[part.brought] *= part.most_brought
    for slot in part.done:
        model.add(number, rate_row(model.master.jobs[part.job], part, slot, point))


@given(INSTANCES, CUTTINGS, st.integers(0, 2**32 - 1))
def test_at_any_prices_periods_add_up_to_a_bound(instance, cutting, seed):
    master = CountModel(OfflineArrays.of(instance))
    assume(master.jobs)
    model = cutting.model(master)
    prices = np.random.default_rng(seed).exponential(3.0, len(model.links))
    bounds = [
        highs.solve(model.period(number, prices), is_relaxation=True).bound
        for number in range(len(model.periods))
    ]
    optimum = solve(instance, "milp").objective
    assert sum(bounds) >= optimum * (1 - SLACK) - SLACK


@fewer(2)
@given(INSTANCES, st.integers(1, 3), st.sampled_from([0.0, 0.1]))
def test_rounds_never_end_below_the_optimum(instance, slots, step):
    arrays, state = OfflineArrays.of(instance), SolveState(instance, WorkLimit(1000.0).start())
    best = BestSolution(arrays, state)
    master = CountModel(arrays)
    assume(master.jobs and arrays.horizon > 1)
    with mock.patch.multiple(bounding, STEP=step, SLOW=0.0):
        periods = PeriodBound(master, Separation(master), best, slots)
        periods.relax(state.budget)
        relaxed = state.bound
        for _ in range(3):
            periods.round(state.budget)
    optimum = solve(instance, "milp").objective
    assert optimum * (1 - SLACK) - SLACK <= state.bound <= relaxed
