"""Pods as processes leave nothing behind; what they find and how they end, the trainings show."""

from __future__ import annotations

import pytest

from tests.kubernetes.cluster import Cluster, pod
from tests.kubernetes.controlplane.guardian import processes_in
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.processes.nodes import ProcessNodes

ROOM = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"}
STUBBORN = "trap '' TERM; setsid sh -c 'echo $$ > inner; sleep 600' & sleep 600"


@pytest.mark.usefixtures("namespaces")
def test_nothing_runs_on_after_the_nodes(cluster: Cluster) -> None:
    """Nor what a pod has started in a session of its own."""
    with ProcessNodes(cluster.plane) as nodes:
        nodes.add("machine", ROOM, {})
        body = pod("one", 1)
        body["spec"]["containers"][0]["command"] = ["sh", "-c", STUBBORN]
        cluster.create(body)
        (inner,) = until(lambda: list(nodes.directory.glob("*/inner")), "it runs")
        assert processes_in(inner.parent)
    assert not processes_in(inner.parent)
    assert not nodes.directory.exists()
