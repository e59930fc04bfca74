"""What is left of a job is a job of its own, worth at each slot what the job is worth."""

from __future__ import annotations

import oasis
from oasis.model.job import remaining_job
from oasis.model.utility import later


def test_the_rest_of_a_job_is_worth_what_the_job_is_worth() -> None:
    job = oasis.generate("testbed", jobs=3, seed=1).jobs[0]
    rest = remaining_job(job, 5, now=job.arrival + 4, slots=30)
    assert rest.work(1200.0) == 5
    assert rest.utility(range(20)).tolist() == job.utility(range(4, 24)).tolist()
    assert rest.ps_needed(3) == job.ps_needed(3)
    assert later(job.utility, 0, 30, end=6)(range(5, 8)).tolist()[1:] == [0.0, 0.0]


def test_no_time_passed_and_no_end_leave_the_utility_alone() -> None:
    utility = oasis.Sigmoid(priority=10.0, decay=1.0, target=4.0)
    assert later(utility, 0, 30) is utility
    assert later(oasis.Constant(3.0), 7, 30) == oasis.Constant(3.0)
