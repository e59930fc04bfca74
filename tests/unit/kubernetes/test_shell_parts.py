"""The shell round the controller: writes, turns, log, probes, metrics and their dashboard."""

from __future__ import annotations

import json
import logging
import queue
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from prometheus_client import generate_latest

import oasis
from baselines import FIFO
from experiments.cli.commands.kubernetes.running import _show
from oasis.driver.entry import Entry
from oasis.kubernetes.acting import Delete
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control import controller
from oasis.kubernetes.control.controller import SETTLE, Controller
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings, JsonFormatter
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


def test_a_write_that_cannot_be_made_is_the_error_of_its_job_alone() -> None:
    connection, metrics = FakeConnection(), Metrics()
    pod = connection.request(
        "POST",
        PODS.path("ns"),
        body={"metadata": {"name": "p", "namespace": "ns", "uid": "u"}},
    )
    writer = ClusterWriter(Objects(connection), ObjectStore(), 2, metrics)  # type: ignore[arg-type]
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
    writer = ClusterWriter(Objects(connection), ObjectStore(), 2, metrics)  # type: ignore[arg-type]
    writer.write_statuses(jobs)
    writer.close()
    assert [job.written is not None for job in jobs] == [False, True]
    assert "Traceback" in caplog.text
    assert metrics.registry.get_sample_value("oasis_job_errors_total", {"doing": "telling"}) == 1


NOW = 100.0


@pytest.mark.parametrize(
    ("busy", "until", "expected"),
    [
        (0.25, NOW + 60.0, 0.25),
        (0.25, NOW + 0.125, 0.125),
        (0.25, NOW - 1.0, SETTLE),
        (0.0, NOW + 60.0, SETTLE),
    ],
)
def test_the_wait_is_that_of_a_turn_or_ends_at_the_boundary(
    monkeypatch: pytest.MonkeyPatch, busy: float, until: float, expected: float
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    news: queue.Queue[tuple[str, int]] = queue.Queue()
    news.put(("pods", 1))
    news.put(("pods", 2))
    controller: Any = SimpleNamespace(_news=news, _now=lambda: NOW, _busy=busy)
    assert Controller._gather(controller, until) == [("pods", 1), ("pods", 2)]
    assert slept == [expected]


def record(**more: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": "%d jobs", "args": (3,), "levelname": "WARNING", **more})


def test_a_line_of_json_has_what_was_given_and_nothing_else() -> None:
    made = json.loads(JsonFormatter().format(record(slot=7, job="ns/a", secret="x", created=0.5)))
    assert made == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "warning",
        "message": "3 jobs",
        "slot": 7,
        "job": "ns/a",
    }


def test_an_error_is_part_of_its_line() -> None:
    try:
        int("what went wrong")
    except ValueError:
        line = JsonFormatter().format(record(exc_info=sys.exc_info()))
    assert "\n" not in line
    assert "what went wrong" in json.loads(line)["error"]


def test_a_verbose_controller_says_each_line_once() -> None:
    code = """
import logging
from experiments.cli.commands.kubernetes.running import log_as
from experiments.cli.verbose import logging_to_stderr
with logging_to_stderr():
    log_as("text")
    logging.getLogger("oasis.kubernetes").debug("only once")
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stderr.count("only once") == 1


def test_a_dry_run_shows_what_has_no_pod(capsys: pytest.CaptureFixture[str]) -> None:
    switch = {"action": "suspend", "job": "ns/job/j", "pod": None, "node": None}
    found = {"slot": 3, "actions": [switch], "jobs": {"ns/j": "it waits"}}
    _show(SimpleNamespace(rehearse=lambda: found), as_json=False)  # type: ignore[arg-type]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "slot 3: 1 writes"
    assert "suspend  ns/job/j  -    -" in lines
    assert lines[-1] == "ns/j: it waits"


def test_what_is_told_on_a_job_is_logged_with_its_fields(caplog) -> None:  # type: ignore[no-untyped-def]
    job = StatusWriter({"metadata": {"namespace": "ns", "name": "a", "uid": "u"}}, SlotClock(60.0))
    with caplog.at_level(logging.INFO, "oasis.kubernetes"):
        job.say("Placed", "True", "Planned", "2 workers", 0.0)
        job.say("Placed", "True", "Planned", "3 workers", 1.0)
    (line,) = caplog.records
    assert (line.job, line.reason) == ("ns/a", "Planned")
    assert line.getMessage() == "ns/a: Planned: 2 workers"


@pytest.fixture
def one() -> Controller:
    """A controller that was not started."""
    return Controller(Objects(FakeConnection()), FIFO, ControllerSettings(), "me")  # type: ignore[arg-type]


@pytest.fixture
def port(one: Controller) -> Iterator[int]:
    probes = {"/healthz": one.stuck, "/readyz": one.unready}
    server = Metrics().serve(0, probes)
    yield server.server_port
    server.shutdown()
    server.server_close()


def ask(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10.0) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def fill(one: Controller) -> None:
    for watcher in one.watchers:
        watcher.synced.set()


def test_ready_once_all_is_listed_and_the_lease_is_ours_or_anothers(
    one: Controller, port: int
) -> None:
    status, text = ask(port, "/readyz")
    assert (status, text.partition(":")[0]) == (503, "not listed yet")
    assert "oasisjobs" in text
    fill(one)
    assert ask(port, "/readyz") == (503, f"{one.unready()}\n")
    assert "lease" in (one.unready() or "")
    one.lease.other = "another"  # we stand by
    assert ask(port, "/readyz") == (200, "ok\n")
    one.lease.other = ""
    one.lease._renewed = time.monotonic()
    assert ask(port, "/readyz") == (200, "ok\n")
    one._troubles = frozenset({"pods: no answer"})
    assert ask(port, "/readyz") == (503, "pods: no answer\n")


def test_alive_as_long_as_turns_begin(one: Controller, port: int) -> None:
    assert ask(port, "/healthz") == (200, "ok\n")
    one._turned -= controller.STUCK + 1.0
    status, text = ask(port, "/healthz")
    assert (status, text.startswith("the last turn began")) == (503, True)
    one._turn()
    assert ask(port, "/healthz") == (200, "ok\n")


def test_a_pod_of_either_family_is_answered(port: int) -> None:
    if socket.has_dualstack_ipv6():
        assert ask(port, "/healthz", "[::1]") == (200, "ok\n")


DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana-dashboard.json"
ENDINGS = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


def exported() -> set[str]:
    """Names of the series, as Prometheus sees them."""
    families = Metrics().registry.collect()
    return {family.name + ending for family in families for ending in ENDINGS[family.type]}


def asked() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_every_series_that_is_asked_for_is_exported() -> None:
    names = {name for expr in asked() for name in re.findall(r"oasis_\w+", expr)}
    assert names
    assert names <= exported()


def test_every_measurement_of_the_controller_is_shown() -> None:
    text = " ".join(asked())
    # Sizes that only say something where something else is wrong.
    hidden = {"oasis_checkpoint_bytes", "oasis_slot"}
    shown = {family.name for family in Metrics().registry.collect() if family.name in text}
    assert {family.name for family in Metrics().registry.collect()} - shown == hidden
