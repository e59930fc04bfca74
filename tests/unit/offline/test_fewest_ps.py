"""The fewest parameter servers that some work takes, against every way to spread it over slots."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis import Cluster, Constant, Instance, Job, Schedule, Server
from offline.benders.master import CountModel
from offline.model.arrays import OfflineArrays
from offline.model.constraints import fewest_ps, ps_of_work
from tests import builders
from tests.strategies import fewer, small_instances
from tests.unit.offline.test_benders import assert_satisfies, feasible

JOB = builders.job("j", workers=9, worker={"gpu": 1}, ps={"cpu": 1}, utility=Constant(1.0))


def with_bandwidth(worker: float, ps: float) -> Job:
    return replace(
        JOB, worker={"gpu": 1, "bandwidth_gbps": worker}, ps={"cpu": 1, "bandwidth_gbps": ps}
    )


def by_enumeration(job: Job, work: int, most: int, slots: int) -> list[int]:
    """The same by trying all numbers of workers in each slot."""
    found = []
    for number in range(1, slots + 1):
        spread = product(range(most + 1), repeat=number)
        totals = (int(job.ps_needed(np.array(n)).sum()) for n in spread if sum(n) >= work)
        found.append(min(totals, default=0))
    return found


@given(st.integers(1, 9), st.integers(0, 20), st.integers(1, 11), st.integers(1, 5))
def test_fewest_are_those_of_the_best_of_all_ways(b: int, more: int, work: int, most: int) -> None:
    job = with_bandwidth(b / 7, (b + more) / 7)
    assert fewest_ps(job, work, most, 4).tolist() == by_enumeration(job, work, most, 4)


def test_a_trace_of_bandwidth_takes_no_parameter_server_for_a_few_workers() -> None:
    """3e-10 of a server a worker: three workers are within the tolerance, four are not."""
    job = with_bandwidth(3e-10, 1.0)
    assert job.ps_needed([3, 4]).tolist() == [0, 1]
    found = fewest_ps(job, 10, 5, 5)
    assert found.tolist() == by_enumeration(job, 10, 5, 5) == [0, 2, 1, 0, 0]


def test_more_slots_than_are_of_use_change_nothing() -> None:
    found = fewest_ps(with_bandwidth(1.0, 4.0), 10, 5, 60)
    assert found.tolist() == [0, 4, *[3] * 58]


def count_model(job: Job, horizon: int) -> CountModel:
    worker = Server("w", {"gpu": 9, "bandwidth_gbps": 90.0})
    ps = Server("p", {"cpu": 9, "bandwidth_gbps": 90.0})
    cluster = Cluster(("gpu", "cpu", "bandwidth_gbps"), (worker,), (ps,), slot_seconds=1.0)
    return CountModel(OfflineArrays.of(Instance(horizon, cluster, (job,))))


def test_the_row_asks_for_what_each_completion_takes() -> None:
    """Ten worker-slots, five workers at once, four to a parameter server: 5 + 5, or 4 + 4 + 2."""
    job = replace(with_bandwidth(1.0, 4.0), chunks=5, minibatches=2)
    (c,) = count_model(job, 3).jobs
    assert (c.work, c.parallel) == (10, 5)
    (row,) = ps_of_work(c)
    servers = {z.name: 1 for z in c.ps.values()}
    done = {v.name: -n for v, n in zip(c.done.values(), (4, 3), strict=True)}
    assert {v.name: n for v, n in row.items()} == servers | done
    assert (row.getLb(), row.getUb()) == (0, None)


def test_a_job_without_parameter_servers_has_no_row() -> None:
    job = Job("j", 0, 1, 1, 1, 1.0, 0.0, {"gpu": 1}, {"cpu": 1}, Constant(1.0))
    (c,) = count_model(job, 1).jobs
    assert list(ps_of_work(c)) == []


@given(small_instances())
@fewer(3)
def test_every_feasible_schedule_keeps_the_rows(instance: Instance) -> None:
    model = CountModel(OfflineArrays.of(instance))
    rows = [row for c in model.jobs for row in ps_of_work(c)]
    for schedules in feasible(instance):
        assert_satisfies(model, rows, model.values_of(schedules))


def test_one_more_would_be_one_too_many() -> None:
    """The property above can fail: the best schedule has exactly what its row asks for."""
    model = count_model(replace(with_bandwidth(1.0, 4.0), chunks=4), 1)
    (row,) = ps_of_work(model.jobs[0])
    schedule = Schedule("j", np.array([[0, 0, 4]]), np.array([[0, 0, 1]]))
    values = model.values_of({"j": schedule})
    assert_satisfies(model, [row], values)
    row.constant -= 1.0
    with pytest.raises(AssertionError):
        assert_satisfies(model, [row], values)
