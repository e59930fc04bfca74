"""Traces of jobs with GPUs and times: Slurm's accounting, the Standard Workload Format, plain."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest

from experiments.cli.commands.import_trace import elastic_from_window
from oasis import Instance, InstanceError
from oasis.simulator import elastic_from_dict
from oasis.traces import PlainOptions, SlurmOptions, SwfOptions
from oasis.traces.job_table import MachineOptions
from oasis.traces.plain import read_instance
from oasis.traces.plain_instance import PLAIN
from oasis.traces.table import TraceSource, read_source

OPTIONS: dict[str, type[MachineOptions]] = {
    "plain": PlainOptions,
    "slurm": SlurmOptions,
    "swf": SwfOptions,
}


def text_of(kind: str) -> str:
    """The rows of a case of this format."""
    cases = json.loads(Path(__file__).with_name("cases").joinpath(f"{kind}.json").read_text())
    about = ("plain jobs", f"{kind} jobs that ran")
    return "\n".join(next(case["lines"] for case in cases if case["about"] in about)) + "\n"


KINDS = {kind: (made, text_of(kind)) for kind, made in OPTIONS.items()}


def imported(directory: Path, kind: str) -> Instance:
    made, example = KINDS[kind]
    path = directory / f"jobs.{kind}"
    path.write_text(example, encoding="utf-8")
    return read_instance(path, made(start="first"))


def test_the_readers_are_those_of_the_kinds(tmp_path):
    for kind, (options, text) in KINDS.items():
        path = tmp_path / kind
        path.write_text(text, encoding="utf-8")
        made = read_instance(path, options())
        assert read_instance(path) == read_instance(path, format=kind) == made
        assert made.metadata["options"]["start"] == "busiest"
    with pytest.raises(InstanceError, match=r"^nodes: expected the node list of the openb trace"):
        read_instance(path, format="openb")


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
def test_the_layout_of_the_file_changes_nothing(tmp_path, kind, change):
    expected = imported(tmp_path, kind)
    options, rows = KINDS[kind]
    path = tmp_path / f"jobs.{kind}"
    path.write_bytes(change(rows.encode()))
    assert read_instance(path, options(start="first")) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_dash_is_standard_input(tmp_path, kind, monkeypatch):
    options, rows = KINDS[kind]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(rows.encode()))))
    instance = read_instance("-", options(start="first"))
    assert instance.jobs == imported(tmp_path, kind).jobs
    assert instance.metadata["files"] == {"jobs": "standard input"}


def test_bytes_that_are_no_utf8_are_told_apart(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"id,gpus\nM\xfcller,4\nM\xe4ller,2")
    lines = ("id,gpus", "M\\xfcller,4", "M\\xe4ller,2")
    assert read_source(path) == TraceSource("jobs.csv", lines)


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
    tmp_path, fixed, servers, sizes, told
):
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


def test_default_machines_are_beside_those_that_others_hold(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HELD_ROWS, encoding="utf-8")
    options = PlainOptions(slot_seconds=600.0, horizon=24, min_duration=1.0, min_gpus=1)
    instance = read_instance(path, options)
    assert len(instance.cluster.worker_ids) == options.worker_servers
    (note,) = (n for n in instance.metadata["notes"]["jobs"] if "still run" in n)
    assert note == "GPUs of jobs that still run, which are beside the machines: 12"


def test_elastic_jobs_do_the_recorded_work(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(KINDS["plain"][1], encoding="utf-8")
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
