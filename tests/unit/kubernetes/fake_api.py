"""API servers: in memory, with versions, conflicts and lost answers, and one on 127.0.0.1."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from baselines import FIFO
from oasis.kubernetes.api.connection import ApiError, LostAnswerError, RetryParams, TooLateError
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.control.writer import ClusterWriter
from oasis.kubernetes.objects.oasis_job import SlotClock


class FakeConnection:
    """Objects by path. `lost` counts writes whose answers get lost from now on; `refuses` says what
    becomes of a request, by its method and path, that is not done."""

    def __init__(self) -> None:
        self.params = RetryParams(attempts=3)
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.lost = 0
        self.refuses: Callable[[str, str], Exception | None] = lambda method, path: None
        self._versions = itertools.count(1)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        left: Callable[[], float] | None = None,
    ) -> dict[str, Any]:
        if left is not None and left() <= 0.0:
            raise TooLateError(method, path)
        self.asked.append((method, path))
        if (why := self.refuses(method, path)) is not None:
            raise why
        if (query or {}).get("dryRun"):
            return deepcopy(body)  # type: ignore[no-any-return]
        path = path.removesuffix("/status")
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
        found = self.objects.get(path)
        if method == "POST" and found is not None:
            raise ApiError(method, path, 409, "AlreadyExists", "it is there")
        if method in ("GET", "PUT", "DELETE") and found is None:
            raise ApiError(method, path, 404, "NotFound", "there is none")
        if method == "GET":
            return deepcopy(found) if found is not None else {}
        known = (found or {}).get("metadata", {})
        wanted = (body["metadata"] if method in ("PUT", "PATCH") else {}).get("resourceVersion")
        if found is not None and wanted not in (None, known.get("resourceVersion")):
            raise ApiError(method, path, 409, "Conflict", "it was changed")
        if method == "DELETE" and found is not None:
            if body["preconditions"]["uid"] != found["metadata"]["uid"]:
                raise ApiError(method, path, 409, "Conflict", "another uid")
            del self.objects[path]
        else:
            made = deepcopy(body)
            version = str(next(self._versions))
            made["metadata"] |= {"resourceVersion": version}
            made["metadata"].setdefault("uid", f"uid-{version}")
            made["metadata"]["managedFields"] = [{"manager": (query or {}).get("fieldManager")}]
            self.objects[path] = made
        if self.lost:
            self.lost -= 1
            raise LostAnswerError(method, path, "reset")
        return deepcopy(self.objects.get(path, {}))


def writer(connection: Any, metrics: Metrics | None = None, **stores: ObjectStore) -> ClusterWriter:
    known = {"pods": ObjectStore(), **stores}
    return ClusterWriter(Objects(connection), known, metrics or Metrics())


def store(*items: dict[str, Any]) -> ObjectStore:
    found = ObjectStore()
    found.replace(items, 9)
    return found


def controller(**settings: Any) -> Controller:
    connection: Any = FakeConnection()
    return Controller(Objects(connection), FIFO, ControllerSettings(**settings), "one")


def status_writer(name: str, **meta: Any) -> StatusWriter:
    found = {"metadata": {"name": name, "namespace": "ns", "uid": name, **meta}}
    return StatusWriter(found, SlotClock(60.0))


Answer = Callable[[BaseHTTPRequestHandler, str], tuple[int, Any]]  # from a request and its body


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Its address; a status and a text, or what becomes JSON, are an answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
            status, body = answer(self, text)
            content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PATCH = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 (as the base class has it)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        served.daemon_threads = True
        thread = threading.Thread(target=served.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_port}"
        finally:
            served.shutdown()
            thread.join()
