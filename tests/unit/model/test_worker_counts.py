"""What a job may do in a slot: its counts of workers, asked of the job."""

from __future__ import annotations

import pytest

from tests import builders

BOTH = (
    builders.job(chunks=5, min_workers=2),
    builders.policy_job(min_workers=2, max_workers=5),
)


@pytest.mark.parametrize("job", BOTH, ids=["of the model", "of a policy"])
def test_a_gang_says_which_counts_of_workers_it_may_have(job):
    assert [*job.worker_counts] == [2, 3, 4, 5]
    assert job.is_gang
    assert not builders.job(workers=3).is_gang
    assert [job.workers_near(wanted) for wanted in (0, 1, 2, 4, 5, 9)] == [2, 2, 2, 4, 5, 5]
    assert [[*job.workers_down_from(n)] for n in (9, 3, 1)] == [[5, 4, 3, 2], [3, 2], []]
    assert [job.spare_workers(workers) for workers in (0, 1, 2, 3, 5)] == [0, 0, 0, 1, 3]
