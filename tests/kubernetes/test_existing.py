"""Jobs, JobSets and TrainJobs beside their own controllers, with the shipped rights alone."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from baselines import FIFO
from tests.kubernetes import names
from tests.kubernetes.cluster import Cluster, is_running, told
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import (
    JOB,
    JOBSET,
    TRAINJOB,
    Scene,
    job_spec,
    make,
    marked,
    read,
    replicated,
    runtime,
    scene_of,
    status,
    template,
)


def wait_phase(scene: Scene, kind: str, name: str, phase: str) -> dict[str, Any]:
    until(lambda: status(scene, kind, name).get("phase") == phase, f"{name} is {phase}")
    return status(scene, kind, name)


def running(scene: Scene, prefix: str) -> list[dict[str, Any]]:
    return [pod for pod in scene.pods(prefix) if is_running(pod)]


ENDS = {"one": "Completed", "huge": "Rejected", "odd": "Invalid", "gateless": "Invalid"}


def test_jobs_are_resumed_placed_and_followed_to_their_end(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    start = cluster.plane.audit_position()
    theirs = {"suspend": True, "parallelism": 1, "template": template(gate="them.io/gate")}
    foreign = make(scene, JOB, {"metadata": {"name": "foreign"}, "spec": theirs})
    gateless, fails = job_spec(1), job_spec(1, backoffLimit=0)
    gateless["template"]["spec"]["schedulingGates"] = []
    fails["template"]["metadata"]["annotations"]["oasis.test/fails-after"] = "1s"
    with scene.controller(FIFO):
        make(scene, JOB, marked(scene, JOB, "one", job_spec(3, "5s", completions=3)))
        make(scene, JOB, marked(scene, JOB, "huge", job_spec(20)))
        make(scene, JOB, marked(scene, JOB, "odd", job_spec(1), WORK="{"))
        make(scene, JOB, marked(scene, JOB, "gateless", gateless))
        scene.submit(scene.rigid("ours", workers=5, slots=1))
        until(lambda: len(running(scene, "one-")) == 3, "it runs", 40.0)
        said = status(scene, JOB, "one")
        assert said["phase"] in ("Starting", "Running")  # as soon as the controller has seen them
        assert (
            Counter(p["spec"]["nodeName"] for p in running(scene, "one-"))
            == (said["plan"][0]["workers"])
        )
        scene.wait({"ours": "Completed"})
        ended = {name: wait_phase(scene, JOB, name, phase) for name, phase in ENDS.items()}
        assert ended["one"]["utility"] == 10
        for name, part in (
            ("odd", f"metadata.annotations.{names.WORK}: expected JSON"),
            ("gateless", "spec.template.spec.schedulingGates: expected the gate"),
        ):
            assert part in told(ended[name])["Valid"]["message"]
        listed = json.loads(scene.call("status", "--namespace", scene.namespace, "--json"))["jobs"]
        phases = {job["job"].partition("/")[2]: job["phase"] for job in listed}
        assert phases == {f"job/{name}": phase for name, phase in ENDS.items()} | scene.phases()
        now = scene.imported("--namespace", scene.namespace, "--ps-share", "0.2")
        make(scene, JOB, marked(scene, JOB, "fails", fails))
        said = wait_phase(scene, JOB, "fails", "Failed")
        assert "its Job failed" in told(said)["Complete"]["message"]
    there = {job.id.partition("/")[2]: job for job in now.jobs}
    assert there.keys() == {"ours", "job/one", "job/huge"}, "those that make sense"
    assert (there["job/one"].chunks, there["job/huge"].chunks) == (3, 20)
    assert read(scene, JOB, "huge")["spec"]["suspend"] is True
    now = read(scene, JOB, "foreign")
    assert now["spec"] == foreign["spec"]
    assert names.STATUS not in (now["metadata"].get("annotations") or {})
    events = scene.api.items("events", scene.namespace)
    ours = [e for e in events if e.get("reportingComponent") == names.CONTROLLER]
    heard = {(e["involvedObject"]["name"], e["reason"]) for e in ours}
    assert {("one", "Admitted"), ("one", "WorkDone"), ("odd", "Invalid")} <= heard
    assert not denied(cluster.plane.requests(scene.account, start))


# -- pods that know each other ---------------------------------------------------------------------


def test_the_pods_of_an_indexed_job_know_each_other_and_are_resized(cluster: Cluster) -> None:
    """Beside the Job controller itself: 4 workers, 2 while an urgent job runs, then 4."""
    scene = scene_of(cluster, nodes=1, gpus=4)
    made = template()
    made["spec"]["subdomain"] = "train"
    env = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{path}']"}}}
        for name, path in (
            ("RANK", f"{names.ENV}JAX_PROCESS_ID"),
            ("HOSTS", f"{names.ENV}OASIS_HOSTS"),
        )
    ]
    made["spec"]["containers"][0]["env"] = env
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": made}
    bounds = {"MINIMUM": "1", "MAXIMUM": "4", "FRAMEWORK": "jax"}

    def known() -> set[tuple[str, ...]]:
        notes = [pod["metadata"]["annotations"] for pod in running(scene, "bert-")]
        read = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS")
        return {tuple(each[f"{names.ENV}{name}"] for name in read) for each in notes}

    def gang(count: int) -> set[tuple[str, ...]]:
        return {(str(k), str(count), "bert-0.train:2222") for k in range(count)}

    with scene.controller(FIFO):
        make(scene, JOB, marked(scene, JOB, "bert", spec, seconds=1e6, **bounds))
        until(lambda: known() == gang(4), "four workers know each other")
        found = read(scene, JOB, "bert")["spec"]
        assert (found["parallelism"], found["completions"]) == (4, 4)
        cluster.plane.nodes.cordon("n0")
        until(lambda: not running(scene, "bert-"), "it pauses")
        cluster.plane.nodes.uncordon("n0")
        change = {"annotations": {names.MAXIMUM: "3"}}
        scene.api.patch(JOB, "bert", scene.namespace, metadata=change)
        until(lambda: known() == gang(3), "three workers know each other")
        wait_phase(scene, JOB, "bert", "Running")


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
    kind: str, spec: Any, notes: dict[str, str], cluster: Cluster
) -> None:
    scene = scene_of(cluster)
    cluster.plane.apply([runtime(4, "20s")])
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
    events = scene.api.items("events", scene.namespace)
    assert "WorkDone" in {e["reason"] for e in events if e["involvedObject"]["name"] == "train"}
    assert not denied(cluster.plane.requests(scene.account, begin))
