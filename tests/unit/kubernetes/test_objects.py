"""What owners write: how it is read, and how what makes no sense is named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import oasis
from oasis.kubernetes import names
from oasis.kubernetes.control.windows import parse_window
from oasis.kubernetes.names import BANDWIDTH, KIND
from oasis.kubernetes.objects.conditions import read_status
from oasis.kubernetes.objects.existing import JOB, JOBSET
from oasis.kubernetes.objects.node_affinity import REQUIRED
from oasis.kubernetes.objects.oasis_job import (
    UTILITY_FIELDS,
    JobSpec,
    SlotClock,
    parse_job,
    parse_utility,
)
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES, quantity, requests_of
from oasis.kubernetes.objects.schema import PHASES, checked_template, schema_of
from oasis.kubernetes.objects.utility_class import parse_class
from oasis.model.errors import InstanceError
from oasis.model.groups import GROUPS
from tests.kubernetes.instance_objects import job_object, node_objects, utility_object, written
from tests.unit.kubernetes.played import CLOCK, GPU, merged, pods, utility_class, window
from tests.unit.kubernetes.test_existing_jobs import batch_job, jobset, read

# -- rows of wrong_objects.yaml --------------------------------------------------------------------


ROWS = yaml.safe_load(Path(__file__).with_name("wrong_objects.yaml").read_text(encoding="utf-8"))
META = {"name": "j", "namespace": "ns", "uid": "u"}


def existing(row: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    notes = {getattr(names, key): value for key, value in row.get("notes", {}).items()}
    meta = {"annotations": notes}
    return merged(base, {"metadata": meta, "spec": row.get("spec", {})})  # type: ignore[no-any-return]


READERS = {
    "OasisJob": lambda row: parse_job(
        {"metadata": META, "spec": merged(ROWS["base"], row["spec"])}, CLOCK, DEFAULT_RESOURCES
    ),
    "pod": lambda row: checked_template(row, ""),
    "CapacityWindow": lambda row: parse_window(
        merged(window("w", 2, 4, nodes=["n1"]), {"spec": row["spec"]})
    ),
    "UtilityClass": lambda row: parse_class(merged(utility_class(), {"spec": row["spec"]})),
    "Job": lambda row: read(existing(row, batch_job()), JOB),
    "JobSet": lambda row: read(existing(row, jobset()), JOBSET),
    "status": lambda row: read_status(row["text"]),
}


@pytest.mark.parametrize(
    ("kind", "row"),
    [(kind, row) for kind in READERS for row in ROWS[kind]],
    ids=lambda given: str(given)[:80],
)
def test_what_makes_no_sense_is_named(kind: str, row: dict[str, Any]) -> None:
    with pytest.raises(InstanceError) as told:
        READERS[kind](row)
    begin, inside, part = row["says"].partition("..")
    assert str(told.value).startswith(begin)
    assert not inside or part in str(told.value)


def test_the_bases_make_sense() -> None:
    parse_job({"metadata": META, "spec": ROWS["base"]}, CLOCK, DEFAULT_RESOURCES)
    parse_window(window("w", 2, 4, nodes=["n1"]))
    parse_class(utility_class())
    read(batch_job(), JOB)
    read(jobset(SERVERS="s"), JOBSET)


# -- utilities, work, amounts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "utility",
    [
        oasis.Sigmoid(priority=3.0, decay=0.5, target=7.0),
        oasis.Constant(value=2.0),
        oasis.Deadline(value=2.0, deadline=4.0),
        oasis.Piecewise(delays=(0.0, 4.0), values=(3.0, 1.0)),
    ],
)
def test_every_utility_is_written_and_read(utility: oasis.Utility) -> None:
    found = parse_utility(utility_object(utility, CLOCK), CLOCK)
    assert found(range(9)).tolist() == pytest.approx(utility(range(9)).tolist())


@pytest.mark.parametrize("row", ROWS["right"], ids=str)
def test_what_makes_sense_is_read(row: dict[str, Any]) -> None:
    found = READERS["OasisJob"](row)
    read = {"resize": found.resize, "bandwidth": found.job.bandwidth}
    read["work"] = found.job.work(CLOCK.work_seconds)
    assert read | row["read"] == read


@pytest.mark.parametrize(
    ("text", "value"), [("500m", "1/2"), ("2Ki", "2048"), ("1e3", "1000"), (".5", "1/2"), (4, "4")]
)
def test_amounts_are_read_exactly(text: Any, value: str) -> None:
    assert str(quantity(text, "cpu")) == value


@pytest.mark.parametrize("text", ["", "-1", "1 G", "1.5.2", True, None, "nan", "1Zi", "٣"])
def test_what_is_no_amount_is_refused(text: Any) -> None:
    with pytest.raises(InstanceError, match="cpu: expected an amount"):
        quantity(text, "cpu")


@pytest.mark.parametrize("row", ROWS["requests"], ids=lambda row: row["read"])
def test_requests_of_a_pod_are_those_that_the_scheduler_counts(row: dict[str, Any]) -> None:
    assert written(requests_of(row["of"])["cpu"]) == row["read"]


# -- forms -----------------------------------------------------------------------------------------


MINUTE = SlotClock(slot_seconds=60.0)
OWN: dict[str, Any] = ROWS["base"]


def read_forms(**more: Any) -> JobSpec:
    meta = {"name": "j", "namespace": "ns", "uid": "u"}
    made = {"metadata": meta, "spec": {**deepcopy(OWN), **more}}
    return parse_job(made, MINUTE, DEFAULT_RESOURCES)


def test_what_a_form_leaves_out_is_the_jobs_own() -> None:
    asked = {"requests": {"cpu": "2", GPU: "2", names.BANDWIDTH: "2G"}}
    forms = [
        {},
        {"workers": {"minimum": 2, "maximum": 8, "resources": asked}},
        {"work": {"minibatchSeconds": 3}},
        {"work": {"chunks": 16, "minibatches": 2}, "parameterServers": {"resources": asked}},
    ]
    found, plain = read_forms(forms=forms), read_forms()
    first, wide, quick, other = found.job.in_forms
    assert first == plain.job
    assert (wide.min_workers, wide.chunks) == (2, 8)
    assert (wide.worker["gpu"], wide.bandwidth) == (2.0, 2.0)
    assert quick.minibatch_time == first.minibatch_time / 2
    assert quick.gradient_mb == first.gradient_mb
    assert other.ps["gpu"] == 2.0
    assert other.work(60.0) == pytest.approx(first.work(60.0) * 16 * 2 / (8 * 3), abs=1)
    for form in found.in_forms:
        assert (form.uid, form.id, form.resize) == (found.uid, found.id, found.resize)
        assert form.job.utility == plain.job.utility
    containers = found.in_forms[1].worker["spec"]["containers"]
    assert containers == [{"name": "train", "resources": asked}]
    assert found.in_forms[1].ps == plain.ps
    assert found.worker == plain.worker, "the templates of the job are left as they were"


def test_what_a_form_requires_holds_beside_what_its_template_asks_for() -> None:
    template = pods(cpu="1", gpu="1")
    zone = {"key": "zone", "operator": "Exists"}
    terms = [{"matchExpressions": [zone]}, {}]
    template["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    forms = [
        {"requires": {"gpu": ["t4"]}, "parameterServers": {"requires": {"disk": ["ssd"]}}},
    ]
    workers, work = {"maximum": 1, "template": template}, {"workerSeconds": 60}
    (found,) = read_forms(workers=workers, work=work, forms=forms).in_forms
    asked = found.worker["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert asked == [
        {"matchExpressions": [zone, {"key": "gpu", "operator": "In", "values": ["t4"]}]},
        {},
    ]
    assert found.ps is not None
    disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
    assert found.ps["spec"]["affinity"]["nodeAffinity"][REQUIRED] == {
        "nodeSelectorTerms": [{"matchExpressions": [disk]}]
    }


@pytest.mark.parametrize("work", [OWN["work"], {"workerSeconds": 720}])
def test_speeds_are_forms_as_the_model_has_them(work: dict[str, Any]) -> None:
    speeds = {"label": "gpu", "values": {"a100": 1.0, "h100": 2.5}}
    found, plain = read_forms(work=work, speeds=speeds), read_forms(work=work)
    model = oasis.Speeds("gpu", {"a100": 1.0, "h100": 2.5})
    for spec, form in zip(found.in_forms, oasis_forms(plain.job, model), strict=True):
        assert spec.job.minibatch_time == pytest.approx(form.minibatch_time)
        assert spec.job.gradient_mb == form.gradient_mb
        (value,) = form.requires["gpu"]
        assert spec.worker["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": [value]}]}
        ]


def oasis_forms(job: oasis.Job, speeds: oasis.Speeds) -> tuple[oasis.Job, ...]:
    return replace(job, speeds=speeds).in_forms


KINDS = oasis.Cluster(
    resources=("gpu", "cpu", "bandwidth_gbps"),
    worker_servers=(
        oasis.Server("a", {"gpu": 4, "cpu": 8, "bandwidth_gbps": 10}, labels={"gpu": "a100"}),
        oasis.Server("h", {"gpu": 4, "cpu": 8, "bandwidth_gbps": 10}, 2, labels={"gpu": "h100"}),
        oasis.Server("t", {"gpu": 4, "cpu": 8, "bandwidth_gbps": 10}),
    ),
    ps_servers=(oasis.Server("p", {"cpu": 8, "bandwidth_gbps": 10}, labels={"disk": "ssd"}),),
    slot_seconds=1200.0,
)
ASKED: list[dict[str, Any]] = [
    {},
    {"requires": {"gpu": ["a100", "h100"]}},
    {"ps_requires": {"disk": ["ssd"]}},
    {"ps_requires": {"disk": ["hdd"]}},
    {"speeds": oasis.Speeds("gpu", {"a100": 1.0, "h100": 2.0})},
    {
        "forms": (
            oasis.Form(chunks=3, minibatches=9, requires={"gpu": ["h100"]}),
            oasis.Form(worker={"gpu": 2, "bandwidth_gbps": 1}, min_workers=2, gradient_mb=3.0),
            oasis.Form(ps={"cpu": 3, "bandwidth_gbps": 2}, ps_requires={"disk": ["ssd"]}),
        )
    },
]


@pytest.mark.parametrize("asked", ASKED)
def test_an_instance_survives_the_trip_to_the_cluster_and_back(asked: dict[str, Any]) -> None:
    """Its forms, and which machines admit them: the scheduler's rules beside those of the model."""
    job = replace(oasis.generate("testbed", jobs=1, seed=1).jobs[0], id="j", **asked)
    made = job_object(job, MINUTE, slot_seconds=1200.0)
    made["metadata"] |= {"uid": "u"}
    found = parse_job(made, MINUTE, DEFAULT_RESOURCES)
    nodes = node_objects(KINDS)
    for spec, form in zip(found.in_forms, job.in_forms, strict=True):
        assert spec.job.work(MINUTE.work_seconds) == form.work(1200.0)
        assert (spec.job.chunks, spec.min_workers) == (form.chunks, form.min_workers)
        for group in GROUPS:
            for name, amount in group.of(form).items():
                assert group.of(spec.job)[name] == pytest.approx(amount, rel=1e-8)
            admitted = KINDS.admitted(form, group)
            rules = [spec.rules[group].refusal(each) is None for each in nodes]
            of_group = [
                each
                for each, node in zip(rules, nodes, strict=True)
                if node["metadata"]["labels"][names.NODE_ROLE] == group
            ]
            assert of_group == ([True] * len(of_group) if admitted is None else admitted.tolist())


# -- any value in any place ------------------------------------------------------------------------


SCHEMA = schema_of(KIND)["spec"]
VALIDATOR = jsonschema.Draft4Validator(SCHEMA)  # in which exclusiveMinimum is true or false
BAD = (-1, 0, 1e31, 1e300, float("inf"), "x", None, [], {}, True, 10**400, [3, 1], 2.5, "1e-40")
ANY = ROWS["any value"]


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All that is written in plain data."""
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    for name, value in entries:
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from places(value, (*path, name))


def said(path: tuple[Any, ...]) -> str:
    words = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path)
    return words.removeprefix(".")


def known() -> set[str]:
    """Fields that an owner may have left out; those of a list without their index."""
    found = set(fields("spec", SCHEMA))
    return found | {f"{path}.spec.containers" for path in found if path.endswith("template")}


def fields(path: str, schema: dict[str, Any]) -> Iterator[str]:
    """Paths of the fields below `path`, as far as the schema knows them."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        if "x-kubernetes-preserve-unknown-fields" not in field:
            yield from fields(f"{path}.{name}", field)
            yield from fields(f"{path}.{name}[]", field.get("items", {}))


def pruned(found: Any) -> Any:
    """An object without fields that are null, as the API server takes it."""
    if isinstance(found, dict):
        return {name: pruned(value) for name, value in found.items() if value is not None}
    return [pruned(value) for value in found] if isinstance(found, list) else found


def refusal(made: dict[str, Any]) -> InstanceError | None:
    try:
        parse_job(made, CLOCK, DEFAULT_RESOURCES)
    except InstanceError as error:
        return error
    return None


@pytest.mark.parametrize("forms", ANY["forms"])
@pytest.mark.parametrize("work", ANY["works"])
def test_messages_name_what_was_written(work: str, forms: str) -> None:
    """And what the parser takes the schema of the API server takes, too."""
    known_fields, refused = known(), 0
    for utility in ANY["utilities"]:
        spec = {**ANY["spec"], **ANY["forms"][forms], "work": ANY["works"][work]}
        whole = {"metadata": META, "spec": {**spec, "utility": utility}}
        parse_job(whole, CLOCK, DEFAULT_RESOURCES)
        for path, bad in itertools.product(places(whole["spec"], ("spec",)), BAD):
            made = deepcopy(whole)
            at: Any = made
            for name in path[:-1]:
                at = at[name]
            at[path[-1]] = deepcopy(bad)
            error = refusal(made)
            if error is None:
                assert VALIDATOR.is_valid(pruned(made["spec"])), path
            else:
                refused += 1
                there = {said(each) for each in places(made["spec"], ("spec",))} | {"spec"}
                bare = error.field.replace("[0]", "[]")
                is_lacking = error.field.endswith(f".requests.{BANDWIDTH}")
                assert error.field in there or bare in known_fields or is_lacking, str(error)
                assert "_" not in str(error), "as the model calls its fields"
    assert refused > 500


def test_choices_of_the_schema_are_those_of_the_parser() -> None:
    assert SCHEMA["properties"]["utility"]["properties"]["kind"]["enum"] == list(UTILITY_FIELDS)
    assert schema_of(KIND)["status"]["properties"]["phase"]["enum"] == list(PHASES)
