"""Waiting for what other processes do, and ports for them."""

from __future__ import annotations

import random
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

_POLL = 0.1  # seconds
_BUSY = 4.0  # so many times longer everything may take on a machine that others use too

T = TypeVar("T")


def until(done: Callable[[], T], what: str, within: float = 60.0) -> T:
    """First true answer of `done`, asked ten times a second."""
    # `within` are the seconds that it may take on a quiet machine. No test is about them: a
    # TimeoutError, four times as late, only says that it will never be so.
    patience = _BUSY * within
    deadline = time.monotonic() + patience
    while not (answer := done()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:.0f} s until {what}")
        time.sleep(_POLL)
    return answer


def answers(url: str, authority: Path | None = None, token: str = "") -> bool:
    """Whether `url` answers with 200. Without an `authority`, any certificate will do: those that
    the scheduler and others make for themselves are signed by nobody."""
    tls = ssl.create_default_context(cafile=authority)
    if authority is None:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, context=tls, timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as error:  # not ready yet; it holds an answer, which stays open
        error.close()
        return False
    except OSError:  # refused, reset or late
        return False


# Below the range from which the system takes ports for outgoing connections (32768 on Linux), so
# that a port stays free while its server is started, or killed and started again.
_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """`count` different ports on which nothing listens on 127.0.0.1."""
    chosen: list[int] = []
    with ExitStack() as held:
        for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
            if len(chosen) == count:
                break
            with suppress(OSError):  # somebody has it
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
                chosen.append(port)
    return chosen
