"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_POLL = 0.1  # seconds

T = TypeVar("T")


def until(done: Callable[[], T], what: str, within: float = 60.0) -> T:
    """First true answer of `done`, asked ten times a second; TimeoutError after `within` s."""
    deadline = time.monotonic() + within
    while not (answer := done()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {within:.0f} s until {what}")
        time.sleep(_POLL)
    return answer
