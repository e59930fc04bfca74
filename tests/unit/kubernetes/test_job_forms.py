"""The forms of an OasisJob: what they leave out is the job's own, and what is wrong is named."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

import oasis
from oasis.kubernetes import names
from oasis.kubernetes.objects.node_affinity import REQUIRED
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.model.groups import GROUPS
from tests.kubernetes.instance_objects import job_object, node_objects
from tests.unit.kubernetes.played import GPU, pods
from tests.unit.kubernetes.test_wrong_objects import ROWS

CLOCK = SlotClock(slot_seconds=60.0)
OWN: dict[str, Any] = ROWS["base"]


def read(**more: Any) -> JobSpec:
    meta = {"name": "j", "namespace": "ns", "uid": "u"}
    made = {"metadata": meta, "spec": {**deepcopy(OWN), **more}}
    return parse_job(made, CLOCK, DEFAULT_RESOURCES)


def test_what_a_form_leaves_out_is_the_jobs_own() -> None:
    asked = {"requests": {"cpu": "2", GPU: "2", names.BANDWIDTH: "2G"}}
    forms = [
        {},
        {"workers": {"minimum": 2, "maximum": 8, "resources": asked}},
        {"work": {"minibatchSeconds": 3}},
        {"work": {"chunks": 16, "minibatches": 2}, "parameterServers": {"resources": asked}},
    ]
    found, plain = read(forms=forms), read()
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
    (found,) = read(workers=workers, work=work, forms=forms).in_forms
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
    found, plain = read(work=work, speeds=speeds), read(work=work)
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
    made = job_object(job, CLOCK, slot_seconds=1200.0)
    made["metadata"] |= {"uid": "u"}
    found = parse_job(made, CLOCK, DEFAULT_RESOURCES)
    nodes = node_objects(KINDS)
    for spec, form in zip(found.in_forms, job.in_forms, strict=True):
        assert spec.job.work(CLOCK.work_seconds) == form.work(1200.0)
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
