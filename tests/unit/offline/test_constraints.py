"""The rows (6): whole numbers in place of a quotient of floats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oasis import Constant, Job
from offline.model.constraints import ps_ratio
from tests import builders

JOB = builders.job("j", workers=9, worker={"gpu": 1}, ps={"cpu": 1}, utility=Constant(1.0))


def with_bandwidth(worker: float, ps: float) -> Job:
    return replace(
        JOB, worker={"gpu": 1, "bandwidth_gbps": worker}, ps={"cpu": 1, "bandwidth_gbps": ps}
    )


def test_a_job_without_bandwidth_needs_no_parameter_server() -> None:
    assert ps_ratio(JOB, 9) is None


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 60))
def test_the_whole_numbers_give_the_counts_of_the_quotient(b: int, more: int, most: int) -> None:
    job = with_bandwidth(b / 7, (b + more) / 7)
    ratio = ps_ratio(job, most)
    assert ratio is not None
    p, q, free = ratio
    counts = np.arange(free, most + 1)
    assert (-(-(counts - free) * p // q) == job.ps_needed(counts)).all()
