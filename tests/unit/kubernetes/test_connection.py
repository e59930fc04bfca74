"""Requests go to the server of the configuration, and say who we are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from oasis.kubernetes.api import connection as api_connection
from oasis.kubernetes.api.connection import Connection, LostAnswerError, RetryParams
from oasis.model.errors import InputError
from tests.unit.kubernetes.loopback import serving


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


def connection(host: str, proxy: str | None = None) -> Connection:
    configuration = client.Configuration()
    configuration.host, configuration.proxy = host, proxy
    return Connection(configuration, RetryParams(attempts=1))


@pytest.mark.parametrize("below", ["", "/clusters/c-1", "/clusters/c-1/"])
def test_a_server_may_be_below_a_path(
    server: tuple[str, list[tuple[str, str]]], below: str
) -> None:
    address, seen = server
    for name in ("a", "ä"):
        connection(address + below).request(
            "PATCH", "/api/v1/pods", body={"name": name}, query={"fieldManager": "o s"}
        )
    begin = below.rstrip("/")
    assert [asked for asked, _ in seen] == [
        f'PATCH {begin}/api/v1/pods?fieldManager=o+s {{"name": "{name}"}}'
        for name in ("a", "\\u00e4")
    ]


def test_a_proxy_is_told_the_whole_address(server: tuple[str, list[tuple[str, str]]]) -> None:
    address, seen = server
    connection("http://cluster.example:6443", address).request("PATCH", "/api", body={})
    assert seen == [("PATCH http://cluster.example:6443/api {}", "")]


def test_where_nobody_listens_the_request_was_never_sent() -> None:
    with pytest.raises(LostAnswerError) as told:
        connection("http://127.0.0.1:1").request("PATCH", "/api", body={})
    assert told.value.never_sent


SERVER = """
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: x
clusters: [{name: c, cluster: {server: 7}}]
"""


@pytest.mark.parametrize(
    "text", ["", "[]", "text", "a: b: c", "\0", "contexts: 3\ncurrent-context: x", SERVER]
)
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


class Rotating(client.Configuration):
    """Gives another token each time it is asked."""

    asked = 0

    def auth_settings(self) -> Any:
        self.asked += 1
        value = f"Bearer token-{self.asked}"
        return {"BearerToken": {"in": "header", "key": "authorization", "value": value}}


@pytest.mark.parametrize(("seconds", "tokens"), [(3600.0, [1, 1, 1, 1]), (0.0, [1, 2, 3, 4])])
def test_a_token_is_used_for_as_long_as_it_is_fresh(
    server: tuple[str, list[tuple[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    tokens: list[int],
) -> None:
    address, seen = server
    monkeypatch.setattr(api_connection, "TOKEN_SECONDS", seconds)
    made = Connection(Rotating(host=address))
    for _ in range(4):
        assert made.request("GET", "/api")["kind"] == "Status"
    assert [token for _, token in seen] == [f"Bearer token-{k}" for k in tokens]


def test_a_token_file_that_is_rotated_is_read_again(tmp_path: Path) -> None:
    token, kubeconfig = tmp_path / "token", tmp_path / "config"
    named = {"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}]}
    named["users"] = [{"name": "u", "user": {"tokenFile": "token"}}]
    named["contexts"] = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    kubeconfig.write_text(json.dumps({**named, "current-context": "x"}), encoding="utf-8")
    for text in ("first", "second\n"):
        token.write_text(text, encoding="utf-8")
        if text == "first":
            made = Connection.open(str(kubeconfig))
        made._known = -math.inf, {}  # it is kept for a second
        assert made._authorization() == {"authorization": f"Bearer {text.strip()}"}
