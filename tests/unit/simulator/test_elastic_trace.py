"""Elastic workloads from the jobs of a trace."""

from __future__ import annotations

import pytest

from baselines import FIFO
from oasis.simulator.elastic import elastic_from_window
from oasis.simulator.run import replay
from oasis.traces.mapping import MachineOptions
from oasis.traces.window import JobRecord, Window

RECORDS = (
    JobRecord("a", 100.0, 60.0, 4, 4, {"gpu": 1.0}),
    JobRecord("b", 130.0, 30.0, 1, 1, {"gpu": 1.0}),
)


def test_a_fifo_cluster_with_room_runs_them_as_recorded() -> None:
    options = MachineOptions(worker_servers=2, gpus_per_server=4, elasticity=1.0)
    made = elastic_from_window(Window(100.0, RECORDS, {}), options)
    outcome = replay(made, FIFO())
    assert [job.job_id for job in outcome.jobs] == ["a", "b"]
    assert sum(job.work_done for job in outcome.jobs) == pytest.approx(4 * 60 + 30)


def test_no_job_may_have_fewer_workers_than_recorded() -> None:
    options = MachineOptions(elasticity=0.5)
    made = elastic_from_window(Window(100.0, RECORDS, {}), options)
    assert [job.max_workers for job in made.jobs] == [4, 1]
