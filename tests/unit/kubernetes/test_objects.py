"""What is wrong with an OasisJob is told with the name of the field."""

from __future__ import annotations

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
