"""Whatever the check of one schedule refuses is a suspect, and valid schedules are none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis.certify.verify import MANY, suspects, verify_schedule
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


TINY = [tiny_instance(seeded(seed)) for seed in range(60)]
WIDE = [replace(job, min_workers=min(4, job.chunks)) for job in INSTANCE.jobs]


@pytest.mark.parametrize(
    ("instances", "rounds", "least"),
    [
        ([INSTANCE], 400, 200),
        (TINY, 20, 200),  # some jobs need no parameter server, or a part of one
        ([replace(INSTANCE, jobs=tuple(WIDE))], 200, 100),
    ],
    ids=["one", "tiny", "wide"],
)
def test_exactly_those_that_the_single_check_refuses_are_suspects(
    instances: list[Instance], rounds: int, least: int
) -> None:
    assert sum(_refused_in_all(instance, rounds, seed=5) for instance in instances) > least


@pytest.mark.parametrize("part", [-2.0, -1.0, -0.5, 0.5, 0.999, 1.001, 2.0])
def test_work_that_rounding_forgives_is_forgiven_alike(part: float) -> None:
    """Three worker-slots are done; there are more or fewer to do by part of the tolerance."""
    work = {"epochs": 1, "chunks": 3, "minibatches": 1, "gradient_mb": 0.0}
    job = replace(INSTANCE.jobs[0], **work, minibatch_time=1.0 + part * TOLERANCE)
    instance = replace(INSTANCE, jobs=(job,))
    at = job.arrival
    schedule = Schedule(job.id, [[at, 0, 3]], [[at, 0, int(job.ps_needed(3))]])
    refused = _refused(instance, {job.id: schedule})
    assert suspects(instance, {job.id: job}, {job.id: schedule}) == refused
    assert bool(refused) == (part > 1.0)


def test_a_schedule_without_rows_and_one_with_enormous_counts_are_suspects() -> None:
    name, schedule = next(iter(_valid(INSTANCE).items()))
    rows = np.array(schedule.workers)
    rows[0, 2] = MANY + 1
    for wrong in (Schedule(name, [], []), Schedule(name, rows, schedule.ps)):
        assert suspects(INSTANCE, _jobs(INSTANCE), {name: wrong}) == [name]
