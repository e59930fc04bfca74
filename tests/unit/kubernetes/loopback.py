"""A server on 127.0.0.1 that answers every request and tells what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def answering(hear: Callable[[BaseHTTPRequestHandler, str], None]) -> Iterator[str]:
    """Its address; `hear` gets each request and its body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hear(self, self.rfile.read(int(self.headers["Content-Length"] or 0)).decode())
            answer = json.dumps({"kind": "Status"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_PATCH = do_GET  # noqa: N815 (as the base class has it)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_port}"
        finally:
            served.shutdown()
            thread.join()
