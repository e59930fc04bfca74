"""A validating webhook of the real API server that refuses, hangs or breaks on demand."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kubernetes.dynamic.exceptions import NotFoundError

from tests.kubernetes.controlplane.access import apply
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults.answers import REASONS

_KIND = "ValidatingWebhookConfiguration"
_GROUP_VERSION = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class Refusal:
    """What the webhook does with one request: refuses it with the status `code`; or, where `code`
    is 0, hangs for `seconds` and then agrees; or breaks, answering HTTP `broken` to the API server.
    """

    code: int = 0
    seconds: float = 0.0
    broken: int = 0


class FaultyWebhook:
    """The webhook on `plane`, for what `resources` of `group` undergo in `namespace`.

    It agrees to everything until `refusals` holds something; each refusal is used once. The API
    server gives up on it after `timeout` seconds, which makes the request fail.
    """

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        resources: Sequence[str],
        *,
        group: str = "",
        operations: Sequence[str] = ("CREATE", "UPDATE"),
        timeout: int = 2,
    ) -> None:
        self.refusals: deque[Refusal] = deque()
        self.asked = 0
        self._plane = plane
        self._namespace = namespace
        self._stopping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        files = plane.components.certificates
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(files.serving, files.serving_key)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._rule = {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": list(operations),
            "resources": list(resources),
        }
        self._timeout = timeout

    def __enter__(self) -> FaultyWebhook:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        apply(self._plane.client, [self._configuration()])
        until(self._probed, "the API server asks the webhook")
        self.asked = 0
        return self

    def __exit__(self, *_: object) -> None:
        kind = self._plane.client.resources.get(api_version=_GROUP_VERSION, kind=_KIND)
        kind.delete(name=self._name)
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def _name(self) -> str:
        return f"faulty-{self._namespace}"

    def _configuration(self) -> dict[str, object]:
        authority = self._plane.components.certificates.authority.read_bytes()
        own = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        return {
            "apiVersion": _GROUP_VERSION,
            "kind": _KIND,
            "metadata": {"name": self._name},
            "webhooks": [
                {
                    "name": "faulty.oasis.test",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "timeoutSeconds": self._timeout,
                    "failurePolicy": "Fail",
                    "namespaceSelector": own,
                    "clientConfig": {
                        "url": f"https://127.0.0.1:{self._server.server_address[1]}/",
                        "caBundle": base64.b64encode(authority).decode(),
                    },
                    "rules": [self._rule, _PROBE_RULE],
                }
            ],
        }

    def _probed(self) -> bool:
        """A dry run of what the webhook also wants to hear of tells whether it is asked yet."""
        kind = self._plane.client.resources.get(api_version="v1", kind="LimitRange")
        body = {"metadata": {"name": "probe"}, "spec": {"limits": []}}
        try:
            kind.create(body=body, namespace=self._namespace, dry_run="All")
        except NotFoundError:
            raise RuntimeError(f"namespace {self._namespace} is not there") from None
        return self.asked > 0

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # one request a connection, so that none is left open

            def log_message(self, *_: object) -> None:
                """The test knows what it asked for."""

            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                webhook.asked += 1
                probe = review["request"]["resource"]["resource"] == "limitranges"
                refusal = Refusal() if probe or not webhook.refusals else webhook.refusals.popleft()
                webhook._stopping.wait(refusal.seconds)
                content = json.dumps(_review(review["request"]["uid"], refusal.code)).encode()
                self.send_response(refusal.broken or 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                try:
                    self.wfile.write(content)
                except OSError:
                    return  # the API server has given up

        return Handler


_PROBE_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["limitranges"],
}


def _review(uid: str, code: int) -> dict[str, object]:
    response: dict[str, object] = {"uid": uid, "allowed": code == 0}
    if code:
        response["status"] = {
            "code": code,
            "reason": REASONS[code],
            "message": "injected by the test",
        }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
