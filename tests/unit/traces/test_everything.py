"""What was left out of a trace is said in one line, and --all leaves out nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.evaluation.description import describe_instance
from oasis import InstanceError
from oasis.traces import (
    OpenbOptions,
    PlainOptions,
    SwfOptions,
    read_instance,
    read_plain,
)
from oasis.traces.job_table import (
    LOOSE,
    MachineOptions,
    busiest,
    jobs_of,
    kept_line,
    last_slot,
    ps_counts,
)
from oasis.traces.plain import FORMATS
from oasis.traces.plain_instance import PLAIN
from oasis.traces.table import pd

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[3] / "../shared/data"))
PODS, NODES = DATA / "openb_pod_list_default.csv", DATA / "openb_node_list_gpu_node.csv"
ROWS = """\
id,submitted,duration,gpus
a,0,100,4
b,50,7200,0
c,86400,30,16
d,86400,30,12
bad,86400,soon,12
none,86400,0,12
e,90000,40000,1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def everything(file: Path, **given: Any) -> oasis.Instance:
    """Instance that ``oasis import plain FILE --all`` makes with these options."""
    options = PlainOptions(**(LOOSE | given))
    return PLAIN.imported(file, options, frozenset(given))[0]


def test_every_rule_is_named_with_its_values_and_the_counts_add_up(file):
    options = PlainOptions(start="first", max_gpus=12, min_duration=50.0, max_duration=50000.0)
    assert kept_line(read_instance(file, options)) == (
        "kept 1 of 7 jobs: 1 bad duration, 1 never ran, 3 by GPUs (2..12), "
        "1 by duration (50..50000 s)"
    )
    short = PlainOptions(start="first", min_gpus=1, max_gpus=12, min_duration=0, max_duration=1e5)
    assert kept_line(read_instance(file, short)) == (
        "kept 1 of 7 jobs: 1 bad duration, 1 never ran, 2 by GPUs (1..12), "
        "2 outside the window (12 slots from 0)"
    )


def test_stride_and_most_jobs_and_labels_are_rules_too(tmp_path):
    rows = [f"{k} {k} 0 7200 4 -1 -1 4 9 -1 1 {3 + k % 2} 1 -1 1 -1 -1 -1" for k in range(12)]
    path = tmp_path / "log.swf"
    path.write_text("\n".join(rows), encoding="utf-8")
    options = SwfOptions(user="3", stride=2, max_jobs=2, start="first")
    assert kept_line(read_instance(path, options)) == (
        "kept 2 of 12 jobs: 6 by user (3), 3 by stride (2), 1 by max_jobs (2, spread)"
    )


def test_all_jobs_with_gpus_are_kept_and_each_can_finish(file):
    instance = everything(file)
    assert [job.id for job in instance.jobs] == [job.id for job in read_plain(file).jobs]
    assert [job.id for job in instance.jobs] == ["a", "c", "d", "e"]
    assert kept_line(instance) == "kept 4 of 7 jobs: 1 bad duration, 1 never ran, 1 by GPUs (1..16)"
    assert describe_instance(instance).can_finish == 4
    assert instance.metadata["cannot_finish"] == 0


@pytest.mark.parametrize("more", [{"stride": 2}, {"max_jobs": 1}, {"arrival_slots": 1}])
def test_a_rule_that_is_given_applies(file, more):
    assert len(everything(file, **more).jobs) < len(everything(file).jobs)


def test_the_machines_are_the_fewest_that_hold_the_busiest_moment(file):
    """28 GPUs at 86400 s, which 14 servers of two have."""
    assert len(everything(file).cluster.worker_ids) == 14
    assert len(everything(file, gpus_per_server=8).cluster.worker_ids) == 4
    assert len(everything(file, gpus_per_server=8, max_gpus=4).cluster.worker_ids) == 1
    assert len(everything(file, gpus_per_worker=4).cluster.worker_ids) == 7  # 4 + 3 workers


def test_a_job_without_gpus_is_a_worker_without_gpus(file):
    job = next(job for job in everything(file, cpu_jobs=True).jobs if job.id == "b")
    assert job.worker["gpu"] == 0
    assert job.worker["cpu"] == 4


def test_options_that_are_given_hold(file):
    instance = everything(file, worker_servers=8, max_gpus=12)  # 8 is the default as well
    assert len(instance.cluster.worker_ids) == 8
    assert kept_line(instance) == (
        "kept 3 of 7 jobs: 1 bad duration, 1 never ran, 2 by GPUs (1..12)"
    )
    short = everything(file, horizon=10)
    assert short.horizon == 10
    assert kept_line(short) == (
        "kept 1 of 7 jobs: 1 bad duration, 1 never ran, 1 by GPUs (1..16), "
        "3 outside the window (10 slots from 0)"
    )


def test_the_recorded_options_make_the_same_instance(file):
    instance = everything(file)
    assert read_instance(file, PlainOptions(**instance.metadata["options"])) == instance


def test_a_server_that_holds_no_worker_names_the_option(file):
    with pytest.raises(InstanceError, match=r"^gpus_per_server: expected gpu >= 4, which each of"):
        everything(file, gpus_per_worker=4, gpus_per_server=2)
    with pytest.raises(InstanceError, match=r"^ps_server_cpus: expected cpu >= 2, which each of"):
        everything(file, ps_server_cpus=1.0)


def test_the_busiest_moment_is_that_of_the_recorded_runs_where_they_are_known():
    job = {"id": "a", "submitted": 0.0, "duration": 3600.0, "gpus": 4}
    options = MachineOptions(slot_seconds=1800.0)
    at_once = options.sized(
        pd.DataFrame([job, job | {"id": "b"}]).assign(started=float("nan"), owner="")
    )
    in_turn = at_once.assign(started=[0.0, 3600.0])
    for frame, most, slots in ((at_once, 8, 2), (in_turn, 4, 4)):
        jobs = jobs_of(frame, options)
        assert busiest(frame, frame["workers"]) == most
        assert last_slot(frame, jobs, options) == slots
        assert ps_counts(frame, jobs).tolist() == [1, 1]


def test_all_jobs_without_gradients_need_no_parameter_servers(file):
    """The fewest machines for parameter servers were once sought for none of them."""
    instance = everything(file, gradient_mb=0.0)
    assert (len(instance.jobs), len(instance.cluster.ps_ids)) == (4, 1)


@pytest.mark.skipif(not PODS.exists(), reason=f"no openb trace at {PODS}")
def test_every_pod_of_openb_that_ran_on_the_fewest_nodes():
    options = OpenbOptions(**LOOSE)
    instance = FORMATS["openb"].imported(PODS, options, frozenset(), NODES)[0]
    assert kept_line(instance) == "kept 6203 of 8152 jobs: 897 never scheduled, 1052 by GPUs (1..8)"
    description = describe_instance(instance)
    assert description.can_finish == 6203
    assert (
        sum(instance.cluster.worker_capacity[:, 0]) >= 65.59
    )  # GPUs held at the busiest moment, by a program of its own
    fewer = OpenbOptions(**LOOSE, worker_servers=8)
    instance, _, _ = FORMATS["openb"].imported(PODS, fewer, {"worker_servers"}, NODES)
    assert len(instance.cluster.worker_ids) == 8


@pytest.mark.parametrize(("start", "names"), [("-90000", "acde"), ("0", "acde"), ("86400", "cde")])
def test_a_start_that_is_given_is_where_the_arrivals_of_all_jobs_begin(file, start, names):
    instance = everything(file, start=start)
    assert "".join(job.id for job in instance.jobs) == names
    slots = (90000 - float(start)) / 1800
    assert instance.jobs[-1].arrival == int(slots)
