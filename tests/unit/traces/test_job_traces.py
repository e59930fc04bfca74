"""Traces of jobs with GPUs and times: Slurm's accounting, the Standard Workload Format, plain."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.cli.commands.import_trace import elastic_from_window
from oasis import Instance, InstanceError
from oasis.simulator import elastic_from_dict
from oasis.traces import PlainOptions, SlurmOptions, SwfOptions
from oasis.traces.job_table import MachineOptions
from oasis.traces.plain import read_instance
from oasis.traces.plain_instance import PLAIN, JobTrace
from oasis.traces.readers import SWF
from oasis.traces.slurm import SLURM
from oasis.traces.table import TraceSource, pd, read_source
from oasis.traces.times import OTHERS, WANTED

PLAIN_ROWS = "id,submitted,duration,gpus\na,100,7200,4\nb,1900,3600,2\nc,2000,5400,8\n"
SLURM_ROWS = """\
JobID|User|Partition|Submit|ElapsedRaw|State|AllocTRES
17|ann|gpu|2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
17.batch||||7200|COMPLETED|cpu=16
17.0||||7200|COMPLETED|cpu=16
18|bob|gpu|2024-03-01T08:10:00|3600|RUNNING|gres/gpu=2
19|bob|long|2024-03-01T08:40:00|3600|CANCELLED by 5|gres/gpu:v100=2
20_3|ann|gpu|2024-03-01T08:50:00|5400|TIMEOUT|gres/gpu=8,gres/gpu:a100=8
21|ann|gpu|Unknown|3600|COMPLETED|gres/gpu=2
22|ann|gpu|2024-03-01T08:55:00|0|CANCELLED|gres/gpu=2
23|eve|cpu|2024-03-01T08:56:00|3600|COMPLETED|cpu=4,mem=8G
"""
SWF_ROWS = """\
; Version: 2.2
; Computer: an example
1 0 10 7200 4 -1 -1 4 7200 -1 1 3 1 -1 1 -1 -1 -1
2 600 0 3600 -1 -1 -1 8 7200 -1 1 5 1 -1 2 -1 -1 -1
3 700 0 -1 4 -1 -1 4 7200 -1 5 5 1 -1 2 -1 -1 -1
4 800 0 3600
"""
KINDS: dict[str, tuple[JobTrace, type[MachineOptions], str]] = {
    "plain": (PLAIN, PlainOptions, PLAIN_ROWS),
    "slurm": (SLURM, SlurmOptions, SLURM_ROWS),
    "swf": (SWF, SwfOptions, SWF_ROWS),
}


def imported(directory: Path, kind: str, rows: str | None = None, **options: Any) -> Instance:
    _, made, example = KINDS[kind]
    path = directory / f"jobs.{kind}"
    path.write_text(example if rows is None else rows, encoding="utf-8")
    return read_instance(path, made(start=options.pop("start", "first"), **options))


def workers(instance: Instance) -> dict[str, int]:
    """Recorded workers of each job: the instance lets it have twice as many."""
    return {job.id: job.chunks // 2 for job in instance.jobs}


# --- what is read -----------------------------------------------------------------------------


def test_plain_jobs(tmp_path: Path) -> None:
    instance = imported(tmp_path, "plain")
    assert workers(instance) == {"a": 4, "b": 2, "c": 8}
    assert [job.arrival for job in instance.jobs] == [0, 1, 1]
    assert [job.work(instance.slot_seconds) for job in instance.jobs] == [16, 4, 24]
    assert instance.metadata["window_start"] == "100"


def test_slurm_jobs_that_ran(tmp_path: Path) -> None:
    instance = imported(tmp_path, "slurm", horizon=30)
    assert workers(instance) == {"17": 4, "19": 2, "20_3": 8}
    assert instance.metadata["window_start"] == "2024-03-01 08:00:00"
    assert instance.metadata["left_out"]["gpus"] == 1  # 23 has none
    assert instance.metadata["malformed"]["jobs"] == {
        "has not ended": {"count": 1, "first_row": 5},
        f"bad Submit: unknown, expected {WANTED}; {OTHERS}": {"count": 1, "first_row": 8},
        "never ran": {"count": 1, "first_row": 9},
    }


@pytest.mark.parametrize(
    ("kind", "options", "ids"),
    [
        ("slurm", {"user": "ann"}, ["17", "20_3"]),
        ("slurm", {"partition": "long"}, ["19"]),
        ("swf", {"queue": "2"}, ["2"]),
        ("swf", {"user": "3"}, ["1"]),
    ],
)
def test_jobs_can_be_chosen_by_label(
    tmp_path: Path, kind: str, options: dict[str, str], ids: list[str]
) -> None:
    assert [job.id for job in imported(tmp_path, kind, **options).jobs] == ids


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("slurm", {"user": "nobody"}, r"^user: expected one of ann, bob, eve, got 'nobody'$"),
        ("slurm", {"partition": "x"}, r"^partition: expected one of cpu, gpu, long, got 'x'$"),
        ("swf", {"queue": "9"}, r"^queue: expected one of 1, 2, got '9'$"),
    ],
)
def test_an_unknown_label_is_named_with_those_that_there_are(
    tmp_path: Path, kind: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(InstanceError, match=message):
        imported(tmp_path, kind, **options)


def test_the_readers_are_those_of_the_kinds(tmp_path: Path) -> None:
    for kind, (_, options, text) in KINDS.items():
        path = tmp_path / kind
        path.write_text(text, encoding="utf-8")
        made = read_instance(path, options())
        assert read_instance(path) == read_instance(path, format=kind) == made
        assert made.metadata["options"]["start"] == "busiest"
    with pytest.raises(InstanceError, match=r"^nodes: expected the node list of the openb trace"):
        read_instance(path, format="openb")


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change",
    [
        gzip.compress,
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text + b"\n\n  \n",
        lambda text: gzip.compress(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n") + b"\r\n"),
    ],
    ids=["gzip", "byte order mark", "CRLF", "blank end", "all of them"],
)
def test_the_layout_of_the_file_changes_nothing(tmp_path: Path, kind: str, change: Any) -> None:
    expected = imported(tmp_path, kind)
    _, options, rows = KINDS[kind]
    path = tmp_path / f"jobs.{kind}"
    path.write_bytes(change(rows.encode()))
    assert read_instance(path, options(start="first")) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_dash_is_standard_input(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, options, rows = KINDS[kind]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(rows.encode()))))
    instance = read_instance("-", options(start="first"))
    assert instance.jobs == imported(tmp_path, kind).jobs
    assert instance.metadata["files"] == {"jobs": "standard input"}


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(PLAIN_ROWS.encode())[:-9])
    with pytest.raises(InstanceError, match=r"^expected a whole gzip file, got a damaged "):
        read_source(path)


def test_bytes_that_are_no_utf8_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"id,gpus\nM\xfcller,4\nM\xe4ller,2")
    lines = ("id,gpus", "M\\xfcller,4", "M\\xe4ller,2")
    assert read_source(path) == TraceSource("jobs.csv", lines)


def test_an_empty_file_has_no_header(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"\n\n")
    assert read_source(path).lines == ()
    assert read_source(path).header == ""


# --- machines and elastic workloads -------------------------------------------------------------


def test_machines_have_cpus_in_proportion_to_their_gpus() -> None:
    options = MachineOptions(gpus_per_server=4, cpus_per_gpu=6.0, worker_servers=3, ps_servers=2)
    cluster = options.cluster()
    assert cluster.worker_servers[0].capacity["cpu"] == 24.0
    assert (len(cluster.worker_ids), len(cluster.ps_ids)) == (3, 2)


def test_gpus_are_rounded_up_to_workers() -> None:
    (job,) = MachineOptions(gpus_per_worker=4).sized(pd.DataFrame({"gpus": [9]})).itertuples()
    assert (job.workers, job.gpus, job.gpu) == (3, 9, 4.0)


HELD_ROWS = """id,submitted,started,ended,gpus,state
a,0,0,3600,4,COMPLETED
b,600,600,7200,8,COMPLETED
c,900,900,,12,RUNNING
d,9000,9000,12600,2,COMPLETED
e,90000,90000,,64,RUNNING
"""


@pytest.mark.parametrize(
    ("fixed", "servers", "sizes", "told"),
    [
        (None, 4, [8.0, 8.0, 4.0], "which the machines lack at all times: 12"),
        ({"worker_servers"}, 4, [8.0, 8.0, 4.0], "which the machines lack at all times: 12"),
        (set(), 4, [8.0, 8.0], "which are beside the machines: 12"),
        (None, 1, None, "expected machines with more than the 12 GPUs that running jobs hold"),
    ],
)
def test_gpus_of_jobs_that_still_run_are_not_free_in_an_instance(
    tmp_path: Path, fixed: set[str] | None, servers: int, sizes: list[float] | None, told: str
) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HELD_ROWS, encoding="utf-8")
    window = {"slot_seconds": 600.0, "horizon": 24, "arrival_slots": 20, "min_duration": 1.0}
    machines = {"worker_servers": servers, "gpus_per_server": 8}
    options = PlainOptions(start="first", min_gpus=1, **window, **machines)
    if sizes is None:
        with pytest.raises(InstanceError, match=told):
            PLAIN.imported(path, options, fixed, lacks=True)
        return
    fixed = fixed if fixed is None else {"gpus_per_server", *window, *fixed}
    instance, _, _ = PLAIN.imported(path, options, fixed, lacks="lack" in told)
    cluster = instance.cluster
    assert cluster.worker_capacity[:, 0].tolist() == sizes
    assert cluster.worker_capacity[-1, 1] == sizes[-1] * options.cpus_per_gpu
    assert any(told in note for note in instance.metadata["notes"]["jobs"])


def test_default_machines_are_beside_those_that_others_hold(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(HELD_ROWS, encoding="utf-8")
    options = PlainOptions(slot_seconds=600.0, horizon=24, min_duration=1.0, min_gpus=1)
    instance = read_instance(path, options)
    assert len(instance.cluster.worker_ids) == options.worker_servers
    (note,) = (n for n in instance.metadata["notes"]["jobs"] if "still run" in n)
    assert note == "GPUs of jobs that still run, which are beside the machines: 12"


def test_elastic_jobs_do_the_recorded_work(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN_ROWS, encoding="utf-8")
    options = PlainOptions(start="first", worker_servers=5, gpus_per_server=8, elasticity=1.5)
    instance, trace, _ = PLAIN.imported(path, options)
    workload = elastic_from_dict(elastic_from_window(trace.frame, options, instance.cluster))
    assert [machine.amounts[0] for machine in workload.site.machines] == [8.0] * 5
    jobs = [(j.id, j.arrival, j.work, j.min_workers, j.max_workers) for j in workload.jobs]
    assert jobs == [
        ("a", 0.0, 28800.0, 1, 6),
        ("b", 1800.0, 7200.0, 1, 3),
        ("c", 1900.0, 43200.0, 1, 12),
    ]
