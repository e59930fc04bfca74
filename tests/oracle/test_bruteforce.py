"""The enumeration itself: what it refuses, and that its answers pass the exact check."""

from itertools import product

import pytest

from oasis import Constant, Deadline, verify
from offline import solve
from tests import builders
from tests.oracle.tiny import seeded, tiny_instance


def unit_job(name, work, utility, **changes):
    """`work` worker-slots, one worker at a time, on one CPU."""
    return builders.job(name, slots=work, worker={"cpu": 1.0}, utility=utility, **changes)


def one_cpu(horizon, *jobs):
    return builders.instance(*jobs, horizon=horizon, on=builders.cluster(worker={"cpu": 1.0}))


@pytest.mark.parametrize("works", list(product([1, 2, 3], repeat=3)))
def test_on_one_machine_it_finds_the_best_preemptive_sequence(works):
    """Deadlines on one machine: a set of jobs fits if its work does, deadline by deadline."""
    deadlines, values = (1, 2, 4), (5.0, 4.0, 6.0)
    jobs = [
        unit_job(f"j{i}", works[i], Deadline(values[i], deadlines[i])) for i in range(len(works))
    ]
    best = 0.0
    for chosen in product([False, True], repeat=3):
        load, fits = 0, True
        for i in range(3):
            load += works[i] * chosen[i]
            fits = fits and (not chosen[i] or load <= deadlines[i] + 1)
        if fits:
            best = max(best, sum(values[i] for i in range(3) if chosen[i]))
    assert solve(one_cpu(5, *jobs), "bruteforce").objective == best


@pytest.mark.parametrize("seed", range(30))
def test_its_schedules_pass_the_exact_check_and_are_worth_what_it_says(seed):
    instance = tiny_instance(seeded(seed))
    result = solve(instance, "bruteforce")
    assert verify(instance, result) == result.objective == result.upper_bound


def test_a_large_instance_is_refused():
    jobs = [unit_job(f"j{i}", 9, Constant(1.0)) for i in range(8)]
    with pytest.raises(ValueError, match=r"too large for brute force.*auto"):
        solve(one_cpu(9, *jobs), "bruteforce")


def test_many_workers_are_refused_before_they_are_enumerated():
    jobs = [unit_job(f"j{i}", 9, Constant(1.0), chunks=9) for i in range(8)]
    with pytest.raises(ValueError, match="too large for brute force"):
        solve(one_cpu(9, *jobs), "bruteforce")
