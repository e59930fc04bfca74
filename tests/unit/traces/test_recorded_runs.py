"""Who submitted a job, when it really ran and how it ended: from each format to the workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from oasis.simulator import rigid_workload
from oasis.traces import read_plain
from oasis.traces.plain_job import COMPLETED, FAILED, KILLED, PlainJob

POD = "{0},4000,8192,{1},1000,,LS,{2},{3},{4},{5}"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
TRACES = {  # format -> text of a file, its jobs by hand; times after the first submission
    "plain": (
        "id,submitted,start,end,gpus,owner\na,100,160,220,2,ann\nb,130,250,260,1,\n",
        [
            PlainJob("a", 0, 60, 2, "ann", 60, 120),
            PlainJob("b", 30, 10, 1, "", 150, 160),
        ],
    ),
    "philly": (
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:00:00,60,2,120,vc\n",
        [PlainJob("philly-2", 0, 60, 2, "vc")],
    ),
    "openb": (
        f"{PODS},creation_time,deletion_time,scheduled_time\n"
        + "\n".join(
            POD.format(*row)
            for row in [
                ("a", 2, "Succeeded", 10, 90, 30),
                ("b", 1, "Failed", 20, 50, 40),
                ("c", 1, "Running", 20, 50, 40),
            ]
        ),
        [
            PlainJob("a", 0, 60, 2, "", 20, 80, COMPLETED),
            PlainJob("b", 10, 10, 1, "", 30, 40, FAILED),
            PlainJob("c", 10, 10, 1, "", 30, 40),
        ],
    ),
    "swf": (
        "1 5 10 60 4 -1 -1 4 99 -1 1 3 7 -1 1 -1 -1 -1\n"
        "2 6 -1 60 4 -1 -1 4 99 -1 0 -1 7 -1 1 -1 -1 -1\n",
        [
            PlainJob("1", 0, 60, 4, "3", 10, 70, COMPLETED),
            PlainJob("2", 1, 60, 4, "7", None, None, FAILED),
        ],
    ),
    "slurm": (
        "JobID|User|Account|Submit|Start|ElapsedRaw|State|AllocTRES\n"
        "1|ann|lab|2024-03-01T08:00:00|2024-03-01T08:01:00|60|COMPLETED|gres/gpu=4\n"
        "2||lab|2024-03-01T08:00:10|2024-03-01T08:02:00|30|CANCELLED by 7|gres/gpu=1\n"
        "3|eve|lab|2024-03-01T08:00:20|2024-03-01T08:01:20|10|NODE_FAIL|gres/gpu=2\n"
        "3|eve|lab|2024-03-01T08:02:00|2024-03-01T08:05:00|50|TIMEOUT|gres/gpu=2\n"
        "4|eve|lab|2024-03-01T08:00:30|2024-03-01T08:05:00|50|OUT_OF_MEMORY|gres/gpu=2\n",
        [
            PlainJob("1", 0, 60, 4, "ann", 60, 120, COMPLETED),
            PlainJob("2", 10, 30, 1, "lab", 120, 150, KILLED),
            PlainJob("3", 20, 60, 2, "eve", 80, 350, KILLED),
            PlainJob("4", 30, 50, 2, "eve", 300, 350, FAILED),
        ],
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_what_really_happened_is_kept_to_the_workload(name: str, tmp_path: Path) -> None:
    text, jobs = TRACES[name]
    path = tmp_path / "trace.txt"
    path.write_text(text)
    trace = read_plain(path)
    assert trace.format == name
    assert list(trace.jobs) == jobs
    # In another order of the rows, what is recorded still stands beside its own job.
    workload = rigid_workload(reversed(trace.jobs), servers=1, gpus_per_server=8)
    assert [job.id for job in workload.recorded] == [job.id for job in workload.jobs]
    assert [job.owner for job in workload.recorded] == [job.owner for job in workload.jobs]
    assert set(workload.recorded) == set(jobs)


LATE = {  # format -> two runs, of which the second began before it was submitted
    "slurm": (
        "JobID|Submit|Start|ElapsedRaw|State|AllocTRES\n"
        "1|2024-03-01T08:00:00|2024-03-01T08:00:00|60|COMPLETED|gres/gpu=4\n"
        "2|2024-03-01T08:00:10|2024-03-01T08:00:09|30|COMPLETED|gres/gpu=1\n"
    ),
    "philly": "["
    + ", ".join(
        f"""{{"jobid": "{name}", "vc": "v", "status": "Pass",
        "submitted_time": "2017-10-07 00:00:00", "attempts": [{{
        "start_time": "{start}", "end_time": "2017-10-07 02:00:00",
        "detail": [{{"ip": "m", "gpus": ["gpu0"]}}]}}]}}"""
        for name, start in (("a", "2017-10-07 01:00:00"), ("b", "2017-10-06 23:00:00"))
    )
    + "]",
    "openb": f"{PODS},creation_time,deletion_time,scheduled_time\n"
    + "\n".join(
        POD.format(*row)
        for row in [("a", 1, "Succeeded", 10, 90, 30), ("b", 1, "Succeeded", 20, 50, 19)]
    ),
}
