"""What is wrong with an OasisJob is told with the name of the field."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

import oasis
from oasis.kubernetes.objects.oasis_job import SlotClock, parse_job, parse_utility
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES, quantity, requests_of
from oasis.model.errors import InstanceError
from tests.kubernetes.instance_objects import job_object, utility_object, written

CLOCK = SlotClock(slot_seconds=60.0, startup_seconds=10.0)


def plain() -> dict[str, Any]:
    job = oasis.generate("testbed", jobs=3, seed=1).jobs[0]
    made = job_object(job, CLOCK, slot_seconds=1200.0)
    made["metadata"] |= {"uid": "u", "generation": 1}
    return made


def test_a_job_survives_the_trip_to_the_cluster_and_back() -> None:
    job = oasis.generate("testbed", jobs=3, seed=1).jobs[0]
    found = parse_job(plain(), CLOCK, DEFAULT_RESOURCES).job
    assert found.work(CLOCK.work_seconds) == job.work(1200.0)
    assert found.chunks == job.chunks
    for group in ("worker", "ps"):
        for name, amount in getattr(job, group).items():
            assert getattr(found, group)[name] == pytest.approx(amount, rel=1e-8)
    assert float(found.utility(3)) == pytest.approx(float(job.utility(3)), rel=1e-9)


WRONG = {
    "spec.utility.kind": lambda s: s["utility"].update(kind="linear"),
    "spec.utility.decay": lambda s: s["utility"].update(decay=3),
    "spec.utility.priority": lambda s: s["utility"].update(priority=-1),
    "spec.work.epochs": lambda s: s["work"].update(epochs=0),
    "spec.work.chunks": lambda s: s["work"].update(chunks=1),
    "spec.work.minibatchSeconds": lambda s: s["work"].update(minibatchSeconds="fast"),
    "spec.workers.minimum": lambda s: s["workers"].update(minimum=99),
    "spec.workers.initial": lambda s: s["workers"].update(initial=99),
    "spec.workers.template": lambda s: s["workers"].update(template=None),
    "spec.resizePolicy": lambda s: s.update(resizePolicy="magic"),
    "spec.onRejection": lambda s: s.update(onRejection="weep"),
    "spec.gracePeriodSeconds": lambda s: s.update(gracePeriodSeconds=-1),
    "spec.priority": lambda s: s.update(priority=3),
    "spec.workers.template.spec.nodeName": lambda s: s["workers"]["template"]["spec"].update(
        nodeName="n0"
    ),
}


@pytest.mark.parametrize("field", WRONG)
def test_what_is_wrong_is_named(field: str) -> None:
    made = deepcopy(plain())
    WRONG[field](made["spec"])
    with pytest.raises(InstanceError) as error:
        parse_job(made, CLOCK, DEFAULT_RESOURCES)
    assert error.value.field == field


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


def test_workers_seconds_are_work_for_any_number_of_workers() -> None:
    made = plain()
    made["spec"]["work"] = {"workerSeconds": 500}
    assert parse_job(made, CLOCK, DEFAULT_RESOURCES).job.work(CLOCK.work_seconds) == 10


def test_a_job_without_parameter_servers_reserves_no_bandwidth() -> None:
    made = plain()
    del made["spec"]["parameterServers"]
    made["spec"]["work"] = {"workerSeconds": 500}
    assert parse_job(made, CLOCK, DEFAULT_RESOURCES).job.bandwidth == 0


@pytest.mark.parametrize(
    ("text", "value"), [("500m", "1/2"), ("2Ki", "2048"), ("1e3", "1000"), (".5", "1/2"), (4, "4")]
)
def test_amounts_are_read_exactly(text: Any, value: str) -> None:
    assert str(quantity(text, "cpu")) == value


@pytest.mark.parametrize("text", ["", "-1", "1 G", "1.5.2", True, None, "nan", "1Zi", "٣"])
def test_what_is_no_amount_is_refused(text: Any) -> None:
    with pytest.raises(InstanceError, match="cpu: expected an amount"):
        quantity(text, "cpu")


@pytest.mark.parametrize(
    ("spec", "field", "expected"),
    [
        ({"containers": True}, "spec.containers", "expected a list"),
        ({"containers": [1]}, "spec.containers[0]", "expected an object"),
        ({"initContainers": ["x"]}, "spec.initContainers[0]", "expected an object"),
        ({"overhead": 3}, "spec.overhead", "expected an object"),
        ({"resources": [1]}, "spec.resources", "expected an object"),
        (
            {"containers": [{"resources": {"limits": 3}}]},
            "spec.containers[0].resources.limits",
            "expected an object",
        ),
    ],
)
def test_a_template_that_is_no_pod_is_refused_by_its_field(
    spec: dict[str, Any], field: str, expected: str
) -> None:
    with pytest.raises(InstanceError) as caught:
        requests_of(spec)
    assert (caught.value.field, caught.value.expected) == (field, expected)


def test_requests_of_a_pod_are_those_that_the_scheduler_counts() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "initContainers": [container("5"), container("1", restartPolicy="Always")],
        "containers": [container("1"), container("2")],
        "overhead": {"cpu": "250m"},
    }
    assert written(requests_of(spec)["cpu"]) == "5250m"
    spec["initContainers"].append(container("4500m"))
    assert written(requests_of(spec)["cpu"]) == "5750m"
