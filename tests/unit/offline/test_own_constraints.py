"""Constraints of one's own in the compact model, against an enumeration of all schedules."""

from __future__ import annotations

from itertools import product

import pulp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oasis
from oasis import Deadline, InputError, Instance
from offline import OfflineModel, solve
from tests import builders

SLOTS = 3


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Jobs of one worker at a time on one server of two GPUs."""
    slots = st.integers(0, SLOTS - 1)
    jobs = (
        builders.job(
            f"j{k}",
            draw(slots),
            gpus=draw(st.integers(1, 2)),
            minibatches=draw(st.integers(1, SLOTS)),
            utility=Deadline(draw(st.integers(1, 9)), float(draw(slots))),
        )
        for k in range(draw(st.integers(1, 4)))
    )
    return builders.instance(*jobs, horizon=SLOTS, on=builders.cluster(gpus=2.0))


def at_most(model: OfflineModel, names: list[str], most: int) -> None:
    """In each slot at most `most` of these jobs run."""
    for slot in range(model.instance.horizon):
        runs = [model.problem.add_variable(f"{name}_{slot}", cat="Binary") for name in names]
        for name, is_on in zip(names, runs, strict=True):
            model.problem += model.workers_in(name, slot) <= model.instance.horizon * is_on
        model.problem += pulp.lpSum(runs) <= most


def enumerated(instance: Instance, together: int) -> float:
    """The most that any choice of slots earns with at most so many jobs in a slot."""
    ways = []
    for job in instance.jobs:
        sets = [
            slots
            for slots in product((0, 1), repeat=SLOTS)
            if sum(slots) == job.work(1.0) and not any(slots[: job.arrival])
        ]
        ways.append([(0,) * SLOTS, *sets])
    best = 0.0
    for chosen in product(*ways):
        used = [
            sum(job.worker["gpu"] * on[t] for job, on in zip(instance.jobs, chosen, strict=True))
            for t in range(SLOTS)
        ]
        if max(used) <= 2 and max(sum(on[t] for on in chosen) for t in range(SLOTS)) <= together:
            last = [max((t for t in range(SLOTS) if on[t]), default=None) for on in chosen]
            worth = [
                float(job.utility(t - job.arrival)) if t is not None else 0.0
                for job, t in zip(instance.jobs, last, strict=True)
            ]
            best = max(best, sum(worth))
    return best


@settings(max_examples=25, deadline=None)
@given(instances(), st.integers(1, 4))
def test_the_optimum_under_a_constraint_is_that_of_all_schedules_that_keep_it(
    instance: Instance, together: int
) -> None:
    model = OfflineModel(instance)
    at_most(model, [job.id for job in instance.jobs], together)
    result = model.solve()
    assert result.status == "optimal"
    assert result.objective == pytest.approx(enumerated(instance, together))
    assert oasis.verify(instance, result) == pytest.approx(result.objective)
    for slot in range(SLOTS):
        on = [s for s in result.schedules.values() if (s.workers[:, 0] == slot).any()]
        assert len(on) <= together
    # A constraint only removes schedules: bounds of the other methods hold.
    assert result.objective <= solve(instance, method="benders").upper_bound * (1 + 1e-9)


def test_what_the_solution_has_is_not_dropped_though_the_work_needs_less() -> None:
    """The constraint asks for a worker too many, in a slot of its own."""
    instance = builders.instance(builders.job("a", 0, 2, 5.0), horizon=3)
    model = OfflineModel(instance)
    for slot in range(3):
        model.problem += model.workers_in("a", slot) >= 1
    result = model.solve()
    assert sorted(set(result.schedules["a"].workers[:, 0].tolist())) == [0, 1, 2]


def test_constraints_that_nothing_satisfies_and_unknown_jobs_and_slots_are_named() -> None:
    model = OfflineModel(builders.instance(builders.job(), horizon=1))
    with pytest.raises(InputError, match="job_id: expected the id of a job"):
        model.workers_in("b", 0)
    with pytest.raises(InputError, match="slot: expected"):
        model.workers_in("a", 1)
    model.problem += model.admitted("a") >= 2
    with pytest.raises(InputError, match="constraints: expected some schedule"):
        model.solve()
