"""JobSet's own controller on the control plane: what an adapter finds when it schedules JobSets."""

from __future__ import annotations

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import EVENTS
from oasis.kubernetes.objects.existing import JOBSET
from tests.kubernetes.adapter import scene_of
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import make, marked, replicated, status
from tests.kubernetes.jobset.jobset import running_jobset

pytestmark = pytest.mark.nightly  # JobSet takes three minutes of two cores to build


def test_the_adapter_admits_and_places_a_suspended_jobset_beside_its_controller(cluster):
    scene = scene_of(cluster)
    pair = {"replicatedJobs": [replicated("worker", 3, "8s"), replicated("ps", 1, "8s")]}
    with running_jobset(cluster.plane), scene.controller(FIFO):
        make(scene, JOBSET, marked(scene, JOBSET, "pair", pair, SERVERS="ps"))
        until(lambda: len(cluster.running()) == 4, "the JobSet runs")
        planned = status(scene, JOBSET, "pair")["plan"][0]
        for task, word in (("worker", "workers"), ("ps", "parameterServers")):
            there = [node for name, node in cluster.running().items() if f"-{task}-" in name]
            assert {node: there.count(node) for node in there} == planned[word]
        until(lambda: status(scene, JOBSET, "pair")["phase"] == "Completed", "it is complete", 60.0)
        events, _ = scene.admin.list_all(EVENTS, scene.namespace)
        assert "WorkDone" in {e["reason"] for e in events if e["involvedObject"]["name"] == "pair"}
