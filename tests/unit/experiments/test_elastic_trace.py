"""Elastic workloads from the jobs of a trace."""

from __future__ import annotations

import pytest

from baselines import FIFO
from experiments.cli.commands.import_trace import elastic_from_window
from oasis.simulator import Workload, elastic_from_dict, replay
from oasis.traces.job_table import MachineOptions
from oasis.traces.table import pd

JOBS = {"id": ["a", "b"], "submitted": [0.0, 30.0], "duration": [60.0, 30.0], "gpus": [4, 1]}


def made_of(options: MachineOptions) -> Workload:
    return elastic_from_dict(
        elastic_from_window(options.sized(pd.DataFrame(JOBS)), options, options.cluster())
    )


def test_a_fifo_cluster_with_room_runs_them_as_recorded() -> None:
    options = MachineOptions(worker_servers=2, gpus_per_server=4, elasticity=1.0)
    outcome = replay(made_of(options), FIFO())
    assert [job.job_id for job in outcome.jobs] == ["a", "b"]
    assert sum(job.work_done for job in outcome.jobs) == pytest.approx(4 * 60 + 30)


def test_no_job_may_have_fewer_workers_than_recorded() -> None:
    options = MachineOptions(elasticity=0.5)
    made = made_of(options)
    assert [job.max_workers for job in made.jobs] == [4, 1]
