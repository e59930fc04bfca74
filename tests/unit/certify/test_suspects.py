"""Whatever the check of one schedule refuses is a suspect, and valid schedules are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis.certify.verify import MANY, minibatch_slots, suspects, verify_schedule
from oasis.model.errors import VerificationError
from oasis.model.instance import Instance, Job
from oasis.model.rounding import TOLERANCE
from oasis.model.schedule import Schedule
from tests.oracle.tiny import seeded, tiny_instance

INSTANCE = oasis.generate("testbed", jobs=6, seed=2)


def _jobs(instance: Instance) -> dict[str, Job]:
    return {job.id: job for job in instance.jobs}


def _valid(instance: Instance) -> dict[str, Schedule]:
    return dict(oasis.simulate(instance, oasis.OASiS.from_instance(instance)).schedules)


JOBS, VALID = _jobs(INSTANCE), _valid(INSTANCE)


def _refused(instance: Instance, schedules: dict[str, Schedule]) -> list[str]:
    refused, jobs = [], _jobs(instance)
    for job_id, schedule in schedules.items():
        try:
            verify_schedule(instance, jobs[job_id], schedule)
        except VerificationError:
            refused.append(job_id)
    return refused


def _changed(schedule: Schedule, rng: np.random.Generator) -> Schedule:
    """One or two numbers in it are a little different, or rows are missing or twice there."""
    tables = [np.array(schedule.workers), np.array(schedule.ps)]
    for _ in range(int(rng.integers(1, 3))):
        which = int(rng.integers(0, 2))
        rows = tables[which]
        if not len(rows):
            continue
        at = int(rng.integers(0, len(rows)))
        kind = int(rng.integers(0, 5))
        if kind == 0:
            tables[which] = np.delete(rows, at, axis=0)
        elif kind == 1:
            tables[which] = np.concatenate([rows, rows[at : at + 1]])
        else:
            rows[at, kind - 2] += int(rng.choice([-20, -1, 1, 1000]))
    return Schedule(schedule.job_id, *tables)


def _refused_in_all(instance: Instance, rounds: int, seed: int) -> int:
    """How many changed schedules are refused, each of which must be a suspect, and no other."""
    rng = np.random.default_rng(seed)
    valid, jobs, found = _valid(instance), _jobs(instance), 0
    for _ in range(rounds):
        mixed = {
            job_id: _changed(schedule, rng) if rng.random() < 0.5 else schedule
            for job_id, schedule in valid.items()
        }
        refused = _refused(instance, mixed)
        found += len(refused)
        assert suspects(instance, jobs, mixed) == refused
    return found


def test_exactly_those_that_the_single_check_refuses_are_suspects() -> None:
    assert _refused_in_all(INSTANCE, 400, seed=5) > 200


def test_so_it_is_with_jobs_that_need_no_parameter_server_or_parts_of_one() -> None:
    """Small instances, whose jobs differ in that."""
    instances = [tiny_instance(seeded(seed)) for seed in range(60)]
    shares = [job.ps_per_worker for instance in instances for job in instance.jobs]
    assert 0.0 in shares
    assert any(share % 1.0 for share in shares)
    assert sum(_refused_in_all(instance, 20, seed=1) for instance in instances) > 200


def test_so_it_is_with_a_minimum_of_workers() -> None:
    wide = [replace(job, min_workers=min(4, job.chunks)) for job in INSTANCE.jobs]
    instance = replace(INSTANCE, jobs=tuple(wide))
    assert _refused_in_all(instance, 200, seed=5) > 100
    assert suspects(instance, _jobs(instance), VALID) == _refused(instance, VALID)


@pytest.mark.parametrize("part", [-2.0, -1.0, -0.5, 0.5, 0.999, 1.001, 2.0])
def test_work_that_rounding_forgives_is_forgiven_alike(part: float) -> None:
    """Three worker-slots are done; there are more or fewer to do by part of the tolerance."""
    job = replace(
        INSTANCE.jobs[0],
        epochs=1,
        chunks=3,
        minibatches=1,
        minibatch_time=1.0 + part * TOLERANCE,
        gradient_mb=0.0,
    )
    instance = replace(INSTANCE, jobs=(job,))
    slots = [[job.arrival, 0, 3]]
    schedule = Schedule(job.id, slots, [[job.arrival, 0, int(job.ps_needed(3))]])
    refused = _refused(instance, {job.id: schedule})
    assert suspects(instance, {job.id: job}, {job.id: schedule}) == refused
    assert bool(refused) == (part > 1.0)


def test_a_schedule_without_rows_and_one_with_enormous_counts_are_suspects() -> None:
    name = next(iter(VALID))
    nothing = np.zeros((0, 3), dtype=np.int64)
    assert suspects(INSTANCE, JOBS, {name: Schedule(name, nothing, nothing)}) == [name]
    rows = np.array(VALID[name].workers)
    rows[0, 2] = MANY + 1
    assert suspects(INSTANCE, JOBS, {name: Schedule(name, rows, VALID[name].ps)}) == [name]


def test_a_mini_batch_takes_its_training_and_its_transfers() -> None:
    job = INSTANCE.jobs[0]
    expected = job.minibatch_slots(INSTANCE.slot_seconds)
    assert minibatch_slots(INSTANCE, job) == pytest.approx(expected, rel=1e-12)
