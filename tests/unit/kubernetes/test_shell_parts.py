"""Small parts of the adapter that need no API server: entries, views, numbers, installing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import generate_latest

import oasis
from baselines import FIFO
from oasis.driver.driver import Driver
from oasis.driver.entry import Entry
from oasis.driver.policy_state import site_text
from oasis.kubernetes.acting import Delete
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.kubernetes.objects.oasis_job import JobSpec, SlotClock
from oasis.model.errors import PolicyError
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.site import policy_job
from oasis.scheduling.view import View
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


def view(told: bool = False, down: set[int] | None = None, **allocations: Allocation) -> View:
    found = entries()
    for name, allocation in allocations.items():
        found[int(name[1:])].allocation = allocation
    books: Driver[JobSpec] = Driver(FIFO(), SITE)
    books.slot, books.entries, books.away = 3, found, down or set()
    return View(books, "mine", told)


# -- entries and views ---------------------------------------------------------------------------


def test_a_view_tells_who_waits_and_who_runs() -> None:
    held = Allocation(((0, 1),))
    seen = view(j0=held)
    assert [job.index for job in seen.running()] == [0]
    assert [job.index for job in seen.waiting()] == [1]
    assert [job.index for job in seen.jobs()] == [0, 1]
    first, second = seen.jobs()
    assert (seen.allocation(first), seen.allocation(second)) == (held, NOTHING)
    assert seen.waiting_since(second) == float(INSTANCE.jobs_by_arrival()[1].arrival)


def test_free_is_capacity_without_what_is_held_and_nothing_on_lost_machines() -> None:
    job = next(view().jobs())
    whole, held = view().free()[0], view(j0=Allocation(((0, 1),))).free()[0]
    taken = dict(job.worker)
    assert [a - b for a, b in zip(whole, held, strict=True)] == [
        taken.get(k, 0) for k in range(len(whole))
    ]
    assert set(view(down={0}).capacity()[0]) == {0}


def test_work_left_is_told_to_those_alone_that_declare_it() -> None:
    job = next(view().jobs())
    assert view(told=True).remaining(job) == pytest.approx(entries()[0].remaining)
    with pytest.raises(PolicyError, match="mine"):
        view().remaining(job)


def test_jobs_of_the_model_for_policies() -> None:
    job = INSTANCE.jobs[0]
    made = policy_job(job, SITE)
    assert (made.id, made.max_workers) == (job.id, job.chunks)


# -- what is remembered --------------------------------------------------------------------------


def test_machines_are_told_apart_by_name_amounts_and_roles() -> None:
    text = site_text(SITE)
    assert len(text) == len(SITE.machines)
    assert text == json.loads(json.dumps(text))


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


def test_what_cannot_be_written_is_told_with_its_job() -> None:
    connection, metrics = FakeConnection(), Metrics()
    pod = connection.request(
        "POST",
        PODS.path("ns"),
        body={"metadata": {"name": "p", "namespace": "ns", "uid": "u"}},
    )
    gone = {"metadata": {"name": "q", "namespace": "ns", "uid": "v"}}
    writer = ClusterWriter(Objects(connection), Pods(pod, gone), 2, metrics)  # type: ignore[arg-type]
    failures = writer.do([Delete("job-1", pod, "Shrunk"), Delete("job-2", gone, "Shrunk")])
    writer.close()
    assert "u" in writer.ending
    assert [job for job, _ in failures] in ([], ["job-2"])  # deleting what is gone may be no error
    assert 'oasis_pod_actions_total{action="delete"}' in generate_latest(metrics.registry).decode()


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
