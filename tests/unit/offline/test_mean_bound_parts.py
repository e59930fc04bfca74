"""Parts of the bound on mean times; its value is compared with all that can be done elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from baselines import FIFO
from experiments.figures.controllers import at_load, drawn
from oasis.simulator import replay
from offline.elastic_bound import mean_completion_bound
from tests.builders import elastic


def test_it_grows_with_the_load_and_is_that_of_lonely_jobs_where_there_is_none():
    bounds = [mean_completion_bound(at_load(drawn(0), load, 0)) for load in (0.01, 1.0, 20.0)]
    assert bounds[0] == pytest.approx(bounds[1])
    assert bounds[2] > bounds[1]


def test_rounding_of_late_times_is_allowed_for():
    made = elastic(1)
    outcome = replay(made, FIFO())
    assert mean_completion_bound(made) <= outcome.mean_completion


def test_a_job_of_next_to_no_work_may_end_as_it_comes():
    made = elastic(1)
    late = replace(made.jobs[0], arrival=1e6, work=1e-9)
    assert mean_completion_bound(replace(made, jobs=(late,))) == 0.0
