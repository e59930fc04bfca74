"""One connection of a client to the fault proxy: passes requests on, or lets them meet a fault.

Every request gets a connection of its own to the API server, so that one that was killed and
started again is found again. While it is away the client's connection is reset, as it would be
without the proxy.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from tests.kubernetes.faults.plan import Fault

if TYPE_CHECKING:
    from tests.kubernetes.faults.proxy import _Server

_OF_ONE_CONNECTION = {
    *("connection", "keep-alive", "transfer-encoding", "upgrade"),
    *("host", "content-length", "proxy-authorization", "accept-encoding"),
}
_POLL = 0.2  # seconds between two looks whether the client of a quiet watch is still there
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close by RST


class Handler(BaseHTTPRequestHandler):
    """Requests of one client connection, one after the other."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """The proxy knows which faults struck."""

    def _pass(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = parse_qs(urlsplit(self.path).query)
        watch = query.get("watch", ["false"])[0].lower() in {"1", "true"}
        fault = proxy.fault_for(self.command, self.path, watch=watch)
        if fault and fault.kind not in {"delay", "lost", "cut"}:
            proxy.note(fault)
            self._refuse(fault)
        else:
            self._forward(fault, body, watch=watch)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _pass  # noqa: N815

    def _refuse(self, fault: Fault) -> None:
        """Answer a request with a fault, without passing it to the API server."""
        if fault.kind == "status":
            self._answer(fault.code, *refusal(fault.code))
        elif fault.kind == "gone":
            self._answer(200, watch_expired(), {"Content-Type": "application/json"})
        else:
            self.server.proxy.stopping.wait(fault.seconds)
            self._reset()

    def _forward(self, fault: Fault | None, body: bytes, *, watch: bool) -> None:
        proxy = self.server.proxy
        if fault and fault.kind == "delay":
            proxy.stopping.wait(fault.seconds)
        upstream = http.client.HTTPSConnection(*proxy.upstream, context=proxy.upstream_tls)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_ONE_CONNECTION}
        try:
            try:
                upstream.request(self.command, self.path, body=body or None, headers=headers)
                wire = upstream.sock
                answer = upstream.getresponse()
            finally:  # before the client hears of it
                proxy.note(fault)
            if watch and answer.status == 200:
                limit = fault.events if fault and fault.kind == "cut" else None
                if self._stream(answer, wire, limit):
                    self._reset()
                return
            content = answer.read()
            if fault and fault.kind == "lost":
                self._reset()
            else:
                self._answer(answer.status, content, _passed_on(answer))
        except (http.client.HTTPException, OSError):
            self._reset()  # the API server is not there, or went away, or the client did
        finally:
            upstream.close()

    def _stream(
        self, answer: http.client.HTTPResponse, wire: socket.socket, limit: int | None
    ) -> bool:
        """Pass a watch on, event by event; return whether `limit` events came: it is then cut."""
        self.send_response(answer.status)
        for name, value in _passed_on(answer).items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        over = threading.Event()
        companion = threading.Thread(target=self._end_with_client, args=(wire, over))
        companion.start()
        try:
            if limit == 0:
                return True
            for number, event in enumerate(events(answer), start=1):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                if number == limit:
                    return True
            self.wfile.write(b"0\r\n\r\n")
            return False
        finally:
            over.set()
            companion.join()

    def _end_with_client(self, wire: socket.socket, over: threading.Event) -> None:
        """End the API server's side of a watch when the client leaves, or the proxy stops."""
        # While a watch runs, its client says nothing: what can be read is its goodbye.
        stopping = self.server.proxy.stopping
        while not over.is_set():
            left = select.select([self.connection], [], [], _POLL)[0]
            if left or stopping.is_set():
                self.close_connection = True
                with suppress(OSError):  # it has ended by itself
                    socket.socket.shutdown(wire, socket.SHUT_RDWR)
                return

    def _answer(self, code: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _reset(self) -> None:
        """End the connection with RST, without the goodbye of TLS."""
        self.close_connection = True
        if self.connection.fileno() >= 0:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            os.close(self.connection.detach())


def _passed_on(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {k: v for k, v in answer.getheaders() if k.lower() not in _OF_ONE_CONNECTION}


def events(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Lines of a watch, as they come."""
    # Raises IncompleteRead or ConnectionResetError if it is cut, which iterating over the answer
    # would take for its end.
    rest = b""
    while piece := answer.read1(1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line + b"\n"


RETRY_AFTER = "1"
REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status(code: int) -> dict[str, object]:
    """A Status object of `code`."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "injected by the test",
        "reason": REASONS[code],
        "code": code,
    }


def refusal(code: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an answer of `code`; 429 is plain text, as the API server's own is."""
    if code == 429:
        text = b"Too many requests, please try again later.\n"
        return text, {"Content-Type": "text/plain; charset=utf-8", "Retry-After": RETRY_AFTER}
    return json.dumps(status(code)).encode(), {"Content-Type": "application/json"}


def watch_expired() -> bytes:
    """The event by which a watch says that its resourceVersion is too old."""
    return json.dumps({"type": "ERROR", "object": status(410)}).encode() + b"\n"
