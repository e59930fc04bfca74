"""Checkpoints, leases, stores, statuses, machines, writes, probes, rights: each on its own."""

from __future__ import annotations

import json
import logging
import queue
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest

from experiments.cli.commands.kubernetes.running import _show
from oasis.kubernetes import names
from oasis.kubernetes.acting import Delete
from oasis.kubernetes.api.connection import ApiError, parsed_error
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.cluster.nodes import foreign_use, places_of, site_of
from oasis.kubernetes.cluster.pods import Report, reported
from oasis.kubernetes.control import controller as loop
from oasis.kubernetes.control.checkpoint import PART, Checkpoint
from oasis.kubernetes.control.controller import SETTLE, Controller
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings, JsonFormatter
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.objects.conditions import decision_message
from oasis.kubernetes.objects.existing import EXISTING
from oasis.kubernetes.objects.manifests import own, shared
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.model.decision import Decision
from oasis.model.errors import InputError, InstanceError
from tests.unit.kubernetes.fake_api import FakeConnection, controller, status_writer, store, writer
from tests.unit.kubernetes.played import CLOCK, foreign, node

# -- checkpoints, leases, stores, statuses ---------------------------------------------------------


POD = {"metadata": {"name": "p", "namespace": "d", "uid": "u", "ownerReferences": []}}


def checkpoint(connection: Any) -> Checkpoint:
    return Checkpoint(Objects(connection), "system", "one")


@pytest.mark.parametrize("size", [0, 10, 2 * PART + 5])
def test_a_checkpoint_of_any_size_is_read_as_it_was_written(size: int) -> None:
    connection = FakeConnection()
    document = {"noise": random.Random(1).randbytes(size).hex()}
    checkpoint(connection).write(document)
    assert checkpoint(connection).read() == document


def test_of_two_controllers_the_second_cannot_write() -> None:
    connection = FakeConnection()
    checkpoint(connection).write({"slot": 0})
    one, other = checkpoint(connection), checkpoint(connection)
    assert one.read() == other.read()
    one.write({"slot": 1})
    with pytest.raises(ApiError, match="409 Conflict"):
        other.write({"slot": 2})
    assert checkpoint(connection).read() == {"slot": 1}


def test_a_checkpoint_without_one_of_its_parts_is_none() -> None:
    connection = FakeConnection()
    checkpoint(connection).write({"noise": random.Random(1).randbytes(2 * PART).hex()})
    parts = [path for path in connection.objects if not path.endswith("/one")]
    del connection.objects[parts[0]]
    assert checkpoint(connection).read() is None


def test_what_has_not_changed_is_not_written() -> None:
    connection = FakeConnection()
    kept = checkpoint(connection)
    kept.write({"slot": 1})
    before = len(connection.asked)
    kept.write({"slot": 1})
    assert len(connection.asked) == before


def test_a_pod_is_made_once_though_the_answer_is_lost() -> None:
    connection = FakeConnection()
    connection.lost = 1
    found = Objects(connection).create(PODS, POD)  # type: ignore[arg-type]
    assert found["metadata"]["name"] == "p"
    assert [method for method, _ in connection.asked] == ["POST", "POST", "GET"]


def test_another_object_of_the_same_name_is_an_error_and_is_not_deleted() -> None:
    connection = FakeConnection()
    objects = Objects(connection)  # type: ignore[arg-type]
    other = {"metadata": {**POD["metadata"], "uid": "v", "ownerReferences": [{"uid": "x"}]}}
    objects.create(PODS, other)
    with pytest.raises(ApiError, match="AlreadyExists"):
        objects.create(PODS, POD)
    objects.delete(PODS, POD)
    assert len(connection.objects) == 1
    objects.delete(PODS, other)
    objects.delete(PODS, other)
    assert not connection.objects


def item(name: str, version: int, namespace: str = "ns") -> dict[str, Any]:
    meta = {"namespace": namespace, "name": name, "uid": f"{namespace}{name}"}
    return {"metadata": {**meta, "resourceVersion": str(version)}}


def test_the_store_keeps_the_newest_and_forgets_what_a_list_lacks() -> None:
    store = ObjectStore()
    assert store.put(item("a", 5))
    assert not store.put(item("a", 4))
    store.put(item("mine", 9))
    store.replace([item("b", 7)], 8)
    assert sorted(found["metadata"]["name"] for found in store.items()) == ["b", "mine"]
    store.drop(item("b", 10))
    assert not store.put(item("b", 7)), "an answer that comes late does not bring it back"


def test_the_list_of_one_namespace_says_nothing_of_another() -> None:
    store = ObjectStore()
    store.replace([item("x", 5, "team-a")], 6, "team-a")
    store.replace([item("x", 5, "team-b")], 7, "team-b")
    assert len(store.items()) == 2
    store.replace([], 8, "team-b")
    assert [one["metadata"]["namespace"] for one in store.items()] == ["team-a"]
    store.replace([], 8)
    assert store.items() == []


def test_statuses_tell_news_once() -> None:
    job = StatusWriter({"metadata": {"name": "j", "namespace": "d", "generation": 2}}, CLOCK)
    job.rejected("payoff not positive: too dear", None, None, 0.0)
    job.rejected("payoff not positive: too dear", None, None, 9.0)
    assert [(kind, reason) for kind, reason, _, _ in job.news] == [("Warning", "PayoffNonPositive")]
    assert job.body()["status"]["phase"] == "Rejected"
    assert job.body()["status"]["observedGeneration"] == 2
    assert "no utility" in decision_message(Decision("j", False, reason="no room"), "no room", None)


def test_nodes_become_machines_with_what_others_leave() -> None:
    roles = {"w10": "worker", "w9": "worker", "x": None, "p": "ps", "b": "both"}
    nodes = {name: node(name, role, 4) for name, role in roles.items()}
    places = places_of(nodes.values(), Fraction(1, 4))
    assert [place.id for place in places] == ["b/worker", "w9", "w10", "b/ps", "p"]
    pod = foreign("f", "w9", cpu="3")
    site = site_of(places, nodes, foreign_use([pod]), DEFAULT_RESOURCES, 60.0)
    cpu = site.resources.index("cpu")
    assert [machine.amounts[cpu] for machine in site.machines] == [48.0, 61.0, 64.0, 16.0, 64.0]
    pod["status"] = {"phase": "Succeeded"}
    assert foreign_use([pod]) == {}


def test_the_pod_that_has_done_most_speaks_for_its_job() -> None:
    def told(**notes: str) -> dict[str, Any]:
        said = {getattr(names, key): value for key, value in notes.items()}
        return {"metadata": {"annotations": said}}

    pods = {"a": told(PROGRESS="12.5", LOSS="0.5"), "b": told(PROGRESS="13", LOSS="-2e-1")}
    assert reported({**pods, "c": {"metadata": {}}}) == Report(13.0, -0.2)
    assert reported({}) == Report(None, None)
    assert reported({"a": told(LOSS="3")}) == Report(None, 3.0)
    for text in ("nan", "low"):
        with pytest.raises(InstanceError, match=f"{names.LOSS}: expected a finite number"):
            reported({"a": told(LOSS=text)})


def test_errors_of_the_server_are_read_as_status_or_as_text() -> None:
    found = parsed_error("GET", "/x", 429, b"Too many requests", {"Retry-After": "2"})
    assert (found.status, found.retry_after, found.message) == (429, 2.0, "Too many requests")
    found = parsed_error("GET", "/x", 409, b'{"reason": "Conflict", "message": "m"}', {})
    assert str(found) == "GET /x: 409 Conflict: m"


# -- writing -------------------------------------------------------------------------------------


def test_requests_are_counted_by_method_and_status() -> None:
    metrics = Metrics()
    metrics.attempt("GET", 200, 0.1)
    metrics.attempt("GET", 0, 0.2)
    value = metrics.registry.get_sample_value
    for status in ("200", "0"):
        assert value("oasis_requests_total", {"method": "GET", "status": status}) == 1.0
    assert value("oasis_request_seconds_count", {"method": "GET"}) == 2.0


def test_a_write_that_cannot_be_made_is_the_error_of_its_job_alone() -> None:
    connection, body = FakeConnection(), {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}
    pod = connection.request("POST", PODS.path("ns"), body=body)
    clerk = writer(connection, pods=store(pod))
    done = clerk.do([Delete("odd", {}, "Ended"), Delete("other", pod, "Ended")])
    failures = {uid: why for uid, _, why in done}
    clerk.close()
    assert isinstance(failures["odd"], KeyError)
    assert failures.keys() == {"odd"}


def test_a_status_that_cannot_be_written_does_not_keep_others_from_theirs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics, jobs = Metrics(), [status_writer(name) for name in ("odd", "other")]
    jobs[0].body = None  # type: ignore[assignment, method-assign]
    clerk = writer(FakeConnection(), metrics)
    clerk.write_statuses(jobs)
    clerk.close()
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


def test_a_line_of_json_has_what_was_given_an_error_and_nothing_else() -> None:
    given: dict[str, Any] = {"msg": "%d jobs", "args": (3,), "levelname": "WARNING", "slot": 7}
    given |= {"job": "ns/a", "secret": "x", "created": 0.5}
    try:
        int("what went wrong")
    except ValueError:
        given["exc_info"] = sys.exc_info()
    line = JsonFormatter().format(logging.makeLogRecord(given))
    assert "\n" not in line
    made = json.loads(line)
    assert "what went wrong" in made.pop("error")
    when = {"time": "1970-01-01T00:00:00.500+00:00", "level": "warning"}
    assert made == {**when, "message": "3 jobs", "slot": 7, "job": "ns/a"}


def test_a_verbose_controller_says_each_line_once() -> None:
    code = """
import logging
from experiments.cli.commands.kubernetes.running import log_as
from experiments.cli.console import logging_to_stderr
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
    job = status_writer("a")
    with caplog.at_level(logging.INFO, "oasis.kubernetes"):
        job.say("Placed", "True", "Planned", "2 workers", 0.0)
        job.say("Placed", "True", "Planned", "3 workers", 1.0)
    (line,) = caplog.records
    assert (line.job, line.reason) == ("ns/a", "Planned")
    assert line.getMessage() == "ns/a: Planned: 2 workers"


@pytest.fixture
def one() -> Controller:
    """A controller that was not started."""
    return controller()


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
    one._turned -= loop.STUCK + 1.0
    status, text = ask(port, "/healthz")
    assert (status, text.startswith("the last turn began")) == (503, True)
    one._turn()
    assert ask(port, "/healthz") == (200, "ok\n")


def test_a_pod_of_either_family_is_answered(port: int) -> None:
    if socket.has_dualstack_ipv6():
        assert ask(port, "/healthz", "[::1]") == (200, "ok\n")


DASHBOARD = Path(__file__).parents[3] / "deploy" / "grafana-dashboard.json"
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def test_the_dashboard_asks_for_what_is_exported_and_shows_all_of_it() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    text = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    families = list(Metrics().registry.collect())
    exported = {each.name + ending for each in families for ending in ENDINGS[each.type]}
    assert set(re.findall(r"oasis_\w+", text)) <= exported
    # Sizes that only say something where something else is wrong.
    hidden = {"oasis_checkpoint_bytes", "oasis_slot"}
    assert {each.name for each in families if each.name not in text} == hidden


# -- rights in some namespaces alone ---------------------------------------------------------------


def test_jobs_of_every_kind_may_be_switched_and_their_status_is_protected() -> None:
    rules = [rule for made in own("sys", name="other") for rule in made.get("rules", ())]
    groups = {group for rule in rules for group in rule["apiGroups"] if group.startswith("o")}
    assert groups == {names.GROUP}, "whatever its name is"
    policies = [made for made in shared() if made["metadata"]["name"] == "oasis-scheduler-status"]
    guarded = policies[0]["spec"]["matchConstraints"]["resourceRules"]
    for kind in EXISTING:
        group, _, version = kind.api_version.partition("/")
        of_kind = {"apiGroups": [group], "resources": [kind.where.plural]}
        assert {**of_kind, "verbs": ["list", "watch", "patch"]} in rules
        operations = ["CREATE", "UPDATE"]
        assert {**of_kind, "apiVersions": [version], "operations": operations} in guarded


@pytest.mark.parametrize(
    "more", [{"namespaced": ("a", "a")}, {"namespaced": ("a",), "watched": "a"}]
)
def test_settings_that_contradict_each_other(more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="namespaced"):
        ControllerSettings(**more)
