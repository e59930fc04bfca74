"""JobSet's own controller on the control plane: what an adapter finds when it schedules JobSets."""

from __future__ import annotations

import time

import pytest

from baselines import FIFO
from oasis.kubernetes.api.resources import EVENTS
from oasis.kubernetes.objects.existing import JOBSET
from tests.kubernetes.adapter import scene_of
from tests.kubernetes.cluster import GATE, pod
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import make, marked, replicated, status
from tests.kubernetes.jobset.jobset import running_jobset

pytestmark = pytest.mark.nightly  # JobSet takes three minutes of two cores to build
API = "jobset.x-k8s.io/v1alpha2"


def jobset(pods: int) -> dict:
    """A suspended JobSet of one Job with `pods` gated pods of one GPU."""
    template = pod("", 1, gated=True)
    template["spec"]["restartPolicy"] = "Never"
    template = {"metadata": {"labels": {"app": "train"}}, "spec": template["spec"]}
    job = {"spec": {"parallelism": pods, "completions": pods, "template": template}}
    return {
        "apiVersion": API,
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"suspend": True, "replicatedJobs": [{"name": "worker", "template": job}]},
    }


def test_suspended_jobset_is_admitted_placed_and_taken_away(cluster):
    nodes = ["node-0", "node-1", "node-0"]
    cluster.add_nodes("node-0", "node-1", gpus=4)
    with running_jobset(cluster.plane):
        jobsets = cluster.plane.client.resources.get(api_version=API, kind="JobSet")
        jobs = cluster.plane.client.resources.get(api_version="batch/v1", kind="Job")
        jobsets.create(body=jobset(len(nodes)), namespace=cluster.namespace)
        until(lambda: jobs.get(namespace=cluster.namespace).items, "JobSet has made its Job")
        time.sleep(1.0)
        assert cluster.read() == {}, "a suspended JobSet has no pods"
        jobsets.patch(
            body={"spec": {"suspend": False}},
            name="train",
            namespace=cluster.namespace,
            content_type="application/merge-patch+json",
        )
        until(lambda: len(cluster.read()) == len(nodes), "its pods are made")
        pods = cluster.read()
        assert all(p["spec"]["schedulingGates"] == [{"name": GATE}] for p in pods.values())
        planned = dict(zip(sorted(pods), nodes, strict=True))
        for name, node in planned.items():
            cluster.place(name, node)
        assert cluster.wait_running(*planned) == planned
        jobsets.delete(name="train", namespace=cluster.namespace)
        until(lambda: not cluster.read(), "its pods are taken away")


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
