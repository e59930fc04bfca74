"""Schedules: sparse tables of (slot, server, count), always sorted, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import oasis
from oasis.model.cluster import Cluster, Server
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant

WORKERS = [[3, 0, 1], [1, 1, 2], [1, 0, 3]]


def test_rows_are_sorted_by_slot_and_server() -> None:
    schedule = Schedule("j", WORKERS, [[3, 0, 1], [1, 0, 1]])
    assert schedule.workers.tolist() == [[1, 0, 3], [1, 1, 2], [3, 0, 1]]
    assert schedule.ps.tolist() == [[1, 0, 1], [3, 0, 1]]
    assert schedule == Schedule("j", WORKERS[::-1], [[1, 0, 1], [3, 0, 1]])


def test_rows_are_read_only_and_no_view_of_the_source() -> None:
    source = np.array(WORKERS)
    schedule = Schedule("j", source, [])
    source[0, 2] = 99
    assert schedule.worker_slots == 6
    with pytest.raises(ValueError, match="read-only"):
        schedule.workers[0, 2] = 5


def test_no_parameter_servers_is_an_empty_table() -> None:
    assert Schedule("j", WORKERS, []).ps.shape == (0, 3)


def test_schedules_differ_by_job_workers_and_parameter_servers() -> None:
    one = Schedule("j", WORKERS, [[1, 0, 1]])
    assert one != Schedule("k", WORKERS, [[1, 0, 1]])
    assert one != Schedule("j", WORKERS[:2], [[1, 0, 1]])
    assert one != Schedule("j", WORKERS, [])
    assert one != "j"


def test_cost_is_count_times_demand_times_price_by_row_and_resource() -> None:
    """One slot, two workers of (2 CPU, 1 Gbit/s) at prices (0.5, 3) and one PS at (1, 0.25)."""
    names = ("cpu", "bandwidth_gbps")
    machine = {"cpu": 8.0, "bandwidth_gbps": 8.0}
    cluster = Cluster(names, (Server("w", machine),), (Server("p", machine),), 1.0)
    worker, ps = {"cpu": 2.0, "bandwidth_gbps": 1.0}, {"cpu": 1.0, "bandwidth_gbps": 2.0}
    job = Job("j", 0, 1, 2, 1, 1.0, 0.0, worker, ps, Constant(20.0))
    found = oasis.best_schedule(
        job,
        cluster,
        1,
        np.array([[[0.5, 3.0]]]),
        np.array([[[1.0, 0.25]]]),
        np.zeros((1, 1, 2)),
        np.zeros((1, 1, 2)),
    )
    assert found.breakdown.workers.tolist() == [[2.0, 6.0]]
    assert found.breakdown.ps.tolist() == [[1.0, 0.5]]
    assert found.breakdown.total == found.cost == 9.5
    assert (found.payoff, found.utility, found.completion) == (10.5, 20.0, 0)
