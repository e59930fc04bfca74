"""Whatever the check of one schedule refuses is a suspect, and valid schedules are none."""

from __future__ import annotations

import numpy as np
import pytest

import oasis
from oasis.certify.suspects import MANY, minibatch_slots, suspects
from oasis.certify.verify import verify_schedule
from oasis.model.errors import VerificationError
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule

INSTANCE = oasis.generate("testbed", jobs=6, seed=2)
JOBS = {job.id: job for job in INSTANCE.jobs}
RUN = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
VALID = dict(RUN.schedules)


def _refused(instance: Instance, schedules: dict[str, Schedule]) -> list[str]:
    refused = []
    for job_id, schedule in schedules.items():
        try:
            verify_schedule(instance, JOBS[job_id], schedule)
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


def test_valid_schedules_are_no_suspects() -> None:
    assert len(VALID) >= 3
    assert suspects(INSTANCE, JOBS, VALID) == []
    assert suspects(INSTANCE, JOBS, {}) == []


def test_exactly_those_that_the_single_check_refuses_are_suspects() -> None:
    rng = np.random.default_rng(5)
    refused_in_all = 0
    for _ in range(400):
        mixed = {
            job_id: _changed(schedule, rng) if rng.random() < 0.5 else schedule
            for job_id, schedule in VALID.items()
        }
        refused = _refused(INSTANCE, mixed)
        refused_in_all += len(refused)
        assert suspects(INSTANCE, JOBS, mixed) == refused
    assert refused_in_all > 200


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
