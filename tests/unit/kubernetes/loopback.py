"""A server on 127.0.0.1 that gives the answers of a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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
