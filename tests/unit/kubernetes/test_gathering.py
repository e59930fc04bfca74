"""News gather for as long as a turn takes, but never beyond the next boundary."""

from __future__ import annotations

import queue
import time
from types import SimpleNamespace
from typing import Any

import pytest

from oasis.kubernetes.control.controller import SETTLE, Controller

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
