"""Requests go to the server of the configuration: below a path of it, or through a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from oasis.kubernetes.api.connection import Connection, LostAnswerError, RetryParams
from oasis.model.errors import InputError
from tests.unit.kubernetes.loopback import answering


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Its address, and what was asked for: method, target and body."""
    seen: list[str] = []
    with answering(
        lambda request, body: seen.append(f"{request.command} {request.path} {body}")
    ) as address:
        yield address, seen


def connection(host: str, proxy: str | None = None) -> Connection:
    configuration = client.Configuration()
    configuration.host, configuration.proxy = host, proxy
    return Connection(configuration, RetryParams(attempts=1))


@pytest.mark.parametrize("below", ["", "/clusters/c-1", "/clusters/c-1/"])
def test_a_server_may_be_below_a_path(server: tuple[str, list[str]], below: str) -> None:
    address, seen = server
    for name in ("a", "ä"):
        connection(address + below).request(
            "PATCH", "/api/v1/pods", body={"name": name}, query={"fieldManager": "o s"}
        )
    begin = below.rstrip("/")
    assert seen == [
        f'PATCH {begin}/api/v1/pods?fieldManager=o+s {{"name": "{name}"}}'
        for name in ("a", "\\u00e4")
    ]


def test_a_proxy_is_told_the_whole_address(server: tuple[str, list[str]]) -> None:
    address, seen = server
    connection("http://cluster.example:6443", address).request("PATCH", "/api", body={})
    assert seen == ["PATCH http://cluster.example:6443/api {}"]


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
