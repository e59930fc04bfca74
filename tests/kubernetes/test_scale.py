"""Writes and resources of the adapter: a small cluster in every run, the large one nightly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.benchmarks.scale import GANG, TIMING, Measured, Scale, measure
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.plane import ControlPlane


def check(measured: Measured, scale: Scale) -> None:
    assert measured["created"] == measured["opened"] == scale.jobs * GANG
    assert measured["deleted"] == measured["completed"] * GANG
    assert measured["writes_per_pod"] <= 2.0
    assert measured["lists_of_pods"] == 1, "one list at the start, then a watch"
    assert measured["memory_mb"] < 500.0


def test_a_pod_takes_two_writes_and_the_pods_are_listed_once(cluster: Cluster) -> None:
    scale = Scale(nodes=30, jobs=12, slot_seconds=6.0)
    check(measure(cluster, scale), scale)


@pytest.mark.nightly  # twenty minutes
def test_a_thousand_nodes_and_five_thousand_pods(controlplane_binary: Path) -> None:
    scale = Scale(slot_seconds=300.0)
    with ControlPlane(controlplane_binary, TIMING) as plane:
        cluster = Cluster(plane, "scale")
        cluster.create_namespace()
        measured = measure(cluster, scale)
    print(measured)  # noqa: T201
    check(measured, scale)
    # Of two cores that nobody else uses; by the clock it takes longer where somebody does.
    assert sum(measured[f"patch_{who}_seconds"] for who in ("controller", "plane")) / 2 < 10.0
