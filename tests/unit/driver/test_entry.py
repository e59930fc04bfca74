"""A live job as a driver in slots follows it."""

from __future__ import annotations

import oasis
from oasis.driver.entry import OBSERVED_MOST, Entry, Submission
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
