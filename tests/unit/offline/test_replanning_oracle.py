"""The search over counts against enumeration: it never loses, never exceeds the optimum."""

from unittest import mock

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from oasis.certify.verify import verify
from oasis.solvers.budget import WorkLimit
from offline.benders import replanning
from offline.benders.master import CountModel
from offline.benders.primal import PrimalHeuristic
from offline.benders.replanning import Replanning
from offline.benders.subproblem import Separation
from offline.heuristics.best_solution import BestSolution, DualValues, PartialSolution
from offline.model.arrays import OfflineArrays
from offline.state import SolveState
from tests.oracle.odds import crossed, quarrels
from tests.strategies import fewer, small_instances
from tests.unit.offline.test_benders import optimum


@given(
    st.one_of(quarrels(), crossed(), small_instances()),
    st.integers(0, 3),
    st.sampled_from([1, 2, 25]),
)
@fewer(3)
def test_schedules_verify_and_values_rise_to_the_optimum_at_most(instance, seed, span):
    arrays = OfflineArrays.of(instance)
    model, state = CountModel(arrays), SolveState(WorkLimit(3.0).start())
    assume(model.jobs)
    values: list[float] = []

    def noted(schedules):
        values.append(verify(instance, schedules))  # type: ignore[arg-type]
        return values[-1]

    best = BestSolution(PartialSolution(arrays), state, noted)
    state.record_bound(model.trivial_bound)
    free, ps_free = (
        np.zeros((arrays.horizon, *group.capacity.shape)) for group in (arrays.worker, arrays.ps)
    )
    duals = DualValues.of(arrays, free, ps_free)
    rng, separation = np.random.default_rng(seed), Separation(model)
    primal = PrimalHeuristic(model, separation, best, duals, rng)
    with mock.patch.object(replanning, "FIRST_JOBS", len(arrays.jobs)):
        search = Replanning(model, separation, primal, best, duals, rng, span)
    for search.span in (1, 2, span):
        assert all(slot in search._window(slot) for slot in range(arrays.horizon))
    search.search(state.budget.within(0.5))
    assert values == sorted(values)
    assert best.value <= verify(instance, optimum(instance)) * (1 + 1e-9)
    assert verify(instance, best.solution.by_id) == best.value
