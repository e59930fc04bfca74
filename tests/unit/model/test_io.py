"""The instance file: what is accepted, what each kind of bad input is told, and how it is written.

The bad inputs are those of the "Instance file" section of the documentation, one row each.
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

RESOURCES = ["gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_gbps"]
UTILITIES = (
    {"kind": "sigmoid", "priority": 50.0, "decay": 0.5, "target": 4.0},
    {"kind": "constant", "value": 3.0},
    {"kind": "deadline", "value": 3.0, "deadline": 4.0},
    {"kind": "piecewise", "delays": [0.0, 2.5], "values": [4.0, 1.5]},
)
VALID: dict[str, Any] = {
    "format": "oasis-instance",
    "version": 1,
    "horizon": 10,
    "slot_seconds": 1200.0,
    "resources": RESOURCES,
    "worker_servers": [
        {"id": "w0", "capacity": {"gpu": 4.0, "cpu": 32.0, "bandwidth_gbps": 20.0}},
        {"id": "w1", "capacity": {"cpu": 8.0}, "count": 2},
    ],
    "ps_servers": [{"id": "p0", "capacity": {"cpu": 8.0, "bandwidth_gbps": 20.0}}],
    "jobs": [
        {
            "id": f"j{i}",
            "arrival": i,
            "epochs": 20,
            "chunks": 10,
            "minibatches": 3,
            "minibatch_time": 0.002,
            "gradient_mb": 100.0,
            "worker": {"gpu": 1.0, "cpu": 4.0, "bandwidth_gbps": 1.0},
            "ps": {"cpu": 2.0, "bandwidth_gbps": 5.0},
            "utility": utility,
        }
        for i, utility in enumerate(UTILITIES)
    ],
}

FINITE = "expected a finite number >= 0, got "
POSITIVE = "expected a finite number > 0, got "
COUNT = "expected an integer >= 1, got "
SLOT = "expected an integer >= 0, got "
LARGE = "expected a number <= 1e+30, got "
NAME = "expected a non-empty string, got "
MISSING = "missing; this key is required"
UNKNOWN = "expected one of the resources gpu, cpu, memory_gb, storage_gb, bandwidth_gbps"
KINDS = "expected one of sigmoid, constant, deadline, piecewise, got "
TOP = (
    "unknown key; expected one of format, version, horizon, slot_seconds, resources, "
    "worker_servers, jobs, ps_servers, metadata"
)
JOB = (
    "unknown key; expected one of id, arrival, epochs, chunks, minibatches, minibatch_time, "
    "gradient_mb, worker, utility, ps, min_workers, requires, ps_requires, forms, speeds, owner"
)

# the field that is changed, its new value, the message; the message names the same field
BAD_FIELDS: list[tuple[str, Any, str]] = [
    ("jobs[1].owner", "", "expected a non-empty string, got ''"),
    ("jobs[1].owner", None, "expected a non-empty string, got None"),
    ("format", GONE, MISSING),
    ("format", "oasis", "expected 'oasis-instance', got 'oasis'"),
    ("format", None, "expected 'oasis-instance', got None"),
    ("version", GONE, MISSING),
    ("version", 2, "expected 1, got 2"),
    ("version", True, "expected 1, got True"),
    ("version", 1.0, "expected 1, got 1.0"),
    ("extra", 1, TOP),
    ("horizon", GONE, MISSING),
    ("horizon", 0, COUNT + "0"),
    ("slot_seconds", GONE, MISSING),
    ("slot_seconds", 0, POSITIVE + "0"),
    ("resources", GONE, MISSING),
    ("resources", [], "expected at least one resource"),
    ("resources", "cpu", "expected a list, got 'cpu'"),
    ("resources[1]", "gpu", "duplicate resource 'gpu'"),
    ("resources[2]", "", NAME + "''"),
    ("worker_servers", GONE, MISSING),
    ("worker_servers", [], "expected at least one server"),
    ("worker_servers", {}, "expected a list, got {}"),
    ("worker_servers[0]", 7, "expected an object, got 7"),
    ("worker_servers[0].id", GONE, MISSING),
    ("worker_servers[0].id", "", NAME + "''"),
    ("worker_servers[0].name", "x", "unknown key; expected one of id, capacity, count, labels"),
    ("worker_servers[0].capacity", GONE, MISSING),
    ("worker_servers[0].capacity", [1], "expected an object of amounts, got [1]"),
    ("worker_servers[0].capacity.gpu", -1, FINITE + "-1"),
    ("worker_servers[0].capacity.tpu", 1, UNKNOWN),
    ("worker_servers[1].count", 0, COUNT + "0"),
    ("ps_servers", None, "expected a list, got None"),
    ("ps_servers[0].id", "w0", "duplicate server id 'w0'"),
    ("ps_servers[0].id", "w1#1", "duplicate server id 'w1#1'"),
    ("ps_servers[0].capacity.cpu", math.inf, FINITE + "inf"),
    ("ps_servers[0].capacity.cpu", 1e300, LARGE + "1e+300"),
    ("worker_servers[0].capacity.gpu", 1.1e30, LARGE + "1.1e+30"),
    ("jobs[3].gradient_mb", 1e300, LARGE + "1e+300"),
    ("jobs[3].minibatch_time", 1e300, LARGE + "1e+300"),
    ("jobs[3].worker.gpu", 1e300, LARGE + "1e+300"),
    ("metadata", [1], "expected an object, got [1]"),
    ("metadata", {"a": math.nan}, "expected finite numbers, got NaN or infinity"),
    ("jobs", GONE, MISSING),
    ("jobs", {}, "expected a list, got {}"),
    ("jobs[1]", "j", "expected an object, got 'j'"),
    ("jobs[3].id", GONE, MISSING),
    ("jobs[3].id", "j0", "duplicate job id 'j0'"),
    ("jobs[3].id", "", NAME + "''"),
    ("jobs[3].colour", 1, JOB),
    ("jobs[3].arrival", GONE, MISSING),
    ("jobs[3].arrival", -1, SLOT + "-1"),
    ("jobs[3].arrival", 10, "expected 0..9, got 10"),
    ("jobs[3].epochs", 0, COUNT + "0"),
    ("jobs[3].chunks", 0, COUNT + "0"),
    ("jobs[3].min_workers", 1.5, COUNT + "1.5"),
    ("jobs[3].min_workers", 11, "expected at most chunks (10), got 11"),
    ("jobs[3].minibatches", 0, COUNT + "0"),
    ("jobs[3].minibatch_time", -0.1, FINITE + "-0.1"),
    ("jobs[3].gradient_mb", -1, FINITE + "-1"),
    ("jobs[3].worker", GONE, MISSING),
    ("jobs[3].worker", 3, "expected an object of amounts, got 3"),
    ("jobs[3].worker.cpu", -4, FINITE + "-4"),
    ("jobs[3].worker.tpu", 1, UNKNOWN),
    ("jobs[3].ps.tpu", 0, UNKNOWN),
    ("jobs[3].ps.memory_gb", math.nan, FINITE + "nan"),
    (
        "jobs[3].worker.bandwidth_gbps",
        0,
        "expected > 0 for a job with gradients to send, got 0.0",
    ),
    (
        "jobs[3].worker.bandwidth_gbps",
        GONE,
        "expected > 0 for a job with gradients to send, got 0.0",
    ),
    (
        "jobs[3].worker.bandwidth_gbps",
        6,
        "expected at most that of a parameter server (5), got 6.0",
    ),
    ("jobs[3].utility", GONE, MISSING),
    ("jobs[3].utility.kind", "linear", KINDS + "'linear'"),
    ("jobs[3].utility.extra", 1, "unknown key; expected one of kind, delays, values"),
    ("jobs[0].utility.priority", -1, FINITE + "-1"),
    ("jobs[0].utility.decay", -1, FINITE + "-1"),
    ("jobs[0].utility.target", math.nan, FINITE + "nan"),
    ("jobs[0].utility.target", GONE, MISSING),
    ("jobs[1].utility.value", -1, FINITE + "-1"),
    ("jobs[2].utility.deadline", -1, FINITE + "-1"),
    ("jobs[3].utility.delays", [], "expected at least one number"),
    ("jobs[3].utility.delays", 3, "expected a list, got 3"),
    ("jobs[3].utility.delays[1]", 0.0, "expected strictly increasing delays"),
    ("jobs[3].utility.delays[1]", -1, FINITE + "-1"),
    ("jobs[3].utility.values[1]", 4.5, "expected non-increasing values"),
    ("jobs[3].utility.values", [1], "expected 2 values, one for each delay"),
    ("jobs[3].utility.values[0]", True, FINITE + "True"),
]

# the same, where the message names another field than the one changed
BAD_ELSEWHERE: list[tuple[str, Any, str]] = [
    (
        "jobs[3].utility",
        {"kind": "constant", "value": 1e308},
        f"jobs[3].utility.value: {LARGE}1e+308",
    ),
    (
        "jobs[3].utility",
        {"kind": "piecewise", "delays": [0, 1], "values": [1e308, 0]},
        f"jobs[3].utility.values[0]: {LARGE}1e+308",
    ),
    (
        "resources",
        ["cpu"],
        "worker_servers[0].capacity.gpu: expected one of the resources cpu",
    ),
    (
        "jobs[3].ps.bandwidth_gbps",
        0.5,
        "jobs[3].worker.bandwidth_gbps: expected at most that of a parameter server (0.5), got 1.0",
    ),
    (
        "jobs[3].ps.bandwidth_gbps",
        GONE,
        "jobs[3].worker.bandwidth_gbps: expected at most that of a parameter server (0), got 1.0",
    ),
    (
        "jobs[1].utility.kind",
        GONE,
        "jobs[1].utility.kind: missing; this key is required",
    ),
]


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


def row_id(row: tuple[str, Any, str]) -> str:
    return f"{row[0]}={'(gone)' if row[1] is GONE else str(row[1])[:12]}"


@pytest.mark.parametrize("row", BAD_FIELDS, ids=row_id)
def test_bad_field_is_named_with_what_was_expected(
    row: tuple[str, Any, str], tmp_path: Path
) -> None:
    field, value, message = row
    with pytest.raises(InstanceError) as caught:
        read_data(changed(field, value), tmp_path)
    assert str(caught.value) == f"{field}: {message}"
    error = caught.value
    assert (error.field, error.detail) == (field, message)
    assert message == (
        error.expected if error.got is None else f"{error.expected}, got {error.got}"
    )


@pytest.mark.parametrize("row", BAD_ELSEWHERE, ids=row_id)
def test_bad_combination_names_the_field_that_breaks(
    row: tuple[str, Any, str], tmp_path: Path
) -> None:
    field, value, message = row
    with pytest.raises(InstanceError) as caught:
        read_data(changed(field, value), tmp_path)
    assert str(caught.value) == message


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


def test_not_a_number_literal_is_refused_with_its_path(tmp_path: Path) -> None:
    """Python's JSON reads NaN and Infinity; the instance does not."""
    path = tmp_path / "nan.json"
    text = json.dumps(VALID).replace('"minibatch_time": 0.002', '"minibatch_time": Infinity', 1)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        oasis.read(path)
    assert str(caught.value) == f"jobs[0].minibatch_time: {FINITE}inf"


# -- what is accepted ------------------------------------------------------------------------------


def test_valid_file_is_read_field_by_field(tmp_path: Path) -> None:
    instance = read_data(VALID, tmp_path)
    assert (instance.horizon, instance.slot_seconds) == (10, 1200.0)
    assert instance.cluster.resources == tuple(RESOURCES)
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
    servers = json.loads(path.read_text(encoding="utf-8"))["worker_servers"]
    assert servers == VALID["worker_servers"]  # a group stays a group, a machine stays without one


def test_integers_are_welcome_where_numbers_are(tmp_path: Path) -> None:
    data = changed("jobs[3].minibatch_time", 1)
    data["slot_seconds"] = 60
    instance = read_data(data, tmp_path)
    assert instance.jobs[3].minibatch_time == 1.0
    assert isinstance(instance.jobs[3].minibatch_time, float)


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
