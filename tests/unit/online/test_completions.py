"""Completion slots that count, and their utilities."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.job import Job
from oasis.model.utility import Constant, Deadline, Piecewise, Sigmoid
from oasis.online.completions import HEAD, completions
from oasis.testing import jobs
from tests.strategies import fewer

# 6 worker-slots, at most 3 workers at once: two slots at least.
JOB = Job("j", 2, 2, 3, 1, 1.0, 0.0, {"gpu": 1.0}, {}, Constant(8.0))


def test_what_cannot_end_in_time_or_is_worth_nothing_does_not_count():
    """Also if the best itself is too small for a float."""
    ends = completions(JOB, horizon=3, slot_seconds=1.0, min_utility_fraction=0.0)
    assert (ends.first, ends.utility.size, ends.counted.size) == (3, 0, 0)
    for utility in (Deadline(5.0, 0.0), Sigmoid(1.0, 2000.0, 0.0)):
        ends = completions(replace(JOB, utility=utility), 6, 1.0, 0.0)
        assert (ends.utility.tolist(), ends.counted.any()) == ([0.0] * 3, False)
        assert ends.log_best == -math.inf


def test_utilities_too_small_for_a_float_count_by_their_logarithm():
    """At delay 1 it is 1/2, at delay 2 e^-800: 0 as a float, but its logarithm is known."""
    steep = replace(JOB, utility=Sigmoid(1.0, 800.0, 1.0))
    ends = completions(steep, 6, 1.0, 0.0)
    assert ends.utility.tolist() == [0.5, 0.0, 0.0]
    assert ends.counted.all()
    assert ends.log_smallest == pytest.approx(-1600.0)


@pytest.mark.parametrize("fraction", [0.0, 1e-300, 1e-3, 0.7])
@pytest.mark.parametrize("last", [1, HEAD - 2, HEAD - 1, HEAD, HEAD + 1, 3 * HEAD])
def test_completions_far_from_the_first_count_by_the_same_rule(last, fraction):
    """Worth 8 until `last` slots after the first, then 4 for ten slots, then nothing."""
    points = (0.0, 1.0 + last, 1.5 + last, 10.5 + last, 11.0 + last)
    job = replace(JOB, utility=Piecewise(points, (8.0, 8.0, 4.0, 4.0, 0.0)))
    ends = completions(job, 400, 1.0, fraction)
    delays = np.arange(1, 398)
    worth = job.utility(delays)
    wanted = np.where((worth > 0) & (worth >= fraction * 8.0), worth, 0.0)
    assert ends.utility.tolist() == wanted.tolist()
    assert ends.counted.tolist() == (wanted > 0).tolist()


@fewer(2)
@given(jobs(6), st.sampled_from([0.0, 1e-3, 0.3, 0.9]))
def test_what_counts_is_a_prefix_that_never_rises(job, fraction):
    ends = completions(job, 6, 1.0, fraction)
    assert ends.first == job.arrival + job.shortest_duration(1.0) - 1
    assert len(ends.utility) == len(ends.log_utility) == max(0, 6 - ends.first)
    assert (np.diff(ends.utility) <= 0).all()
    assert (np.diff(ends.counted.astype(int)) <= 0).all()
    assert not ends.utility[~ends.counted].any()
    if ends.counted.any():
        assert ends.counted[0]
        assert ends.log_smallest >= ends.log_best + (math.log(fraction) if fraction else -math.inf)
