"""What owners write: how it is read, and how what makes no sense is named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import oasis
from oasis.kubernetes import names
from oasis.kubernetes.acting import Delete, Target, reconcile
from oasis.kubernetes.cluster.pods import WantedPod
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.names import BANDWIDTH, KIND
from oasis.kubernetes.objects.capacity_window import parse_window
from oasis.kubernetes.objects.conditions import read_status
from oasis.kubernetes.objects.existing import JOB, JOBSET
from oasis.kubernetes.objects.node_affinity import REQUIRED
from oasis.kubernetes.objects.oasis_job import UTILITY_FIELDS, JobSpec, SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES, quantity, requests_of
from oasis.kubernetes.objects.schema import PHASES, checked_template, schema_of
from oasis.kubernetes.objects.utility_class import parse_class
from oasis.model.errors import InstanceError
from oasis.model.groups import GROUPS, TaskGroup
from tests.kubernetes.instance_objects import job_object, node_objects, written
from tests.unit.kubernetes.played import CLOCK, merged, utility_class, window
from tests.unit.kubernetes.test_existing_jobs import ROWS, batch_job, jobset, read

# -- rows of objects.yaml --------------------------------------------------------------------------


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


@pytest.mark.parametrize(("workers", "gone"), [(4, 6), (2, 1)])
def test_a_gang_whose_workers_are_not_all_served_is_withdrawn_whole(
    workers: int, gone: int
) -> None:
    """Of its servers one is stuck: two of four workers would have none."""
    job = {"metadata": META, "spec": deepcopy(ROWS["base"])}
    containers = job["spec"]["parameterServers"]["template"]["spec"]["containers"]
    containers[0]["resources"]["requests"][BANDWIDTH] = "2G"
    spec = parse_job(job, CLOCK, DEFAULT_RESOURCES)
    groups = {f"w{k}": TaskGroup.WORKER for k in range(workers)}
    groups |= dict.fromkeys(("s0", "s1"), TaskGroup.PS)
    works = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pods = {
        name: {
            "metadata": {**META, "name": name, "uid": name, "labels": {names.TASK: group.value}},
            "spec": {},
            "status": {"phase": "Pending"} if name == "s1" else works,
        }
        for name, group in groups.items()
    }
    wanted = tuple(WantedPod(name, group, "n", "n") for name, group in groups.items())
    assert [spec.job.ps_needed(count) for count in (2, 4)] == [1, 2]
    steps = reconcile([Target(spec, wanted, "plan", pods, 1)], [], Seen({}), frozenset({"s1"}))
    assert sum(isinstance(action, Delete) for action in steps.actions) == gone


# -- utilities, work, amounts ----------------------------------------------------------------------


def read_of(spec: JobSpec) -> dict[str, Any]:
    job, found = spec.job, {"uid": spec.uid, "resize": spec.resize, "minimum": spec.min_workers}
    found |= {"chunks": job.chunks, "minibatch time": round(job.minibatch_time, 9)}
    found |= {"gradient": job.gradient_mb, "work": job.work(CLOCK.work_seconds)}
    found |= {"bandwidth": job.bandwidth, "utility": job.utility}
    for name, demand, template in (("", job.worker, spec.worker), ("ps ", job.ps, spec.ps)):
        pod: dict[str, Any] = {} if template is None else template["spec"]
        asked = pod.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {})
        found[f"{name}terms"] = asked.get("nodeSelectorTerms")
        found |= {f"{name}gpus": demand.get("gpu"), f"{name}containers": pod.get("containers")}
    return found


@pytest.mark.parametrize("row", ROWS["right"], ids=str)
def test_what_makes_sense_is_read(row: dict[str, Any]) -> None:
    """What a form leaves out is the job's own, which is left as it is."""
    found = READERS["OasisJob"](row)
    plain = READERS["OasisJob"]({"spec": {**row["spec"], "forms": None, "speeds": None}})
    assert read_of(found) | row.get("read", {}) == read_of(found)
    if "forms" in row:
        assert found.worker == plain.worker
        wanted = [read_of(plain) | form for form in row["forms"]]
        assert [*map(read_of, found.in_forms)] == wanted


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


MINUTE = SlotClock(slot_seconds=60.0)
SHIPPED = oasis.read(Path(__file__).with_name("forms.json"))  # each kind of utility and of form


@pytest.mark.parametrize("job", SHIPPED.jobs, ids=lambda job: job.id)
def test_an_instance_survives_the_trip_to_the_cluster_and_back(job: oasis.Job) -> None:
    """Its forms, and which machines admit them: the scheduler's rules beside those of the model."""
    made = job_object(job, MINUTE, slot_seconds=1200.0)
    made["metadata"] |= {"uid": "u"}
    found = parse_job(made, MINUTE, DEFAULT_RESOURCES)
    worth = found.job.utility(range(9)).tolist()
    assert worth == pytest.approx(job.utility(range(9)).tolist())
    nodes = node_objects(SHIPPED.cluster)
    for spec, form in zip(found.in_forms, job.in_forms, strict=True):
        assert spec.job.work(MINUTE.work_seconds) == form.work(1200.0)
        assert (spec.job.chunks, spec.min_workers) == (form.chunks, form.min_workers)
        for group in GROUPS:
            for name, amount in group.of(form).items():
                assert group.of(spec.job)[name] == pytest.approx(amount, rel=1e-8)
            admitted = SHIPPED.cluster.admitted(form, group)
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
    entries = found.items() if isinstance(found, dict) else enumerate(found)
    for name, value in entries:
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from places(value, (*path, name))


def said(path: tuple[Any, ...]) -> str:
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path).removeprefix(".")


def fields(path: str, schema: dict[str, Any]) -> Iterator[str]:
    """Paths of the fields below `path`, as far as the schema knows them; without indices."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        if "x-kubernetes-preserve-unknown-fields" in field:  # a template
            yield f"{path}.{name}.spec.containers"
            continue
        yield from fields(f"{path}.{name}", field)
        yield from fields(f"{path}.{name}[]", field.get("items", {}))


def pruned(found: Any) -> Any:
    """An object without fields that are null, as the API server takes it."""
    if isinstance(found, dict):
        return {name: pruned(value) for name, value in found.items() if value is not None}
    return [pruned(value) for value in found] if isinstance(found, list) else found


@pytest.mark.parametrize("forms", ANY["forms"])
@pytest.mark.parametrize("work", ANY["works"])
def test_messages_name_what_was_written(work: str, forms: str) -> None:
    """And what the parser takes the schema of the API server takes, too."""
    known, refused = set(fields("spec", SCHEMA)), 0
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
            try:
                parse_job(made, CLOCK, DEFAULT_RESOURCES)
            except InstanceError as caught:
                error = caught
            else:
                assert VALIDATOR.is_valid(pruned(made["spec"])), path
                continue
            refused += 1
            there = {said(each) for each in places(made["spec"], ("spec",))} | {"spec"}
            is_lacking = error.field.endswith(f".requests.{BANDWIDTH}")
            is_known = error.field.replace("[0]", "[]") in known
            assert error.field in there or is_known or is_lacking, str(error)
            assert "_" not in str(error), "as the model calls its fields"
    assert refused > 500


def test_choices_of_the_schema_are_those_of_the_parser() -> None:
    assert SCHEMA["properties"]["utility"]["properties"]["kind"]["enum"] == list(UTILITY_FIELDS)
    assert schema_of(KIND)["status"]["properties"]["phase"]["enum"] == list(PHASES)
