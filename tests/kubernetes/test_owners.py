"""JobSets and TrainJobs beside their own controllers: planned is what those make of them."""

from __future__ import annotations

from typing import Any

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import EVENTS
from oasis.kubernetes.objects.existing import JOBSET, TRAINJOB, ExistingKind
from tests.kubernetes.adapter import scene_of
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.access import apply
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import make, marked, read, replicated, runtime, status

PAIR = {"replicatedJobs": [replicated("worker", 3, "20s"), replicated("ps", 1, "20s")]}


@pytest.mark.nightly  # the controllers take ten minutes of two cores to build
@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize(
    ("kind", "spec", "notes"),
    [
        (JOBSET, PAIR, {"SERVERS": "ps"}),
        (TRAINJOB, {"runtimeRef": {"name": "for-4-nodes"}}, {}),
    ],
    ids=["jobset", "trainjob"],
)
def test_it_is_started_paused_resumed_and_ends(
    kind: ExistingKind, spec: Any, notes: dict[str, str], cluster: Cluster
) -> None:
    scene = scene_of(cluster)
    apply(cluster.plane.client, [runtime(4, "20s")])
    begin = cluster.plane.audit_position()

    def is_suspended() -> bool:
        return bool(read(scene, kind, "train")["spec"]["suspend"])

    with scene.controller(FIFO):
        make(scene, kind, marked(scene, kind, "train", spec, **notes))
        until(lambda: len(cluster.running()) == 4, "all of it runs")
        planned, there = status(scene, kind, "train")["plan"][0], cluster.running()
        for part, word in (("worker", "workers"), ("node", "workers"), ("ps", "parameterServers")):
            mine = [node for name, node in there.items() if f"-{part}-" in name]
            assert not mine or {node: mine.count(node) for node in mine} == planned[word]
        for node in ("n0", "n1"):
            cluster.plane.nodes.cordon(node)
        until(lambda: is_suspended() and not cluster.running(), "it is paused")
        for node in ("n0", "n1"):
            cluster.plane.nodes.uncordon(node)
        until(lambda: len(cluster.running()) == 4, "it goes on")
        until(lambda: status(scene, kind, "train")["phase"] == "Completed", "it ends", 90.0)
    # It was made, resumed, suspended and resumed.
    assert read(scene, kind, "train")["metadata"]["generation"] == 4
    events, _ = scene.admin.list_all(EVENTS, scene.namespace)
    assert "WorkDone" in {e["reason"] for e in events if e["involvedObject"]["name"] == "train"}
    assert not denied(cluster.plane.requests(scene.account, begin))
