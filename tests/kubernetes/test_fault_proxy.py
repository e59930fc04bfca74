"""The fault proxy before a tiny server: what was done, and what the client saw of it."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.kubernetes.controlplane.certificates import make_certificates
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults.plan import Fault, FaultPlan
from tests.kubernetes.faults.proxy import FaultProxy


class TinyServer(ThreadingHTTPServer):
    """Remembers what it was asked; a watch gets an event every 50 ms, until it is left."""

    def __init__(self, certificates):
        super().__init__(("127.0.0.1", 0), TinyHandler)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificates.serving, certificates.serving_key)
        self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.asked = []
        self.watching = 0


class TinyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, body, self.headers["Authorization"]))
        if "watch=true" in self.path:
            return self.stream()
        content = json.dumps({"asked": len(self.server.asked)}).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Tiny", "yes")
        self.end_headers()
        return self.wfile.write(content)

    do_GET = do_POST = answer  # noqa: N815

    def stream(self):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.server.watching += 1
        number = 0
        try:
            while number < 1000:
                line = b'{"type": "ADDED", "object": %d}\n' % number
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                number += 1
                time.sleep(0.05)
        except OSError:
            pass
        finally:
            self.server.watching -= 1


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def server(certificates):
    with TinyServer(certificates) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(server, certificates):
    files = (certificates.authority, certificates.serving, certificates.serving_key)
    with FaultProxy(f"https://127.0.0.1:{server.server_address[1]}", *files) as proxy:
        yield proxy


@pytest.fixture
def ask(proxy, certificates):
    """One request on a connection of its own: status, headers, body."""
    tls = ssl.create_default_context(cafile=str(certificates.authority))

    def ask(method="GET", path="/x", body=None, timeout=10):
        address = proxy.url.removeprefix("https://")
        connection = http.client.HTTPSConnection(address, context=tls, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers={"Authorization": "Bearer t"})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    return ask


def test_without_faults_a_request_passes_unchanged(server, proxy, ask):
    code, headers, body = ask("POST", "/x?y=1", b"content")
    assert server.asked == [("POST", "/x?y=1", b"content", "Bearer t")]
    assert (code, headers["X-Tiny"], json.loads(body)) == (201, "yes", {"asked": 1})
    assert [(p.method, p.path, p.fault, p.status) for p in proxy.passages] == [
        ("POST", "/x?y=1", None, 201)
    ]


@pytest.mark.parametrize("code", [409, 500, 503, 504])
def test_status_is_answered_once_and_nothing_is_done(code, server, proxy, ask):
    proxy.plan = FaultPlan.of(Fault("status", code=code))
    answered, _, body = ask("POST")
    assert answered == json.loads(body)["code"] == code
    assert server.asked == []
    assert ask("POST")[0] == 201


def test_too_many_requests_comes_with_retry_after_and_plain_text(server, proxy, ask):
    proxy.plan = FaultPlan.of(Fault("status", code=429))
    code, headers, body = ask()
    assert (code, headers["Retry-After"]) == (429, "1")
    assert headers["Content-Type"].startswith("text/plain")
    assert not body.startswith(b"{")
    assert server.asked == []


def test_reset_ends_the_connection_before_anything_is_done(server, proxy, ask):
    proxy.plan = FaultPlan.of(Fault("reset"))
    with pytest.raises(ConnectionResetError):
        ask("POST")
    assert server.asked == []


def test_lost_answer_means_that_it_was_done(server, proxy, ask):
    proxy.plan = FaultPlan.of(Fault("lost"))
    with pytest.raises(ConnectionResetError):
        ask("POST")
    assert [method for method, *_ in server.asked] == ["POST"]
    assert [(p.fault, p.status) for p in proxy.passages] == [(Fault("lost"), 201)]


def test_delay_comes_before_the_answer(proxy, ask):
    proxy.plan = FaultPlan.of(Fault("delay", seconds=0.5))
    start = time.monotonic()
    assert ask()[0] == 200
    assert time.monotonic() - start >= 0.5


def test_hanging_runs_into_the_clients_time_limit_and_nothing_is_done(server, proxy, ask):
    proxy.plan = FaultPlan.of(Fault("hang", seconds=30))
    with pytest.raises(TimeoutError):
        ask("POST", timeout=0.5)
    assert server.asked == []


def test_watch_is_cut_after_so_many_events(proxy, ask, server):
    proxy.plan = FaultPlan.of(Fault("cut", events=2))
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        ask(path="/x?watch=true")
    until(lambda: server.watching == 0, "the server's side has ended")


def test_watch_says_gone(proxy, ask, server):
    proxy.plan = FaultPlan.of(Fault("gone"))
    code, _, body = ask(path="/x?watch=true")
    assert code == 200
    event = json.loads(body)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert server.asked == []


def test_watch_of_a_client_that_leaves_is_ended_upstream(proxy, certificates, server):
    tls = ssl.create_default_context(cafile=str(certificates.authority))
    client = http.client.HTTPSConnection(proxy.url.removeprefix("https://"), context=tls)
    client.request("GET", "/x?watch=true")
    answer = client.getresponse()
    assert json.loads(answer.readline())["object"] == 0
    assert server.watching == 1
    answer.close()
    client.close()
    until(lambda: server.watching == 0, "the server's side has ended")


def test_only_some_paths_meet_faults(server, certificates):
    files = (certificates.authority, certificates.serving, certificates.serving_key)
    upstream = f"https://127.0.0.1:{server.server_address[1]}"
    with FaultProxy(upstream, *files, plan=FaultPlan.of(Fault("reset")), only="/pods") as proxy:
        assert proxy.fault_for("POST", "/leases/x", watch=False) is None
        assert proxy.fault_for("POST", "/pods", watch=False) == Fault("reset")


def test_server_that_is_away_looks_like_a_reset(proxy, ask, server):
    assert ask()[0] == 200
    server.socket.close()
    server.shutdown()
    with pytest.raises(ConnectionResetError):
        ask("POST")
    assert proxy.passages[-1].status is None


def test_leaving_the_proxy_ends_its_threads(server, certificates, ask, proxy):
    before = threading.active_count()
    files = (certificates.authority, certificates.serving, certificates.serving_key)
    tls = ssl.create_default_context(cafile=str(certificates.authority))
    with FaultProxy(f"https://127.0.0.1:{server.server_address[1]}", *files) as other:
        client = http.client.HTTPSConnection(other.url.removeprefix("https://"), context=tls)
        client.request("GET", "/x?watch=true")
        client.getresponse().readline()
    until(lambda: threading.active_count() <= before, "the proxy's threads have ended")
    client.close()
