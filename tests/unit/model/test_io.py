"""The instance file: what is accepted, what is no file at all, and how it is written."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import oasis
from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from tests.builders import changed

VALID: dict[str, Any] = json.loads(Path(__file__).with_name("valid.json").read_text())


def read_data(data: Any, tmp_path: Path) -> Instance:
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return oasis.read(path)


def test_job_without_work_is_refused(tmp_path):
    data = changed(VALID, "jobs[3].minibatch_time", 0)
    data["jobs"][3]["gradient_mb"] = 0
    with pytest.raises(InstanceError) as caught:
        read_data(data, tmp_path)
    expected = "jobs[3].minibatch_time: expected > 0 for a job without gradients to send"
    assert str(caught.value) == expected


@pytest.mark.parametrize("tau", [1e17, 1e300, 1e308])
def test_hopelessly_long_job_is_refused_or_rejected_never_a_crash(tau, tmp_path):
    """Each field is a finite number; 600 mini-batches of 1e308 slots are none."""
    try:
        instance = read_data(changed(VALID, "jobs[3].minibatch_time", tau), tmp_path)
        run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    except InstanceError as error:
        assert error.field.startswith("jobs[3]")  # noqa: PT017 - either answer will do
    else:
        assert run.decisions[3].reason.startswith("cannot finish by the horizon")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an instance, got an empty file"),
        ("no", "expected an instance, got a file that begins with 'no'"),
        ("{", "expected JSON: Expecting property name"),
        ("[]", "expected an object, got []"),
        ("null", "expected an object, got None"),
        ('{"format": 1, "format": 2}', "format: repeated key; expected each key once"),
        ("[" * 100_000, "expected JSON: "),
    ],
)
def test_text_that_is_no_instance_is_refused(text, message, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        oasis.read(path)
    assert str(caught.value).startswith(message)


def test_valid_file_is_read_field_by_field(tmp_path):
    instance = read_data(VALID, tmp_path)
    assert (instance.horizon, instance.slot_seconds) == (10, 1200.0)
    assert instance.cluster.resources == tuple(VALID["resources"])
    assert instance.cluster.worker_capacity.tolist() == [
        [4.0, 32.0, 0.0, 0.0, 20.0],
        [0.0, 8.0, 0.0, 0.0, 0.0],
        [0.0, 8.0, 0.0, 0.0, 0.0],
    ]
    job = instance.jobs[2]
    assert (job.id, job.arrival, job.epochs, job.chunks, job.minibatches) == ("j2", 2, 20, 10, 3)
    assert (job.minibatch_time, job.gradient_mb) == (0.002, 100.0)
    assert dict(job.worker) == {"gpu": 1.0, "cpu": 4.0, "bandwidth_gbps": 1.0}
    assert [job.utility for job in instance.jobs] == [
        oasis.Sigmoid(50.0, 0.5, 4.0),
        oasis.Constant(3.0),
        oasis.Deadline(3.0, 4.0),
        oasis.Piecewise((0.0, 2.5), (4.0, 1.5)),
    ]


def test_group_of_servers_expands_to_numbered_machines(tmp_path):
    instance = read_data(VALID, tmp_path)
    assert instance.cluster.worker_ids == ("w0", "w1#0", "w1#1")
    assert [server.count for server in instance.cluster.worker_servers] == [1, 2]
    path = tmp_path / "again.json"
    oasis.write(instance, path)
    # a group stays a group, a machine stays without one, and what is left out stays so
    assert json.loads(path.read_text(encoding="utf-8")) == VALID


def test_resource_left_out_is_zero(tmp_path):
    data = changed(VALID, "jobs[3].gradient_mb", 0.0)
    data["jobs"][3]["worker"] = {}
    data["jobs"][3]["ps"] = {}
    job = read_data(data, tmp_path).jobs[3]
    assert (job.bandwidth, job.ps_bandwidth, job.needs_ps) == (0.0, 0.0, False)


def test_metadata_are_no_part_of_equality(tmp_path):
    assert read_data(VALID | {"metadata": {"seed": 3}}, tmp_path) == read_data(VALID, tmp_path)


def test_no_jobs_is_an_instance(tmp_path):
    instance = read_data(VALID | {"jobs": []}, tmp_path)
    assert instance.jobs == ()
    assert oasis.simulate(instance, oasis.OASiS.from_instance(instance)).total_utility == 0.0


class Mine(oasis.Constant):
    """A utility that files do not know."""


def test_instance_that_cannot_be_written_leaves_the_old_file(tmp_path):
    good = read_data(VALID, tmp_path)
    path = tmp_path / "instance.json"
    before = path.read_bytes()
    strange = replace(good.jobs[0], utility=Mine(1.0))
    for bad, message in (
        (replace(good, metadata={"x": math.nan}), "not JSON compliant"),
        (replace(good, jobs=(strange,)), "expected one of sigmoid, constant"),
    ):
        with pytest.raises(ValueError, match=message):
            oasis.write(bad, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["instance.json"]
