"""Checkpoints, stores, statuses, machines, writes, probes, rights, and what is kept of objects and
reported by processes: each on its own."""

from __future__ import annotations

import io
import json
import logging
import os
import queue
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
import yaml

from deploy import reporter
from experiments.cli.commands.kubernetes.running import _run, _show
from oasis.kubernetes import names
from oasis.kubernetes.acting import Delete
from oasis.kubernetes.api.connection import ApiError, parsed_error
from oasis.kubernetes.api.resources import PODS, Objects
from oasis.kubernetes.api.trimming import trimmed_node, trimmed_pod
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.cluster import pods as p
from oasis.kubernetes.cluster.nodes import (
    Machines,
    allocatable,
    foreign_use,
    places_of,
)
from oasis.kubernetes.cluster.pods import Report, claimed, has_ended, reported
from oasis.kubernetes.cluster.seen import Seen, is_usable
from oasis.kubernetes.control import controller as loop
from oasis.kubernetes.control.checkpoint import PART, Checkpoint
from oasis.kubernetes.control.controller import SETTLE, Controller
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings, JsonFormatter
from oasis.kubernetes.objects.conditions import IN_STATE, decision_message, said
from oasis.kubernetes.objects.existing import EXISTING
from oasis.kubernetes.objects.manifests import own, shared
from oasis.kubernetes.objects.node_affinity import NodeRules
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES, requests_of
from oasis.model.decision import Decision
from oasis.model.errors import InputError, InstanceError
from tests.unit.kubernetes.fake_api import FakeConnection, controller, status_writer, store, writer
from tests.unit.kubernetes.played import foreign, node

# -- checkpoints, leases, stores, statuses ---------------------------------------------------------


POD = {"metadata": {"name": "p", "namespace": "d", "uid": "u", "ownerReferences": []}}


def checkpoint(connection: Any) -> Checkpoint:
    return Checkpoint(Objects(connection), "system", "one")


@pytest.mark.parametrize("size", [0, 10, 2 * PART + 5])
def test_a_checkpoint_of_any_size_is_read_as_it_was_written_and_not_without_a_part(
    size: int,
) -> None:
    connection, document = FakeConnection(), {"noise": random.Random(1).randbytes(size).hex()}
    kept = checkpoint(connection)
    kept.write(document)
    before = len(connection.asked)
    kept.write(document)
    assert len(connection.asked) == before, "it has not changed"
    assert checkpoint(connection).read() == document
    for part in [path for path in connection.objects if not path.endswith("/one")][:1]:
        del connection.objects[part]
        assert checkpoint(connection).read() is None


def test_of_two_controllers_the_second_cannot_write() -> None:
    connection = FakeConnection()
    checkpoint(connection).write({"slot": 0})
    one, other = checkpoint(connection), checkpoint(connection)
    assert one.read() == other.read()
    one.write({"slot": 1})
    with pytest.raises(ApiError, match="409 Conflict"):
        other.write({"slot": 2})
    assert checkpoint(connection).read() == {"slot": 1}


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
    job = status_writer("j", generation=2)
    for now in (0.0, 9.0):
        job.rejected("payoff not positive: too dear", None, None, now)
    assert [(kind, reason) for kind, reason, _, _ in job.news] == [("Warning", "PayoffNonPositive")]
    told = job.body()["status"]
    assert (told["phase"], told["observedGeneration"]) == ("Rejected", 2)
    assert "no utility" in decision_message(Decision("j", False, reason="no room"), "no room", None)


def test_the_word_of_a_policy_goes_when_the_job_ends() -> None:
    for end, given in (("given_up", ["why"]), ("ended", []), ("put_aside", ["Invalid"] * 3)):
        job = status_writer("j")
        job.in_state("scaled in", 0.0)
        assert [reason for _, reason, _, _ in job.news] == ["ScaledIn"]
        getattr(job, end)(*given, 1.0)
        assert IN_STATE not in {entry["type"] for entry in job.status.get("conditions") or ()}


def test_requests_are_counted_by_method_and_status() -> None:
    metrics = Metrics()
    metrics.attempt("GET", 200, 0.1)
    value = metrics.registry.get_sample_value
    assert value("oasis_requests_total", {"method": "GET", "status": "200"}) == 1.0
    assert value("oasis_request_seconds_sum", {"method": "GET"}) == 0.1


def test_nodes_become_machines_with_what_others_leave() -> None:
    roles = {"w10": "worker", "w9": "worker", "x": None, "p": "ps", "b": "both"}
    pod = foreign("f", "w9", cpu="3")
    seen = Seen({"nodes": [node(name, role, 4) for name, role in roles.items()], "pods": [pod]})
    site = Machines.of(seen, DEFAULT_RESOURCES, Fraction(1, 4), 60.0).site
    assert [machine.id for machine in site.machines] == ["b/worker", "w9", "w10", "b/ps", "p"]
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


def test_a_write_that_cannot_be_made_is_the_error_of_its_job_alone() -> None:
    connection, body = FakeConnection(), {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}
    pod = connection.request("POST", PODS.path("ns"), body=body)
    clerk = writer(connection, pods=store(pod))
    done = clerk.do([Delete("odd", {}, "Ended"), Delete("other", pod, "Ended")])
    failures = {uid: why for uid, _, why in done}
    odd, other = (status_writer(name) for name in ("odd", "other"))
    odd.news.append(("Normal", "Odd", "no time", "never"))  # type: ignore[arg-type]
    clerk.write_statuses([odd, other])
    clerk.close()
    assert isinstance(failures["odd"], KeyError)
    assert failures.keys() == {"odd"}
    assert (odd.written, other.written) == (None, other.status)


def test_the_wait_is_that_of_a_turn_or_ends_at_the_boundary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for busy, until in ((0.25, 160.0), (0.25, 100.125), (0.25, 99.0), (0.0, 160.0)):
        news: queue.Queue[int] = queue.Queue()
        news.put(1)
        news.put(2)
        one: Any = SimpleNamespace(_news=news, _now=lambda: 100.0, _busy=busy)
        assert Controller._gather(one, until) == [1, 2]
    assert slept == [0.25, 0.125, SETTLE, SETTLE]


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


@pytest.mark.parametrize(("stop_after", "ends"), [(None, [0, 0, 0, 0, 1]), (2, [0, 0, 0, 1, 1])])
def test_it_runs_up_to_the_slot_that_is_asked_for_or_a_signal(
    stop_after: int | None, ends: list[int]
) -> None:
    found: list[bool] = []

    def run(over: Any) -> None:
        found.extend(over(SimpleNamespace(slot=slot)) for slot in (None, 1, 2))
        found.insert(0, over(None))
        signal.raise_signal(signal.SIGTERM)
        found.append(over(None))

    _run(SimpleNamespace(run=run), stop_after)  # type: ignore[arg-type]
    assert found == ends


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


def ask(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10.0) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def probed() -> Iterator[tuple[Controller, int]]:
    one = controller()
    server = Metrics().serve(0, {"/healthz": one.stuck, "/readyz": one.unready})
    yield one, server.server_port
    server.shutdown()
    server.server_close()


OK = 200, "ok\n"


def test_ready_once_all_is_listed_and_the_lease_is_ours_or_anothers(
    probed: tuple[Controller, int],
) -> None:
    one, port = probed
    status, text = ask(port, "/readyz")
    assert (status, text.partition(":")[0]) == (503, "not listed yet")
    assert "oasisjobs" in text
    for watcher in one.watchers:
        watcher.synced.set()
    assert "lease" in (one.unready() or "")
    assert ask(port, "/readyz") == (503, f"{one.unready()}\n")
    one.lease.other = "another"  # we stand by
    assert ask(port, "/readyz") == OK
    one.lease.other, one.lease._renewed = "", time.monotonic()
    assert ask(port, "/readyz") == OK
    one._troubles = frozenset({"pods: no answer"})
    assert ask(port, "/readyz") == (503, "pods: no answer\n")


def test_alive_as_long_as_turns_begin(probed: tuple[Controller, int]) -> None:
    one, port = probed
    assert ask(port, "/healthz") == OK
    if socket.has_dualstack_ipv6():
        assert ask(port, "/healthz", "[::1]") == OK
    one._turned -= loop.STUCK + 1.0
    status, text = ask(port, "/healthz")
    assert (status, text.startswith("the last turn began")) == (503, True)
    one._turn()
    assert ask(port, "/healthz") == OK


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


WHOLE = yaml.safe_load(Path(__file__).with_name("untrimmed.yaml").read_text(encoding="utf-8"))
FIELDS = WHOLE["pod"]["metadata"]["managedFields"]


def pod(gated: bool, **meta: Any) -> dict[str, Any]:
    """A pod with all fields that an API server sends."""
    made = deepcopy(WHOLE["pod"])
    made["metadata"] |= meta
    del made["spec"]["nodeName" if gated else "schedulingGates"]
    made["status"]["phase"] = "Pending" if gated else "Running"
    made["status"]["conditions"][1]["status"] = str(not gated)
    return made  # type: ignore[no-any-return]


def read(found: dict[str, Any]) -> list[Any]:
    """All that is ever asked of a pod."""
    facts = (p.is_gated, p.is_ending, p.is_working, p.is_unschedulable, p.target_node)
    return [
        *(fact(found) for fact in facts),
        has_ended(found),
        requests_of(found["spec"]),
        p.reported({"a": found}),
        said(found, "Ready"),
        *(fact(found) for fact in (p.failures, p.last_failure)),
        p.complaint([found]),
        claimed(found, {("Job", "d", "u"): "x", (names.KIND, "d", "u"): "u"}),
    ]


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"deletionTimestamp": "2031-01-01T00:00:00Z"},
        {"managedFields": FIELDS[1:]},
        {"labels": None},
        {"ownerReferences": [{"kind": "Job", "uid": "u", "controller": True}]},
    ],
)
def test_of_a_pod_everything_is_kept_that_is_read(gated: bool, meta: dict[str, Any]) -> None:
    whole = pod(gated, **meta)
    kept = trimmed_pod(whole)
    assert read(kept) == read(whole)
    assert trimmed_pod(kept) == kept, "what an own write answered may be cut down twice"
    text = json.dumps(kept)
    # The variables of a large gang are long, and nobody here reads them again.
    for gone in ("fieldsV1", "image", "Initialized", "hostIPs", "a-worker-0.a"):
        assert gone in json.dumps(whole)
        assert gone not in text
    for name in ("affinity", "tolerations"):
        assert (name in kept["spec"]) == gated, "nobody asks for it once the gate is open"
    assert (kept["spec"]["hostname"], kept["spec"]["subdomain"]) == ("a-worker-0", "a")
    if gated:
        assert NodeRules.of(kept["spec"]) == NodeRules.of(whole["spec"])
    assert whole == pod(gated, **meta), "the whole one is left as it was"


@pytest.mark.parametrize("status", WHOLE["troubles"], ids=str)
def test_of_what_went_wrong_in_a_pod_everything_is_kept_that_is_told(status: Any) -> None:
    whole = pod(gated=False)
    whole["status"] |= status
    assert read(trimmed_pod(whole)) == read(whole) != read(pod(gated=False))
    assert trimmed_pod(trimmed_pod(whole)) == trimmed_pod(whole)


def test_of_a_node_everything_is_kept_that_is_read() -> None:
    whole = WHOLE["node"]
    kept = trimmed_node(whole)
    assert is_usable(kept) == is_usable(whole) is False
    assert allocatable(kept) == allocatable(whole)
    assert places_of([kept], None) == places_of([whole], None)
    ready = {**whole, "spec": {}}
    assert is_usable(trimmed_node(ready)) is is_usable(ready) is True
    assert "images" not in kept["status"]


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    for name, content in (("namespace", "ns\n"), ("token", "t0\n")):
        (tmp_path / name).write_text(content)
    found: list[Any] = []
    monkeypatch.setattr(reporter, "ACCOUNT", tmp_path)
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: cafile)
    monkeypatch.setattr(reporter, "urlopen", lambda made, **_: found.append(made) or io.BytesIO())
    for name, value in (("KUBERNETES_SERVICE_HOST", "h"), ("KUBERNETES_SERVICE_PORT", "6443")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POD_NAME", "p")
    return found


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ((12.5, -1e-7), Report(12.5, -1e-7)),
        ((1e7, None), Report(1e7, None)),
        ((None, 3.0), Report(None, 3.0)),
        ((0.0, 0.1), Report(0.0, 0.1)),
    ],
)
def test_what_is_reported_is_what_is_read(
    said: tuple[Any, Any], read: Report, sent: list[Any]
) -> None:
    reporter.report(*said)
    (made,) = sent
    assert (made.method, made.full_url) == ("PATCH", "https://h:6443/api/v1/namespaces/ns/pods/p")
    assert made.headers["Authorization"] == "Bearer t0"
    assert reported({"p": json.loads(made.data)}) == read


def test_what_is_no_number_is_refused(sent: list[Any]) -> None:
    with pytest.raises(ValueError, match="loss: expected a finite number, got nan"):
        reporter.report(loss=float("nan"))
    assert not sent


def test_the_file_needs_python_alone(tmp_path: Path) -> None:
    copy = tmp_path / "reporter.py"
    copy.write_text(Path(reporter.__file__).read_text())
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, "-I", "-S", str(copy)]
    subprocess.run(words, check=True, cwd=tmp_path, env=env)
