"""An HTTPS proxy between a client and the API server that does what its plan of faults says."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.kubernetes.faults.handler import Handler
from tests.kubernetes.faults.plan import Fault, FaultPlan


class FaultProxy:
    """The proxy, from entering to leaving it as a context manager.

    TLS on both sides, as clients do not send tokens over plain HTTP; the certificate is signed by
    the same authority as the API server's. Clients go to `url`. Set `plan` at any time. Only
    requests whose path and query match `only` can meet a fault.
    """

    def __init__(
        self,
        upstream: str,
        authority: Path,
        certificate: Path,
        key: Path,
        plan: FaultPlan | None = None,
        only: str = "",
    ) -> None:
        self.plan = plan or FaultPlan()
        self.only = re.compile(only)
        self._struck: list[Fault] = []
        self.stopping = threading.Event()
        address = urlsplit(upstream)
        self.upstream = (str(address.hostname), int(address.port or 443))
        self.upstream_tls = ssl.create_default_context(cafile=str(authority))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self._server = _Server(self, tls)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FaultProxy:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()  # ends watches, and the waiting of faults
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()  # waits for the requests under way
        self._thread.join()

    def fault_for(self, method: str, path: str, *, watch: bool) -> Fault | None:
        """Return the fault that this request meets."""
        return self.plan.next(method, watch=watch) if self.only.search(path) else None

    def note(self, fault: Fault | None) -> None:
        """Record what a request has met, before the client hears of it."""
        if fault is not None:
            self._struck.append(fault)

    def struck(self) -> list[Fault]:
        """The faults that were met so far, in order."""
        return list(self._struck)


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # server_close waits for them
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.proxy = proxy
        self._tls = tls
        self._open: set[ssl.SSLSocket] = set()
        self._lock = threading.Lock()

    def finish_request(self, request: socket.socket, address: tuple[str, int]) -> None:
        """Shake hands in the connection's own thread: a slow client delays no other."""
        try:
            secured = self._tls.wrap_socket(request, server_side=True)
        except OSError:
            return  # a client that went away, or that does not trust us
        with self._lock:
            self._open.add(secured)
        try:
            Handler(secured, address, self)
        except OSError:
            return  # the client went away
        finally:
            with self._lock:
                self._open.discard(secured)
            secured.close()

    def end_connections(self) -> None:
        """Clients keep connections open that they do not use: end them."""
        with self._lock:
            for connection in self._open:
                try:
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
                except OSError:
                    continue  # it has ended by itself
