"""What training processes report is written as the controller reads it."""

from __future__ import annotations

from typing import Any

import pytest

from oasis.kubernetes import names
from oasis.kubernetes.cluster.world import Report, reported
from oasis.kubernetes.reporter import Reporter
from oasis.model.errors import OasisError


class Pods:
    """Objects that remember what was merged."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}

    def merge_patch(self, kind: Any, body: dict[str, Any]) -> None:
        assert kind.plural == "pods"
        self.meta = body["metadata"]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ((12.5, -1e-7), Report(12.5, -1e-7)),
        ((1e7, None), Report(1e7, None)),
        ((None, 3.0), Report(None, 3.0)),
        ((0.0, 0.1), Report(0.0, 0.1)),
    ],
)
def test_what_is_reported_is_what_is_read(said: tuple[Any, Any], read: Report) -> None:
    pods = Pods()
    Reporter(pods, "ns", "pod").report(*said)  # type: ignore[arg-type]
    assert (pods.meta["namespace"], pods.meta["name"]) == ("ns", "pod")
    assert reported({"pod": {"metadata": pods.meta}}) == read


def test_what_is_no_number_is_refused_and_so_is_what_is_no_pod() -> None:
    reporter = Reporter(Pods(), "ns", "pod")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="loss: expected a finite number, got nan"):
        reporter.report(loss=float("nan"))
    with pytest.raises(ValueError, match="worker_seconds: expected seconds >= 0, got -1"):
        reporter.report(-1)
    assert names.LOSS.endswith("/loss")
    with pytest.raises(OasisError, match="expected the service account of a pod"):
        Reporter.in_pod()
