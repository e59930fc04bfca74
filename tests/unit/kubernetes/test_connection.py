"""Requests, leases and watches: what is in the way is said, and a lost lease ends writes."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from baselines import FIFO
from oasis.kubernetes.acting import Delete
from oasis.kubernetes.api import watching
from oasis.kubernetes.api.connection import (
    ApiError,
    Connection,
    LostAnswerError,
    RetryParams,
    TooLateError,
)
from oasis.kubernetes.api.lease import Lease
from oasis.kubernetes.api.resources import LEASES, WINDOWS, Objects
from oasis.kubernetes.control import controller
from oasis.kubernetes.control.meter import SteadyTime
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.model.errors import InputError
from tests.unit.kubernetes.fake_api import Answer, FakeConnection, serving
from tests.unit.kubernetes.played import Played, policy, rigid

# -- requests --------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Its address, and what was asked for: method, target and body; and with which token."""
    seen: list[tuple[str, str]] = []

    def answer(request: Any, body: str) -> tuple[int, Any]:
        asked = f"{request.command} {request.path} {body}"
        seen.append((asked, request.headers.get("authorization", "")))
        return 200, {"kind": "Status"}

    with serving(answer) as address:
        yield address, seen


def connection(host: str, proxy: str | None = None, **params: Any) -> Connection:
    configuration = client.Configuration()
    configuration.host, configuration.proxy = host, proxy
    return Connection(configuration, RetryParams(**params))


@pytest.mark.parametrize("below", ["", "/clusters/c-1", "/clusters/c-1/"])
def test_a_server_may_be_below_a_path(
    server: tuple[str, list[tuple[str, str]]], below: str
) -> None:
    address, seen = server
    for name in ("a", "ä"):
        connection(address + below, attempts=1).request(
            "PATCH", "/api/v1/pods", body={"name": name}, query={"fieldManager": "o s"}
        )
    begin = below.rstrip("/")
    assert [asked for asked, _ in seen] == [
        f'PATCH {begin}/api/v1/pods?fieldManager=o+s {{"name": "{name}"}}'
        for name in ("a", "\\u00e4")
    ]


def test_a_proxy_is_told_the_whole_address(server: tuple[str, list[tuple[str, str]]]) -> None:
    address, seen = server
    connection("http://cluster.example:6443", address, attempts=1).request("PATCH", "/api", body={})
    assert seen == [("PATCH http://cluster.example:6443/api {}", "")]


def test_where_nobody_listens_the_request_was_never_sent() -> None:
    with pytest.raises(LostAnswerError) as told:
        connection("http://127.0.0.1:1", attempts=1).request("PATCH", "/api", body={})
    assert told.value.never_sent


ROWS = yaml.safe_load(Path(__file__).with_name("answers.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", ROWS["no kubeconfigs"])
def test_a_kubeconfig_that_is_none_is_bad_input_and_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Connection.open(str(file))
    assert str(caught.value).startswith(f"kubeconfig: expected a cluster in {file}: ")


def test_a_kubeconfig_that_is_missing_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(InputError, match=f"expected a cluster in {missing}: set KUBECONFIG or"):
        Connection.open(missing)


def test_a_token_file_that_is_rotated_is_read_again(
    server: tuple[str, list[tuple[str, str]]], tmp_path: Path
) -> None:
    address, seen = server
    token, kubeconfig, tokens = tmp_path / "token", tmp_path / "config", ("first", "second\n")
    config = ROWS["with a token file"]
    config["clusters"][0]["cluster"]["server"] = address
    config["users"][0]["user"]["tokenFile"] = str(token)
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    for text in tokens:
        token.write_text(text, encoding="utf-8")
        if text == tokens[0]:
            made = Connection.open(str(kubeconfig))
        made.request("GET", "/api")
    assert [given for _, given in seen] == ["Bearer first", "Bearer second"]


# -- what is in the way ----------------------------------------------------------------------------


def healthy(request: Any, _: str) -> tuple[int, Any]:
    """The answers of a server that has no objects and accepts every write."""
    if "watch=true" in request.path:
        time.sleep(0.1)
        return 200, ""
    if "/leases/" in request.path and request.command == "GET":
        return 404, {"reason": "NotFound", "message": "there is no lease"}
    return 200, {"items": [], "metadata": {"resourceVersion": "1"}}


def ill(status: int, body: Any, *parts: str) -> Answer:
    """As that, but for requests with these parts in their method and path."""

    def answer(request: Any, text: str) -> tuple[int, Any]:
        is_it = all(part in f"{request.command} {request.path}" for part in parts)
        return (status, body) if is_it else healthy(request, text)

    return answer


def hanging(request: Any, _: str) -> tuple[int, Any]:
    time.sleep(2.0)
    return 200, {}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said after three seconds is said after a third of one: the tests wait for less."""
    assert watching.SILENT_SECONDS + controller.AGAIN < 5.0
    monkeypatch.setattr(watching, "SILENT_SECONDS", 0.3)


def said_within(host: str, seconds: float, words: str, caplog: Any) -> list[str]:
    """Run a controller until its log has these words, or for so long; its lines."""
    caplog.set_level(logging.INFO, "oasis.kubernetes")
    settings = ControllerSettings(slot_seconds=60.0)
    made = controller.Controller(Objects(connection(host, first_wait=0.001)), FIFO, settings, "one")
    until = time.monotonic() + seconds
    made.run(lambda _: words in caplog.text or time.monotonic() > until)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("words", ROWS["answers"])
def test_what_is_wrong_is_said_in_one_line_within_five_seconds(
    words: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = ROWS["answers"][words]
    answer = hanging if row is None else ill(row["status"], row["body"], *row["to"])
    with serving(answer) as host:
        lines = said_within(host, 3.0, words, caplog)
    assert sum(words in line for line in lines) == 1, lines


def test_an_address_where_nobody_listens_is_said_once_for_all_threads(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = said_within("http://127.0.0.1:1", 5.0, "nobody listens there", caplog)
    assert sum("nobody listens there" in line for line in lines) == 1, lines


def test_a_certificate_of_another_authority_and_a_server_without_tls_say_what_to_correct() -> None:
    failed = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"
    assert "correct certificate-authority-data" in str(LostAnswerError("GET", "/api", failed))
    with (
        serving(healthy) as host,
        pytest.raises(LostAnswerError, match="does not speak https"),
    ):
        connection(host.replace("http:", "https:"), attempts=1).request("GET", "/api")
    quota = ApiError("POST", "/api/v1/pods", 403, "Forbidden", "exceeded quota: gpus")
    assert str(quota).endswith("exceeded quota: gpus"), "no right is missing"


# -- the lease -------------------------------------------------------------------------------------


class Clock:
    """The clock of the lease, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("oasis.kubernetes.api.lease.steady_seconds", lambda: self.now)


def lease_of(api: Any, who: str, told: list[bool] | None = None) -> Lease:
    heard = [] if told is None else told
    return Lease(api, "system", "one", who, 15.0, threading.Event(), heard.append)


def transitions(api: FakeConnection) -> int:
    lease = Objects(api).get(LEASES, "one", "system")  # type: ignore[arg-type]
    assert lease is not None
    return int(lease["spec"].get("leaseTransitions", 0))


@pytest.mark.parametrize("name", ROWS["leases"])
def test_who_holds_the_lease(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, api, leases = Clock(monkeypatch), FakeConnection(), dict[str, Lease]()
    for step in ROWS["leases"][name]:
        clock.now += step.get("after", 0.0)
        api.lost = step.get("lost", 0)
        asks = step["asks"]
        lease = leases.setdefault(asks, lease_of(api, step.get("as", asks)))
        with pytest.raises(LostAnswerError) if api.lost else nullcontext():
            lease._ask()
        if step.get("releases"):
            lease.release()
        assert [who for who, each in leases.items() if each.is_held] == step["held"], step
        assert step.get("said", "") in lease.other
        assert transitions(api) == step.get("transitions", 0), step


def test_a_lease_that_runs_out_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock, told = Clock(monkeypatch), []
    api = FakeConnection()
    lease = lease_of(api, "one", told)
    assert lease._ask() == 2.5
    assert (told, lease.left()) == ([True], 15.0)

    def refuse(*_: Any, **given: Any) -> Any:
        raise LostAnswerError("GET", "/leases", f"hangs for {given['left']():g} s")

    api.request = refuse  # type: ignore[method-assign]
    lease._objects = Objects(api, left=lambda: lease._until - clock.now)  # type: ignore[arg-type]
    for now, left, pause in (
        (101.0, 9, 2.5),
        (107.0, 3, 2.5),
        (109.0, 1, 1.0),
        (110.0, "inf", 2.5),
    ):
        clock.now = now
        with pytest.raises(LostAnswerError, match=f"hangs for {left} s"):  # no longer than it
            lease._ask()
        assert lease._after_error(LostAnswerError("GET", "/leases", "hangs")) == pause
    assert (told, lease.left()) == ([True, False], 0.0)
    lost = [r.getMessage() for r in caplog.records if "lost the lease" in r.getMessage()]
    assert lost == [
        "lost the lease system/one (no answer: hangs): nothing is written until it is ours again"
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="others have one clock that is never set")
def test_a_machine_that_slept_does_not_act_on_the_lease_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The monotonic clock stood still meanwhile, that of the machine's whole life did not."""
    clocks = {time.CLOCK_MONOTONIC: 50.0, time.CLOCK_BOOTTIME: 90.0}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: 50.0)
    lease, steady = lease_of(FakeConnection(), "one"), SteadyTime()
    before = steady()
    lease._ask()
    assert lease.is_held
    clocks[time.CLOCK_BOOTTIME] += 3600.0
    assert (lease.is_held, lease.left()) == (False, 0.0)
    assert steady() - before == 3600.0


def test_answers_that_are_late_lose_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes two seconds, and a lease of six seconds is renewed by one request."""
    clock, api, told = Clock(monkeypatch), FakeConnection(), list[bool]()
    answer = api.request

    def late(*given: Any, **more: Any) -> Any:
        if more["left"]() < 2.0:
            raise LostAnswerError("PUT", "/leases", "no answer in time")
        clock.now += 2.0
        return answer(*given, **more)

    monkeypatch.setattr(api, "request", late)
    lease = Lease(api, "system", "one", "one", 6.0, threading.Event(), told.append)  # type: ignore[arg-type]
    lease._objects = Objects(api, left=lambda: lease._until - clock.now)  # type: ignore[arg-type]
    for _ in range(20):
        clock.now += lease._ask()
    assert told == [True]
    assert api.asked[2:] == [api.asked[-1]] * (len(api.asked) - 2)


def test_no_attempt_of_a_write_begins_once_the_lease_has_run_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, asked, waits = [4.0], [], list[float]()

    def busy(request: Any, _: str) -> tuple[int, Any]:
        asked.append(f"{request.command} {request.path.partition('?')[0]}")
        if "/b" in request.path:
            left[0] = 0.0
        return 503, {"reason": "ServiceUnavailable", "message": "busy"}

    with serving(busy) as host:
        plain = connection(host, attempts=3, first_wait=0.01, longest_wait=0.015)
        monkeypatch.setattr(plain.stopping, "wait", waits.append)
        with pytest.raises(ApiError, match="503"):
            plain.request("PATCH", "/a", left=lambda: left[0])
        assert 0.005 <= waits[0] <= 0.01 <= waits[1] <= 0.015, "twice as long, at most so long"
        with pytest.raises(TooLateError):
            plain.request("PATCH", "/b", left=lambda: left[0])
        with pytest.raises(TooLateError):
            plain.request("PATCH", "/a", left=lambda: left[0])
    assert asked == ["PATCH /a"] * 3 + ["PATCH /b"]


def test_a_write_that_comes_too_late_is_the_fault_of_no_job() -> None:
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}
    objects = Objects(FakeConnection(), left=lambda: 0.0)  # type: ignore[arg-type]
    clerk = ClusterWriter(objects, {}, Metrics())
    with pytest.raises(TooLateError):
        clerk.do([Delete("j", pod, "Shrunk")])
    clerk.close()


def test_a_watch_that_hangs_is_begun_again() -> None:
    """The server sends a bookmark each minute: a quiet cluster is not silent."""
    asked: list[tuple[dict[str, Any], float]] = []

    class Hanging(FakeConnection):
        def stream(self, path: str, query: Any, timeout: float, on_open: Any) -> Iterator[Any]:
            asked.append((query, timeout))
            on_open()
            yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}
            raise LostAnswerError("GET", path, "timed out")

    over = threading.Event()
    watcher = watching.Watcher(Objects(Hanging()), LEASES, lambda *_: None, over)  # type: ignore[arg-type]
    watcher._from = "1"
    for version in ("1", "9"):
        with pytest.raises(LostAnswerError):
            watcher._ask()
        query, timeout = asked[-1]
        assert (query["resourceVersion"], timeout) == (version, 90.0)
    assert watcher.trouble is None, "it answers when it is asked"


def test_a_kind_that_is_installed_later_is_followed_within_ten_seconds() -> None:
    meta = {"name": "x", "uid": "x", "resourceVersion": "5"}

    class Later(FakeConnection):
        def stream(self, *_: Any) -> Iterator[Any]:
            return iter(())

    later = Later()
    over = threading.Event()
    watcher = watching.Watcher(Objects(later), WINDOWS, lambda *_: None, over)  # type: ignore[arg-type]
    assert 0.0 < watcher._ask() < 10.0
    assert watcher.synced.is_set()
    listed = {"items": [{"metadata": meta}], "metadata": {"resourceVersion": "6"}}
    later.objects[WINDOWS.path()] = listed
    watcher._ask()
    assert [item["metadata"]["name"] for item in watcher.store.items()] == ["x"]


@pytest.mark.parametrize("is_early", [False, True])
@pytest.mark.parametrize("status", [403, 500])
def test_without_its_checkpoint_no_plan_is_carried_out(status: int, is_early: bool) -> None:
    """The right to write it may be the only one that is missing, or there is no space left."""
    played = Played(policy("fifo"))
    played.run(int(is_early))
    uid = played.submit(rigid("j", 2, 3))
    fake: Any = played.objects.connection
    why = ApiError("PUT", "/", status, "No", "not today")
    fake.refuses = lambda method, path: why if method != "GET" and "configmaps" in path else None
    for _ in range(3):
        with pytest.raises(ApiError):
            played.begin_early(0.5) if is_early else played.step()
        assert not played.reconciler.steps(played.seen(), played.now()).actions
    assert not played.pods
    fake.refuses = lambda *_: None
    if is_early:
        lags = played.measured("oasis_boundary_lag_seconds_count")
        assert not played.reconciler.plan_if_due(played.now(), played.seen)
        played.settle()
        assert played.workers(uid) == 2
        assert played.measured("oasis_boundary_lag_seconds_count") == lags, "no boundary was late"
        assert played.reconciler._checkpoint.read()["driver"]["ahead"] == 1  # type: ignore[index]
    played.run(4)
    assert played.phase(uid) == "Completed"
    assert played.status(uid)["arrivalSlot"] == is_early
