"""Faults between a client and the API server, from a seed so that a failure can be repeated."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from oasis.kubernetes.api.connection import Connection

STATUS_CODES = (409, 429, 500, 503, 504)
KINDS = ("status", "delay", "hang", "reset", "lost", "cut", "gone")
OF_WATCHES = ("cut", "gone")
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong once.

    kind
        "status": the answer is `code`, and nothing was done; 429 carries Retry-After and a plain
        text, as the API server's own does. "delay": the answer comes `seconds` later. "hang":
        nothing comes for `seconds`, then the connection ends, and nothing was done. "reset": the
        connection is reset, and nothing was done. "lost": it was done, and the connection is reset
        before the answer. "cut": a watch is reset after `events` events. "gone": a watch ends with
        the event that its resourceVersion is too old (410).
    """

    kind: str
    code: int = 0
    seconds: float = 0.0
    events: int = 0


class FaultPlan:
    """`count` faults in the order in which they strike, each after some requests that pass."""

    # On average a request passes before each, and `watch_pause` watches. What can happen to a watch
    # never waits for a request that is none.
    def __init__(self, seed: int, count: int, watch_pause: float) -> None:
        draw = random.Random(seed)
        self._queues: dict[bool, list[tuple[int, Fault]]] = {True: [], False: []}
        for _ in range(count):
            kind = draw.choice(KINDS)
            is_slow, mean = kind in ("delay", "hang"), watch_pause if kind in OF_WATCHES else 1.0
            fault = Fault(
                kind,
                code=draw.choice(STATUS_CODES) if kind == "status" else 0,
                seconds=round(draw.uniform(0.1, 1.0), 2) if is_slow else 0.0,
                events=draw.randint(0, 3) if kind == "cut" else 0,
            )
            pause = round(draw.expovariate(1 / mean)) if mean else 0
            self._queues[kind in OF_WATCHES].append((pause, fault))
        self._lock, self._passed = threading.Lock(), {True: 0, False: 0}
        self.struck = 0

    def next(self, method: str, target: str) -> Fault | None:
        watch = "watch=true" in target
        with self._lock:
            pause, fault = (self._queues[watch] or [(math.inf, Fault("none"))])[0]
            is_harmless = method not in WRITES and (fault.kind == "lost" or fault.code == 409)
            if self._passed[watch] < pause or is_harmless:
                self._passed[watch] += 1
                return None
            self._passed[watch] = 0
            self.struck += 1
            return self._queues[watch].pop(0)[1]

    @property
    def left(self) -> int:
        return sum(map(len, self._queues.values()))


class FirstAnswers:
    """Loses the answer to the first object that is made of each kind."""

    def __init__(self) -> None:
        self.lost: set[str] = set()  # last words of the paths

    def next(self, method: str, target: str) -> Fault | None:
        kind = target.partition("?")[0].rpartition("/")[2]
        if method != "POST" or kind in self.lost or "dryRun" in target:
            return None
        self.lost.add(kind)
        return Fault("lost")


def let_meet(connection: Connection, plan: FaultPlan | FirstAnswers) -> None:
    """From now on the requests of a connection meet the faults of the plan."""
    connection._server = _FaultyPool(connection._server, plan)


class _FaultyPool:
    """What sends a connection's requests, between it and the real one."""

    def __init__(self, pool: Any, plan: FaultPlan | FirstAnswers) -> None:
        self._pool, self._plan = pool, plan

    def urlopen(self, method: str, target: str, **more: Any) -> Any:
        fault = self._plan.next(method, target) or Fault("none")
        if fault.kind == "status":
            return _answer(fault.code)
        if fault.kind == "gone":
            event = {"type": "ERROR", "object": _status(410)}
            return HTTPResponse(BytesIO(json.dumps(event).encode() + b"\n"), preload_content=False)
        time.sleep(fault.seconds)
        if fault.kind in {"hang", "reset"}:
            raise _reset()
        response = self._pool.urlopen(method, target, **more)
        if fault.kind == "lost":  # once there is an answer, it was done
            response.close()
            raise _reset()
        return _Cut(response, fault.events) if fault.kind == "cut" else response


class _Cut:
    """The answer to a watch, which is reset after some events."""

    def __init__(self, response: Any, events: int) -> None:
        self._response, self._left = response, events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def stream(self, *size: int, **more: Any) -> Iterator[bytes]:
        for chunk in self._response.stream(*size, **more) if self._left else ():
            lines = chunk.splitlines(keepends=True)
            yield b"".join(lines[: self._left])
            self._left -= sum(line.endswith(b"\n") for line in lines)
            if self._left <= 0:
                break
        self._response.close()
        raise _reset()


def _reset() -> ProtocolError:
    return ProtocolError("Connection aborted.", ConnectionResetError("reset by the test"))


def _status(code: int) -> dict[str, Any]:
    reasons = {409: "Conflict", 410: "Expired", 500: "InternalError", 503: "ServiceUnavailable"}
    about = {"message": "injected by the test", "reason": reasons.get(code, "Timeout")}
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, **about}


def _answer(code: int) -> HTTPResponse:
    """An answer of `code`; 429 is plain text, as the API server's own is."""
    text, headers = json.dumps(_status(code)), {"Content-Type": "application/json"}
    if code == 429:
        text = "Too many requests, please try again later.\n"
        headers = {"Content-Type": "text/plain; charset=utf-8", "Retry-After": "1"}
    return HTTPResponse(BytesIO(text.encode()), headers, code, preload_content=False)
