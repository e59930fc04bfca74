"""The instance file: what is accepted, what each kind of bad input is told, and how it is written.

The bad inputs are one row each of ``malformed.txt``.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest

import oasis
from oasis.model.errors import InstanceError
from oasis.model.instance import Instance

GONE = object()

VALID: dict[str, Any] = json.loads(Path(__file__).with_name("valid.json").read_text())
# Field | its new value as JSON, or GONE | the error | whether the schema cannot say it.
ROWS = Path(__file__).with_name("malformed.txt").read_text(encoding="utf-8").splitlines()


def changed(field: str, value: Any) -> dict[str, Any]:
    """A valid file's data with one field replaced, added or removed."""
    data = copy.deepcopy(VALID)
    *path, last = (int(k) if k.isdigit() else k for k in re.findall(r"\w+", field))
    here: Any = data
    for key in path:
        here = here[key]
    if value is GONE:
        del here[last]
    else:
        here[last] = value
    return data


def read_data(data: Any, tmp_path: Path) -> Instance:
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return oasis.read(path)


@pytest.mark.parametrize("row", ROWS)
def test_bad_field_is_named_with_what_was_expected(row: str, tmp_path: Path) -> None:
    field, value, message, *_ = row.split(" | ")
    with pytest.raises(InstanceError) as caught:
        read_data(changed(field, GONE if value == "GONE" else json.loads(value)), tmp_path)
    error = caught.value
    assert str(error) == message == f"{error.field}: {error.detail}"
    assert error.detail == error.expected + ("" if error.got is None else f", got {error.got}")


def test_job_without_work_is_refused(tmp_path: Path) -> None:
    data = changed("jobs[3].minibatch_time", 0)
    data["jobs"][3]["gradient_mb"] = 0
    with pytest.raises(InstanceError) as caught:
        read_data(data, tmp_path)
    expected = "jobs[3].minibatch_time: expected > 0 for a job without gradients to send"
    assert str(caught.value) == expected


@pytest.mark.parametrize("tau", [1e17, 1e300, 1e308])
def test_hopelessly_long_job_is_refused_or_rejected_never_a_crash(
    tau: float, tmp_path: Path
) -> None:
    """Each field is a finite number; 600 mini-batches of 1e308 slots are none."""
    try:
        instance = read_data(changed("jobs[3].minibatch_time", tau), tmp_path)
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
def test_text_that_is_no_instance_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        oasis.read(path)
    assert str(caught.value).startswith(message)


WITHOUT_PS = {
    **{name: value for name, value in VALID.items() if name != "ps_servers"},
    "jobs": [
        {
            **{name: value for name, value in VALID["jobs"][0].items() if name != "ps"},
            **{"gradient_mb": 0.0, "worker": {"gpu": 1}},
        }
    ],
}


def test_jobs_without_parameter_servers_need_no_machines_for_them(tmp_path: Path) -> None:
    instance = read_data(WITHOUT_PS, tmp_path)
    assert instance.cluster.ps_ids == ()
    assert instance.cluster.ps_capacity.shape == (0, len(instance.cluster.resources))
    assert not instance.jobs[0].needs_ps
    assert read_data(WITHOUT_PS | {"ps_servers": []}, tmp_path) == instance
    oasis.write(instance, tmp_path / "again.json")
    assert oasis.read(tmp_path / "again.json") == instance


@pytest.mark.parametrize("servers", [{}, {"ps_servers": []}])
def test_a_job_that_needs_a_parameter_server_needs_a_machine_for_it(
    servers: dict[str, Any], tmp_path: Path
) -> None:
    needs = WITHOUT_PS["jobs"][0] | {
        "id": "needs",
        "worker": {"bandwidth_gbps": 1.5},
        "ps": {"bandwidth_gbps": 2.0},
    }
    data = WITHOUT_PS | servers | {"jobs": [*WITHOUT_PS["jobs"], needs]}
    with pytest.raises(InstanceError) as caught:
        read_data(data, tmp_path)
    expected = "expected 0, as there is no server in ps_servers, got 1.5"
    assert str(caught.value) == f"jobs[1].worker.bandwidth_gbps: {expected}"


# -- what is accepted ------------------------------------------------------------------------------


def test_valid_file_is_read_field_by_field(tmp_path: Path) -> None:
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


def test_group_of_servers_expands_to_numbered_machines(tmp_path: Path) -> None:
    instance = read_data(VALID, tmp_path)
    assert instance.cluster.worker_ids == ("w0", "w1#0", "w1#1")
    assert [server.count for server in instance.cluster.worker_servers] == [1, 2]
    path = tmp_path / "again.json"
    oasis.write(instance, path)
    # a group stays a group, a machine stays without one, and what is left out stays so
    assert json.loads(path.read_text(encoding="utf-8")) == VALID


def test_resource_left_out_is_zero(tmp_path: Path) -> None:
    data = changed("jobs[3].gradient_mb", 0.0)
    data["jobs"][3]["worker"] = {}
    data["jobs"][3]["ps"] = {}
    job = read_data(data, tmp_path).jobs[3]
    assert (job.bandwidth, job.ps_bandwidth, job.needs_ps) == (0.0, 0.0, False)


def test_metadata_is_kept_but_no_part_of_equality(tmp_path: Path) -> None:
    one = read_data(VALID | {"metadata": {"seed": 3, "note": "é"}}, tmp_path)
    assert one.metadata == {"seed": 3, "note": "é"}
    assert one == read_data(VALID, tmp_path)
    oasis.write(one, tmp_path / "out.json")
    assert oasis.read(tmp_path / "out.json").metadata == one.metadata


def test_no_jobs_is_an_instance(tmp_path: Path) -> None:
    instance = read_data(VALID | {"jobs": []}, tmp_path)
    assert instance.jobs == ()
    assert oasis.simulate(instance, oasis.OASiS.from_instance(instance)).total_utility == 0.0


# -- writing ---------------------------------------------------------------------------------------


def test_instance_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    good = read_data(VALID, tmp_path)
    path = tmp_path / "instance.json"
    before = path.read_bytes()
    bad = Instance(good.horizon, good.cluster, good.jobs, {"x": math.nan})
    with pytest.raises(ValueError, match="not JSON compliant"):
        oasis.write(bad, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["instance.json"]


def test_utility_of_an_unknown_class_cannot_be_written(tmp_path: Path) -> None:
    class Mine(oasis.Constant):
        pass

    good = read_data(VALID, tmp_path)
    job = oasis.Job("mine", 0, 1, 1, 1, 1.0, 0.0, {}, {}, Mine(1.0))
    with pytest.raises(InstanceError, match="expected one of sigmoid, constant"):
        oasis.write(Instance(10, good.cluster, (job,)), tmp_path / "mine.json")
    assert os.listdir(tmp_path) == ["instance.json"]
