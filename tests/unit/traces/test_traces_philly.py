"""The Philly importer, on small files written here and on the trace where there is one."""

import os
from pathlib import Path

import pytest

from oasis import InstanceError, OASiS, simulate
from oasis.model import instance_file as io
from oasis.traces import PhillyOptions, read_instance

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"
ROWS = [
    "2017-10-03 10:00:00,7200.0,4,28800.0,blue",
    "2017-10-03 09:00:00,3600.0,2,7200.0,red",  # not in order of time
    "2017-10-03 09:45:00,3600.0,8,28800.0,blue",
]
DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
TRACE = DATA / "philly_sia.csv"
needs_trace = pytest.mark.skipif(not TRACE.exists(), reason=f"no Philly trace at {TRACE}")


def imported(tmp_path, rows, header=HEADER, **options):
    path = tmp_path / "philly.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return read_instance(path, PhillyOptions(**options))


def test_rows_become_jobs_named_after_their_lines(tmp_path):
    instance = imported(tmp_path, ROWS)
    assert [job.id for job in instance.jobs] == ["philly-3", "philly-4", "philly-2"]
    assert [job.arrival for job in instance.jobs] == [0, 1, 2]
    assert [job.work(1800.0) for job in instance.jobs] == [4, 16, 16]
    assert [job.chunks for job in instance.jobs] == [4, 16, 8]
    assert instance.jobs[0].worker == {
        "gpu": 1.0,
        "cpu": 4.0,
        "memory_gb": 32.0,
        "bandwidth_gbps": 1.0,
    }


def test_the_cluster_is_what_the_options_say(tmp_path):
    options = {"worker_servers": 3, "gpus_per_server": 4, "ps_servers": 2, "ps_server_cpus": 6.0}
    cluster = imported(tmp_path, ROWS, **options).cluster
    assert cluster.resources == ("gpu", "cpu", "memory_gb", "bandwidth_gbps")
    assert cluster.worker_capacity.tolist() == [[4, 16, 128, 20]] * 3
    assert cluster.ps_capacity.tolist() == [[0, 6, 32, 20]] * 2


def test_a_virtual_cluster_can_be_chosen(tmp_path):
    instance = imported(tmp_path, ROWS, virtual_cluster="blue")
    assert [job.id for job in instance.jobs] == ["philly-4", "philly-2"]
    with pytest.raises(
        InstanceError, match=r"^virtual_cluster: expected one of blue, red, got 'gre"
    ):
        imported(tmp_path, ROWS, virtual_cluster="green")
    with pytest.raises(InstanceError, match=r"^user: expected a file with a column of it, got 'b"):
        imported(tmp_path, ROWS, user="blue")  # the table names no users


def test_the_window_can_begin_at_a_time(tmp_path):
    instance = imported(tmp_path, ROWS, start="2017-10-03 09:30:00")
    assert [(job.id, job.arrival) for job in instance.jobs] == [("philly-4", 0), ("philly-2", 1)]
    again = imported(tmp_path, ROWS, start=instance.metadata["window_start"])
    assert again == instance
    with pytest.raises(ValueError, match=r"^start: expected busiest, first or a time such as"):
        imported(tmp_path, ROWS, start="noon")


def test_every_assumption_is_recorded_and_survives_the_file(tmp_path):
    instance = imported(tmp_path, ROWS, seed=5)
    io.write(instance, tmp_path / "out.json")
    read = io.read(tmp_path / "out.json")
    assert read == instance
    assert read.metadata == instance.metadata
    assert PhillyOptions(**read.metadata["options"]) == PhillyOptions(seed=5)
    assert str(tmp_path) not in (tmp_path / "out.json").read_text()


@needs_trace
def test_the_real_trace_gives_a_congested_instance():
    instance = read_instance(TRACE)
    metadata = instance.metadata
    assert 12 <= len(instance.jobs) <= 20
    assert len(instance.cluster.worker_ids) + len(instance.cluster.ps_ids) >= 12
    assert metadata["rows"] == {"jobs": 82247}
    assert metadata["malformed"] == {}  # the blank line at its end is no row
    assert metadata["rows"]["jobs"] == len(instance.jobs) + sum(metadata["left_out"].values())
    assert metadata["cannot_finish"] == 0
    run = simulate(instance, OASiS.from_instance(instance))
    assert sum(not decision.admitted for decision in run.decisions) >= 1
