"""Who submitted a job, when it ran and how it ended: from the cases of formats to the workload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oasis.simulator import rigid_workload
from oasis.traces import read_plain
from oasis.traces.table import TraceSource

FORMATS = ("plain", "philly", "openb", "swf", "slurm")


@pytest.mark.parametrize("name", FORMATS)
def test_what_really_happened_is_kept_to_the_workload(name: str) -> None:
    cases = json.loads((Path(__file__).parent / f"cases/{name}.json").read_text("utf-8"))
    (lines,) = [case["lines"] for case in cases if case["about"] == "what really happened is kept"]
    jobs = read_plain(TraceSource("jobs", tuple(lines))).jobs
    assert any(job.owner or job.started for job in jobs)
    # In another order of the rows, what is recorded still stands beside its own job.
    workload = rigid_workload(reversed(jobs), servers=1, gpus_per_server=8)
    assert [job.id for job in workload.recorded] == [job.id for job in workload.jobs]
    assert [job.owner for job in workload.recorded] == [job.owner for job in workload.jobs]
    assert set(workload.recorded) == set(jobs)
