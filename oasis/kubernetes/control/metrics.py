"""What the controller measures, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server


class Metrics:
    """The measurements of one controller, in a registry of their own.

    Attributes
    ----------
    registry : CollectorRegistry
        Where they are.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "oasis_requests",
            "Requests to the API server; status 0 had no answer.",
            ("method", "status"),
            registry=registry,
        )
        self.request_seconds = Histogram(
            "oasis_request_seconds", "Seconds of a request.", ("method",), registry=registry
        )
        self.policy_seconds = Histogram(
            "oasis_policy_seconds",
            "Seconds that the policy thought at a boundary.",
            registry=registry,
        )
        self.boundary_lag = Histogram(
            "oasis_boundary_lag_seconds",
            "Seconds from the beginning of a slot to its decisions.",
            registry=registry,
        )
        self.startup = Histogram(
            "oasis_startup_seconds",
            "Seconds from the beginning of the slot that asked for a worker to its work.",
            buckets=(0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0),
            registry=registry,
        )
        self.actions = Counter(
            "oasis_pod_actions", "Pods created, opened and deleted.", ("action",), registry=registry
        )
        self.failures = Counter(
            "oasis_failures", "Turns of the controller that an error ended.", registry=registry
        )
        self.job_errors = Counter(
            "oasis_job_errors",
            "Errors that one job causes: it is Failed, or Invalid, and the others go on.",
            ("doing",),
            registry=registry,
        )
        self.policy_errors = Counter(
            "oasis_policy_errors",
            "Boundaries at which the policy failed and no single job caused it.",
            registry=registry,
        )
        self.stalled = Gauge(
            "oasis_plan_stalled",
            "1 while the policy fails, so that the last plan is kept, else 0.",
            registry=registry,
        )
        self.withdrawn = Counter(
            "oasis_gangs_withdrawn",
            "Gangs withdrawn because their room was taken.",
            registry=registry,
        )
        self.jobs = Gauge("oasis_jobs", "Jobs by phase.", ("phase",), registry=registry)
        self.utility = Counter("oasis_utility", "Utility of completed jobs.", registry=registry)
        self.broken = Counter(
            "oasis_promises_broken",
            "Promised completions that could not be kept.",
            registry=registry,
        )
        self.lost = Counter(
            "oasis_lost_worker_slots",
            "Worker-slots that were planned and not worked: pods that started late, or broke.",
            registry=registry,
        )
        self.checkpoint_bytes = Gauge(
            "oasis_checkpoint_bytes", "Size of the checkpoint.", registry=registry
        )
        self.slot = Gauge("oasis_slot", "The present slot.", registry=registry)

    def attempt(self, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(method, str(status)).inc()
        self.request_seconds.labels(method).observe(seconds)

    def serve(self, port: int, address: str = "0.0.0.0") -> None:
        """Answer Prometheus at ``/metrics`` of `port`."""
        start_http_server(port, address, self.registry)
