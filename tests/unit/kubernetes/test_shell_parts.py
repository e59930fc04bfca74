"""Small parts of the adapter that need no API server: entries, views, numbers, installing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import generate_latest

import oasis
from oasis.driver.entry import Entry
from oasis.kubernetes.acting import Delete
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.scheduling.site import policy_job
from tests.unit.kubernetes.fake_api import FakeConnection
from tests.unit.kubernetes.fakes import site_for, specs_of

INSTANCE = oasis.generate("testbed", jobs=2, seed=1)
SITE = site_for(INSTANCE, INSTANCE.horizon)


def entries() -> dict[int, Entry[JobSpec]]:
    found = {}
    for index, (spec, arrival) in enumerate(specs_of(INSTANCE).values()):
        job = INSTANCE.jobs_by_arrival()[index]
        made = replace(policy_job(job, SITE), index=index)
        found[index] = Entry(spec, made, arrival, work=made.work, waiting_since=arrival)
    return found


# -- entries and views ---------------------------------------------------------------------------


# -- what is remembered --------------------------------------------------------------------------


# -- numbers and pages ---------------------------------------------------------------------------


def test_requests_are_counted_by_method_and_status() -> None:
    metrics = Metrics()
    metrics.attempt("GET", 200, 0.1)
    metrics.attempt("GET", 0, 0.2)
    text = generate_latest(metrics.registry).decode()
    assert 'oasis_requests_total{method="GET",status="200"} 1.0' in text
    assert 'oasis_requests_total{method="GET",status="0"} 1.0' in text
    assert 'oasis_request_seconds_count{method="GET"} 2.0' in text


# -- writing -------------------------------------------------------------------------------------


class Pods:
    """A store that knows the given pods."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = list(pods)

    def items(self) -> list[dict[str, Any]]:
        return self.pods


def test_a_write_that_cannot_be_made_is_the_error_of_its_job_alone() -> None:
    connection, metrics = FakeConnection(), Metrics()
    pod = connection.request(
        "POST",
        PODS.path("ns"),
        body={"metadata": {"name": "p", "namespace": "ns", "uid": "u"}},
    )
    writer = ClusterWriter(Objects(connection), Pods(pod), 2, metrics)  # type: ignore[arg-type]
    done = writer.do([Delete("odd", {}, "Ended"), Delete("other", pod, "Ended")])
    failures = {uid: why for uid, _, why in done}
    writer.close()
    assert isinstance(failures["odd"], KeyError)
    assert failures.keys() == {"odd"}


def test_a_status_that_cannot_be_written_does_not_keep_others_from_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection, metrics = FakeConnection(), Metrics()
    clock = SlotClock(60.0)
    jobs = [
        StatusWriter({"metadata": {"name": name, "namespace": "ns", "uid": name}}, clock)
        for name in ("odd", "other")
    ]
    jobs[0].body = None  # type: ignore[assignment, method-assign]
    writer = ClusterWriter(Objects(connection), Pods(), 2, metrics)  # type: ignore[arg-type]
    writer.write_statuses(jobs)
    writer.close()
    assert [job.written is not None for job in jobs] == [False, True]
    assert "Traceback" in caplog.text
    assert metrics.registry.get_sample_value("oasis_job_errors_total", {"doing": "telling"}) == 1
