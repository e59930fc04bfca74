"""The best mix of two solutions is the best of all that enumeration finds."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oasis
from oasis import VerificationError, verify
from oasis.model.schedule import Schedule
from oasis.solvers import Solution, Status
from oasis.solvers.budget import Budget
from oasis.testing import crowded_instances, small_instances
from offline.heuristics import recombination
from offline.heuristics.best_solution import PartialSolution
from offline.heuristics.recombination import recombine
from offline.model.arrays import OfflineArrays
from tests.oracle.tiny import on_one_server
from tests.strategies import fewer


def drawn(arrays, rng):
    """About two jobs of three, inserted in random order at random prices, one after the other."""
    solution = PartialSolution(arrays)
    shapes = [(arrays.horizon, *arrays.group(group).capacity.shape) for group in ("worker", "ps")]
    worker, ps = (rng.random(shape) * 1e-3 for shape in shapes)
    for k in rng.permutation(len(arrays.jobs)).tolist():
        if rng.random() < 0.65:
            solution.insert(k, worker, ps)
    return solution


def best_mix(instance, first, second):
    """The value of the best feasible choice between the two, or neither, for each job.

    What both run in the same way has no choice.
    """
    names = [job.id for job in instance.jobs]
    options: list[list[Schedule | None]] = []
    for runs in ((first.by_id.get(name), second.by_id.get(name)) for name in names):
        different = [None, *(run for run in runs if run is not None)]
        options.append([runs[0]] if runs[0] == runs[1] else different)
    best = 0.0
    for chosen in product(*options):
        mix = {name: s for name, s in zip(names, chosen, strict=True) if s is not None}
        try:
            best = max(best, verify(instance, mix))
        except VerificationError:
            continue
    return best


def check(instance, seed):
    """Values of the mix of two solutions, and of the better of the two."""
    arrays, rng = OfflineArrays.of(instance), np.random.default_rng(seed)
    first, second = drawn(arrays, rng), drawn(arrays, rng)
    known, free = (first.by_id, second.by_id), [*first.free(), *second.free()]
    mix = recombine(first, second, Budget())
    assert (first.by_id, second.by_id) == known, "they are not changed"
    assert all(map(np.array_equal, free, [*first.free(), *second.free()]))
    assert mix.value >= max(first.value, second.value)
    assert verify(instance, mix.by_id) == pytest.approx(mix.value, rel=1e-12)
    assert mix.value == pytest.approx(best_mix(instance, first, second), rel=1e-6)
    return mix.value, max(first.value, second.value)


@given(st.one_of(small_instances(), crowded_instances()), st.integers(0, 99))
@fewer(2)
def test_the_best_mix(instance, seed):
    assume(len(instance.jobs) <= 6)
    check(instance, seed)


def test_mixes_are_often_better_than_both():
    """Six jobs have room to run in different ways, some of which exclude each other."""
    drawn_for = partial(oasis.generate, "testbed", worker_servers=3, ps_servers=3, horizon=20)
    found = [check(drawn_for(jobs=6, seed=seed), seed) for seed in range(10)]
    assert sum(mix > better for mix, better in found) >= 5


def test_what_fits_only_by_the_tolerance_of_a_full_server_is_not_mixed():
    """A job of next to no demand is accepted on a server that two others fill to the brim."""
    instance = on_one_server([4.0, 4.0, 1e-10], [10.0] * 3, 3)

    def solution(slot):
        runs = [Schedule(f"j{k}", [[t, 0, 1]], []) for k, t in enumerate((0, 1, slot))]
        return PartialSolution(OfflineArrays.of(instance), {run.job_id: run for run in runs})

    first, second = solution(0), solution(1)
    assert verify(instance, first.by_id) == verify(instance, second.by_id) == 30.0
    assert recombine(first, second, Budget()).value == 30.0


@pytest.mark.parametrize("limit", [0.0, None])
def test_without_time_for_a_mix_the_better_one_stays(limit):
    instance = oasis.generate("testbed", jobs=6, worker_servers=3, ps_servers=3, horizon=20, seed=1)
    arrays, rng = OfflineArrays.of(instance), np.random.default_rng(1)
    first, second = drawn(arrays, rng), drawn(arrays, rng)
    better = max(first, second, key=lambda solution: solution.value)
    found = recombine(first, second, Budget(limit))
    assert (found is better) == (limit == 0.0)


def test_ctrl_c_ends_a_mix(monkeypatch):
    instance = oasis.generate("testbed", jobs=6, worker_servers=3, ps_servers=3, horizon=20, seed=1)
    arrays, rng = OfflineArrays.of(instance), np.random.default_rng(1)
    ended = Solution(Status.INTERRUPTED, None, np.inf, np.inf, {})
    monkeypatch.setattr(recombination, "solve_within", lambda *_, **__: ended)
    with pytest.raises(KeyboardInterrupt):
        recombine(drawn(arrays, rng), drawn(arrays, rng), Budget())
