"""The resources that schedules use, summed by slot, server and resource."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.schedule import Schedule, committed, placements
from oasis.model.utility import Constant
from tests import builders

CLUSTER = builders.cluster(
    servers=2, worker={"gpu": 4.0, "bandwidth_gbps": 8.0}, ps={"bandwidth_gbps": 8.0}
)


def job(name: str, gpu: float) -> Job:
    worker, ps = {"gpu": gpu, "bandwidth_gbps": 1.0}, {"bandwidth_gbps": 3.0}
    return Job(name, 0, 1, 4, 1, 1.0, 0.0, worker, ps, Constant(1.0))


INSTANCE = Instance(3, CLUSTER, (job("a", 1.0), job("b", 0.5)))


def test_two_jobs_on_one_server_add_up() -> None:
    """In slot 1 two workers of a (1 GPU each) and three of b (half a GPU) share server 0."""
    schedules = {
        "a": Schedule("a", [[1, 0, 2]], [[1, 0, 1]]),
        "b": Schedule("b", [[1, 0, 3], [2, 1, 1]], [[1, 0, 1], [2, 0, 1]]),
    }
    worker, ps = committed(INSTANCE, schedules)
    assert worker[1, 0].tolist() == [3.5, 5.0]
    assert worker[2, 1].tolist() == [0.5, 1.0]
    assert ps[:, 0, 1].tolist() == [0.0, 6.0, 3.0]
    assert worker.sum() == pytest.approx(3.5 + 5.0 + 0.5 + 1.0)
    assert ps[:, :, 0].sum() == 0.0  # no parameter server asks for a GPU


def test_a_job_without_parameter_servers_uses_none() -> None:
    _, ps = committed(INSTANCE, {"a": Schedule("a", [[0, 0, 1]], [])})
    assert not ps.any()


def test_schedules_of_jobs_that_the_instance_does_not_have_do_not_count() -> None:
    worker, _ = committed(INSTANCE, {"c": Schedule("c", [[0, 0, 1]], [])})
    assert not worker.any()


@pytest.mark.parametrize(
    ("workers", "ps", "form", "message"),
    [
        ([[3, 0, 1]], [], 0, "job a.worker: slot 3, server 0 outside the instance"),
        ([[0, 2, 1]], [], 0, "job a.worker: slot 0, server 2 outside the instance"),
        ([[-1, 0, 1]], [], 0, "job a.worker: slot -1, server 0 outside the instance"),
        ([[0, 0, 1]], [[0, 1, 1]], 0, "job a.ps: slot 0, server 1 outside the instance"),
        ([[0, 0, 1]], [], 1, "job a.form: expected an integer <= 0, got 1"),
    ],
)
def test_what_is_outside_the_instance_is_named(
    workers: list[list[int]], ps: list[list[int]], form: int, message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}$"):
        committed(INSTANCE, {"a": Schedule("a", workers, ps, form)})


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=6
    )
)
def test_the_sum_over_all_places_is_the_work_times_the_demand(
    rows: list[tuple[int, int, int]],
) -> None:
    """Rows may name one place twice: both of them count."""
    worker, _ = committed(INSTANCE, {"a": Schedule("a", rows, [])})
    total = sum(count for _, _, count in rows)
    assert worker.sum(axis=(0, 1)).tolist() == [total * 1.0, total * 1.0]
    for slot in range(3):
        for server in range(2):
            here = sum(count for t, h, count in rows if (t, h) == (slot, server))
            assert worker[slot, server, 0] == here


def test_rows_must_be_whole_numbers() -> None:
    with pytest.raises(ValueError, match=r"^expected rows of integers"):
        placements([[0, 0, 1.5]])
    assert placements([[0, 0, 2.0]]).dtype == np.int64
