"""A live job as a driver in slots follows it."""

from __future__ import annotations

import oasis
from oasis.driver.entry import OBSERVED_MOST, Entry, Submission, entries_of, entries_text
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.site import policy_job, site_of

INSTANCE = oasis.generate("testbed", jobs=2, seed=1)
SITE = site_of(INSTANCE.cluster)


def entry(resize: str = "elastic") -> Entry[Submission]:
    job = INSTANCE.jobs[0]
    seen = policy_job(job, SITE, 0)
    return Entry(Submission("u", job, resize=resize), seen, job.arrival, seen.work)


def test_a_change_is_a_resize_and_a_restart_where_no_task_is_kept() -> None:
    made = entry()
    for workers, resizes, restarts in (
        (((0, 2),), 0, 0),  # it begins
        (((0, 3),), 1, 0),
        (((0, 3),), 1, 0),  # nothing changes
        (((1, 3),), 2, 1),  # all tasks are others
        ((), 2, 1),
        (((1, 1),), 3, 2),  # it goes on after a pause
    ):
        made.allocation = Allocation(workers) if workers else NOTHING
        made.settle()
        assert (made.resizes, made.restarts) == (resizes, restarts)


def test_a_job_that_restarts_when_it_is_resized_counts_each_resize() -> None:
    made = entry("restart")
    for count in (2, 3):
        made.allocation = Allocation(((0, count),))
        made.settle()
    assert (made.resizes, made.restarts) == (1, 1)


def test_what_is_observed_is_kept_for_a_while() -> None:
    made = entry()
    for slot in range(OBSERVED_MOST + 5):
        made.observe(slot, 1.0)
    assert len(made.observed_at(0.0)) == OBSERVED_MOST
    assert made.observed[0][0] == 5.0


def test_its_text_is_read_back_and_a_copy_is_its_own() -> None:
    made = entry()
    made.done, made.held = 2.0, 1
    assert made.remaining_at(9.0) == made.work - 2.0
    assert made.held_at(9.0) == 1.0
    made.done = made.work + 1.0
    assert made.remaining == 0.0
    made.done = 2.0
    (again,) = entries_of(entries_text([made]), {}, lambda known, _: known)
    assert (again.work, again.done, again.spec) == (made.work, 2.0, made.spec)
    assert made.job.work == again.job.work
    copy = made.copy()
    copy.observe(1, 0.5)
    assert made.observed == []
