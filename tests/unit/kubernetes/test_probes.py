"""Probes: the controller says over HTTP whether its loop turns and whether it knows its place."""

from __future__ import annotations

import socket
import time
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.control import controller
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings
from tests.unit.kubernetes.fake_api import FakeConnection


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


def test_metrics_are_at_any_other_path(port: int) -> None:
    for path in ("/metrics", "/"):
        status, text = ask(port, path)
        assert (status, "oasis_slot" in text) == (200, True)


def test_a_pod_of_either_family_is_answered(port: int) -> None:
    if socket.has_dualstack_ipv6():
        assert ask(port, "/healthz", "[::1]") == (200, "ok\n")
