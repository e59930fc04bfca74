"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_POLL = 0.1  # seconds
_BUSY = 4.0  # so many times longer everything may take on a machine that others use too

T = TypeVar("T")


def until(done: Callable[[], T], what: str, within: float = 60.0) -> T:
    """First true answer of `done`, asked ten times a second.

    `within` are the seconds that it may take on a quiet machine. No test is about them: a
    TimeoutError, four times as late, only says that it will never be so.
    """
    patience = _BUSY * within
    deadline = time.monotonic() + patience
    while not (answer := done()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:.0f} s until {what}")
        time.sleep(_POLL)
    return answer
