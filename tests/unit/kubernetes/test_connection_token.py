"""Who we are is asked anew from time to time, not for each request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from oasis.kubernetes.api import connection
from oasis.kubernetes.api.connection import Connection
from tests.unit.kubernetes.loopback import answering


class Rotating(client.Configuration):
    """Gives another token each time it is asked."""

    asked = 0

    def auth_settings(self) -> Any:
        self.asked += 1
        value = f"Bearer token-{self.asked}"
        return {"BearerToken": {"in": "header", "key": "authorization", "value": value}}


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """Its address, and the tokens that it has seen."""
    seen: list[str] = []
    with answering(lambda request, _: seen.append(request.headers["authorization"])) as address:
        yield address, seen


@pytest.mark.parametrize(("seconds", "tokens"), [(3600.0, [1, 1, 1, 1]), (0.0, [1, 2, 3, 4])])
def test_a_token_is_used_for_as_long_as_it_is_fresh(
    server: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    tokens: list[int],
) -> None:
    address, seen = server
    monkeypatch.setattr(connection, "TOKEN_SECONDS", seconds)
    made = Connection(Rotating(host=address))
    for _ in range(4):
        assert made.request("GET", "/api")["kind"] == "Status"
    assert seen == [f"Bearer token-{k}" for k in tokens]
