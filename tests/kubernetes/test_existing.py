"""Jobs on a real control plane, with the shipped rights alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import oasis
from baselines import FIFO
from oasis.kubernetes import names
from oasis.kubernetes.api.resources import EVENTS, PODS
from oasis.kubernetes.objects.existing import JOB, ExistingKind
from tests.kubernetes.adapter import call, rigid, scene_of, wait_phases
from tests.kubernetes.cluster import GATE, Cluster
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.existing import (
    job_spec,
    make,
    marked,
    read,
    status,
    template,
)
from tests.kubernetes.scene import Scene


def wait_phase(scene: Scene, kind: ExistingKind, name: str, phase: str) -> dict[str, Any]:
    until(
        lambda: status(scene, kind, name).get("phase") == phase,
        f"{name} is {phase}",
        60.0,
    )
    return status(scene, kind, name)


def nodes_of_pods(scene: Scene, prefix: str) -> dict[str, str | None]:
    """Node of each Running pod whose name begins so."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName")
        for pod in scene.admin.list_all(PODS, scene.namespace)[0]
        if pod["metadata"]["name"].startswith(prefix) and pod["status"]["phase"] == "Running"
    }


def test_jobs_are_resumed_placed_and_followed_to_their_end(
    cluster: Cluster, tmp_path: Path
) -> None:
    scene = scene_of(cluster)
    start = cluster.plane.audit_position()
    untouched = {"suspend": True, "parallelism": 1, "template": template(gate=GATE)}
    meta = {"name": "foreign", "namespace": scene.namespace}
    foreign = make(
        scene, JOB, {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": untouched}
    )
    with scene.controller(FIFO):
        make(scene, JOB, marked(scene, JOB, "one", job_spec(3, "5s", completions=3)))
        make(scene, JOB, marked(scene, JOB, "huge", job_spec(20)))
        make(scene, JOB, marked(scene, JOB, "odd", job_spec(1), WORK="{"))
        gateless = job_spec(1)
        gateless["template"]["spec"]["schedulingGates"] = []
        make(scene, JOB, marked(scene, JOB, "gateless", gateless))
        scene.submit(rigid(scene, "ours", workers=5, slots=1))
        until(lambda: len(nodes_of_pods(scene, "one-")) == 3, "it runs", 40.0)
        said = status(scene, JOB, "one")
        assert said["phase"] in ("Starting", "Running")  # as soon as the controller has seen them
        planned = said["plan"][0]["workers"]
        there = list(nodes_of_pods(scene, "one-").values())
        assert {node: there.count(node) for node in there} == planned
        assert wait_phase(scene, JOB, "one", "Completed")["utility"] == 10
        wait_phases(scene, {"ours": "Completed"})
        wait_phase(scene, JOB, "huge", "Rejected")
        odd = {c["type"]: c for c in wait_phase(scene, JOB, "odd", "Invalid")["conditions"]}
        assert f"metadata.annotations.{names.WORK}: expected JSON" in odd["Valid"]["message"]
        bare = {c["type"]: c for c in wait_phase(scene, JOB, "gateless", "Invalid")["conditions"]}
        assert "spec.template.spec.schedulingGates: expected the gate" in bare["Valid"]["message"]
        listed = json.loads(call(scene, "status", "--namespace", scene.namespace, "--json"))["jobs"]
        phases = {job["job"].partition("/")[2]: job["phase"] for job in listed}
        assert phases == {
            "ours": "Completed",
            "job/one": "Completed",
            "job/huge": "Rejected",
            "job/odd": "Invalid",
            "job/gateless": "Invalid",
        }
        assert "huge is Rejected" in call(
            scene, "explain", f"{scene.namespace}/job/huge", "-n", scene.namespace
        )
        out = tmp_path / "now.json"
        clock = ("--slot-seconds", str(scene.clock.slot_seconds))
        clock += ("--startup-seconds", str(scene.clock.startup_seconds))
        call(
            scene,
            "import",
            "-o",
            str(out),
            "--namespace",
            scene.namespace,
            "--ps-share",
            "0.2",
            *clock,
        )
    there = {job.id.partition("/")[2]: job for job in oasis.read(out).jobs}
    assert there.keys() == {"ours", "job/one", "job/huge"}, "those that make sense"
    assert (there["job/one"].chunks, there["job/huge"].chunks) == (3, 20)
    assert there["job/one"].utility(0) == 10
    assert read(scene, JOB, "huge")["spec"]["suspend"] is True
    now = read(scene, JOB, "foreign")
    assert now["spec"] == foreign["spec"]
    assert names.STATUS not in (now["metadata"].get("annotations") or {})
    events, _ = scene.admin.list_all(EVENTS, scene.namespace)
    told = {
        (e["involvedObject"]["kind"], e["involvedObject"]["name"], e["reason"])
        for e in events
        if e.get("reportingComponent") == names.FIELD_MANAGER
    }
    assert {("Job", "one", "Admitted"), ("Job", "one", "WorkDone")} <= told
    assert ("Job", "odd", "Invalid") in told
    assert not denied(cluster.plane.requests(scene.account, start))


def test_a_job_whose_node_is_cordoned_goes_elsewhere_and_one_that_fails_is_let_go(
    cluster: Cluster,
) -> None:
    scene = scene_of(cluster)
    with scene.controller(FIFO):
        fails = job_spec(1, backoffLimit=0)
        fails["template"]["metadata"]["annotations"]["oasis.test/fails-after"] = "1s"
        make(scene, JOB, marked(scene, JOB, "moves", job_spec(3, "30s")))
        make(scene, JOB, marked(scene, JOB, "fails", fails))
        until(lambda: len(nodes_of_pods(scene, "moves-")) == 3, "it runs", 40.0)
        cluster.plane.nodes.cordon("n0")
        until(
            lambda: list(nodes_of_pods(scene, "moves-").values()) == ["n1"] * 3,
            "all of it runs elsewhere",
            40.0,
        )
        said = wait_phase(scene, JOB, "fails", "Failed")
        assert "its Job failed" in {c["type"]: c for c in said["conditions"]}["Complete"]["message"]
        change = {"metadata": {"annotations": {names.UTILITY: '{"kind": "constant"}'}}}
        change["metadata"] |= {"name": "moves", "namespace": scene.namespace}
        scene.admin.merge_patch(JOB.where, change)
        said = wait_phase(scene, JOB, "moves", "Invalid")
        assert "value" in {c["type"]: c for c in said["conditions"]}["Valid"]["message"]
        until(lambda: read(scene, JOB, "moves")["spec"]["suspend"], "nobody pays for it", 20.0)
