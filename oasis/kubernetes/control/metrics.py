"""HTTP endpoints of the controller: metrics for Prometheus, and probes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from oasis.kubernetes.objects.schema import PHASES

Probe = Callable[[], str | None]  # what is wrong; None if nothing is


class Metrics:
    """The measurements of one controller, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.requests = counter(
            "oasis_requests",
            "Requests to the API server; status 0 had no answer.",
            ("method", "status"),
        )
        self.request_seconds = histogram(
            "oasis_request_seconds", "Seconds of a request.", ("method",)
        )
        self.policy_seconds = histogram(
            "oasis_policy_seconds", "Seconds that the policy thought at a boundary."
        )
        self.boundary_lag = histogram(
            "oasis_boundary_lag_seconds", "Seconds from the beginning of a slot to its decisions."
        )
        self.startup = histogram(
            "oasis_startup_seconds",
            "Seconds from the beginning of the slot in which a job got room to its work.",
            # Buckets up to ten minutes: to pull the image of a framework can take several.
            buckets=(0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0),
        )
        self.actions = counter(
            "oasis_pod_actions", "Pods created, opened and deleted.", ("action",)
        )
        self.failures = counter("oasis_failures", "Turns of the controller that an error ended.")
        self.job_errors = counter(
            "oasis_job_errors",
            "Errors that one job causes: it is Failed, or Invalid, and the others go on.",
            ("doing",),
        )
        self.policy_errors = counter(
            "oasis_policy_errors",
            "Boundaries at which the policy failed and no single job caused it.",
        )
        self.stalled = gauge(
            "oasis_plan_stalled", "1 while the policy fails, so that the last plan is kept, else 0."
        )
        self.withdrawn = counter(
            "oasis_gangs_withdrawn", "Gangs withdrawn because their room was taken."
        )
        self.jobs = gauge("oasis_jobs", "Jobs by phase.", ("phase",))
        self.lost = counter(
            "oasis_lost_worker_slots",
            "Worker-slots that were planned and not worked: pods that started late, or broke.",
        )
        self.checkpoint_bytes = gauge("oasis_checkpoint_bytes", "Size of the checkpoint.")
        self.slot = gauge("oasis_slot", "The present slot.")
        self.utility = counter("oasis_utility", "Utility of completed jobs.")
        self.broken = counter(
            "oasis_promises_broken", "Promised completions that could not be kept."
        )

    def count_phases(self, phases: Sequence[str]) -> None:
        """Set the number of jobs in each phase."""
        # A gauge keeps its last value, so phases that no job is in any more are set to 0.
        for phase in PHASES:
            self.jobs.labels(phase).set(phases.count(phase))

    def attempt(self, method: str, status: int, seconds: float) -> None:
        """Count a request to the API server and its seconds; `status` 0: it had no answer."""
        self.requests.labels(method, str(status)).inc()
        self.request_seconds.labels(method).observe(seconds)

    def serve(self, port: int, probes: Mapping[str, Probe]) -> WSGIServer:
        """Answer Prometheus, and `probes` by path, at `port` in a thread; return the server."""
        # A probe that finds something wrong answers 503 with it; any path that is no probe is that
        # of the metrics.
        measurements = make_wsgi_app(self.registry)

        def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            probe = probes.get(environ["PATH_INFO"])
            if probe is None:
                content: Iterable[bytes] = measurements(environ, start)
                return content
            wrong = probe()
            status = HTTPStatus.OK if wrong is None else HTTPStatus.SERVICE_UNAVAILABLE
            start(f"{status.value} {status.phrase}", [("Content-Type", "text/plain")])
            return [f"{wrong or 'ok'}\n".encode()]

        server = make_server(_Server.address, port, answer, _Server, _SilentHandler)
        threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
        return server


class _Server(ThreadingWSGIServer):
    """An HTTP server for IPv4 and IPv6: a kubelet probes the pod's address of either family."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    address = "::" if address_family == socket.AF_INET6 else "0.0.0.0"

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Leave the log to the controller: a probe comes every few seconds."""
