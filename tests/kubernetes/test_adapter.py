"""The adapter on a real control plane, with the shipped rights alone."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import oasis
from baselines import DRF, FIFO
from tests.kubernetes import names
from tests.kubernetes.cluster import Cluster, condition, has_ended, told
from tests.kubernetes.controlplane.api import RefusedError
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.names import HOSTNAME, REQUIRED, SYSTEM
from tests.kubernetes.scene import EXAMPLE, Scene, scene_of
from tests.unit.kubernetes.played import merged
from tests.unit.kubernetes.test_existing_jobs import ROWS
from tests.unit.kubernetes.test_node_affinity import ASKED, CORDONED, REFUSED, VERDICTS, drawn


@pytest.fixture
def scene(cluster: Cluster) -> Scene:
    return scene_of(cluster)


def test_malformed_jobs_are_refused_or_told_and_the_others_go_on(scene: Scene) -> None:
    with scene.controller(FIFO):
        for k, row in enumerate(ROWS["refused_by_api_server"]):
            made = scene.elastic(f"bad{k}", 1, 3, 60.0)
            with pytest.raises(RefusedError) as refused:
                scene.submit(merged(made, {"spec": row["spec"]}))
            assert refused.value.status == 422
            assert row["says"] in str(refused.value)
        odd = scene.rigid("odd", 1, 1)
        resources = odd["spec"]["workers"]["template"]["spec"]["containers"][0]["resources"]
        resources["requests"]["cpu"] = "four"
        scene.submit(odd)
        scene.submit(scene.rigid("good", 2, 1, network={"framework": "jax"}))
        scene.wait({"good": "Completed", "odd": "Invalid"})
        message = told(scene.statuses()["odd"])["Valid"]["message"]
    assert "spec.workers.template.spec.containers[0].resources.requests.cpu" in message


# -- pods that know each other ---------------------------------------------------------------------


def read_by(scene: Scene, job: str, *variables: str) -> dict[str, tuple[str, ...]]:
    """What the containers of a job's running pods would read, by uid; after their host names."""
    found = {}
    for pod in scene.running():
        meta, spec = pod["metadata"], pod["spec"]
        if meta["labels"][names.JOB_NAME] == job:
            env = spec["containers"][0]["env"]
            paths = {e["name"]: e["valueFrom"]["fieldRef"]["fieldPath"] for e in env}
            read = [paths[name].removeprefix("metadata.annotations['")[:-2] for name in variables]
            values = (meta["annotations"][path] for path in read)
            found[meta["uid"]] = (f"{spec['hostname']}.{spec['subdomain']}", *values)
    return found


def test_gangs_are_told_of_each_other_and_resized(cluster: Cluster, scene: Scene) -> None:
    start = cluster.plane.audit_position()
    asked = {"anew": ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"), "grows": ("OASIS_HOSTS",)}

    def gangs(count: int) -> dict[str, dict[str, tuple[str, ...]]] | None:
        """What both read, once each has so many workers."""
        found = {job: read_by(scene, job, *variables) for job, variables in asked.items()}
        return found if all(len(gang) == count for gang in found.values()) else None

    with scene.controller(DRF):
        for name, framework, resize in (("anew", "jax", "restart"), ("grows", "torch", "elastic")):
            more = {"network": {"framework": framework}, "resizePolicy": resize}
            scene.submit(scene.elastic(name, 1, 2, 1e6, **more))
        before = until(lambda: gangs(2), "two workers of each know each other")
        hosts = "grows-worker-0.grows,grows-worker-1.grows"
        assert {*before["grows"].values()} == {(host, hosts) for host in hosts.split(",")}
        service = scene.api.get("services", "grows", scene.namespace) or {}
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True
        for name in asked:
            scene.edit(name, {"workers": {"maximum": 3}})
        now = until(lambda: gangs(3), "there is one more of each")
        assert before["grows"].keys() < now["grows"].keys(), "an elastic gang keeps its pods"
        assert not before["anew"].keys() & now["anew"].keys(), "all of them began anew"
        assert {read[1:] for read in now["anew"].values()} == {(str(k), "3") for k in range(3)}
        scene.delete("grows")
        its = ("services", "grows", scene.namespace)
        until(lambda: scene.api.get(*its) is None, "its Service goes, too")
    assert not denied(cluster.plane.requests(scene.account, start))


# -- in the middle of a slot -----------------------------------------------------------------------


SLOT = 20.0  # seconds
SOON = 8.0  # seconds, on a busy machine


def test_a_job_gets_its_pods_within_seconds_of_its_arrival(scene: Scene) -> None:
    scene.clock = Slots(SLOT, 1.0)
    with scene.controller(FIFO) as controller:
        scene.submit(scene.elastic("first", 2, 2, 400.0))
        until(lambda: scene.workers() == {"first": 2}, "the first runs", 60.0)
        reconciler: Any = controller.reconciler

        def left() -> float:
            return float(reconciler.next_boundary - reconciler.now())

        until(lambda: SOON + 2.0 < left() < SLOT - 1.0, "well inside a slot", 2 * SLOT)
        slot, begin = reconciler.slot, time.monotonic()
        scene.submit(scene.elastic("second", 2, 2, 200.0))
        until(lambda: scene.workers().get("second") == 2, "the second runs", SLOT)
        assert time.monotonic() - begin < SOON
        assert reconciler.slot == slot, "before the boundary"
        there = scene.our_pods().keys()
        until(lambda: (reconciler.slot or 0) > (slot or 0), "the next slot", 2 * SLOT)
        time.sleep(1.0)
        assert scene.our_pods().keys() == there, "they stay"


class Slow(FIFO):
    """Takes longer for a plan than the lease lasts, once a job has been planned."""

    def decide(self, view: oasis.View) -> oasis.Plan:
        if view.now > 0 and view.arrived:
            time.sleep(6.0)
        return super().decide(view)


def test_a_plan_that_takes_longer_than_the_lease_keeps_nothing_waiting(scene: Scene) -> None:
    with scene.controller(Slow, lease_seconds=3.0) as controller:
        scene.submit(scene.elastic("first", 2, 2, 400.0))
        until(lambda: scene.workers() == {"first": 2}, "the first runs", 60.0)
        reconciler: Any = controller.reconciler
        scene.submit(scene.elastic("second", 2, 2, 200.0))
        until(lambda: reconciler.planning is not None, "a plan is being made", 20.0)
        scene.delete("first")
        until(lambda: "first" not in scene.workers(), "its pods are gone", 20.0)
        until(lambda: scene.workers().get("second") == 2, "the second runs", 30.0)
        assert controller.reconciler is reconciler, "the lease was never lost"


# -- commands and windows -------------------------------------------------------------------------


def test_every_command_answers_on_a_cluster_at_work(cluster: Cluster, tmp_path: Path) -> None:
    instance = oasis.read(EXAMPLE)
    scene = Scene(cluster.plane, cluster.namespace, Slots(20.0, 10.0))
    scene.add_nodes(instance.cluster)
    jobs = {job.id: scene.job(job, instance.slot_seconds) for job in instance.jobs}
    for name in ("j0", "j3", "j4"):
        scene.submit(jobs[name])
    mine = ("--namespace", cluster.namespace)
    dry = "run --policy fifo --slot-seconds 20 --controller-name rehearsal --dry-run --json"
    planned = json.loads(scene.call(*dry.split(), *mine))
    assert {action["action"] for action in planned["actions"]} == {"create"}
    assert scene.our_pods() == {}, "nothing was made"

    with scene.controller(lambda: oasis.Recourse.rolling(20, keep_admitted=True)):
        scene.wait({"j0": "Running"})
        until(scene.our_pods, "pods are there", 30.0)
        listed = json.loads(scene.call("status", *mine, "--json"))["jobs"]
        three = {f"{cluster.namespace}/{name}" for name in ("j0", "j3", "j4")}
        assert {job["job"] for job in listed} == three
        plan = json.loads(scene.call("plan", *mine, "--json", "--plot", str(tmp_path / "p.svg")))
        assert plan["jobs"]
        assert (tmp_path / "p.svg").read_text().lstrip().startswith("<?xml")

        made = tmp_path / "job.yaml"
        made.write_text(yaml.safe_dump(jobs["j10"]))
        its = ("--system-namespace", SYSTEM, "--controller-name", cluster.namespace)
        quote = json.loads(scene.call("quote", str(made), *its, "--json"))
        assert quote["decision"]["admitted"]
        assert quote["decision"]["completion"] is not None
        assert "j10" not in scene.phases(), "a quote makes nothing"

        said = json.loads(scene.call("explain", "j0", "-n", cluster.namespace, "--json"))
        assert {entry["type"] for entry in said["explanation"]} >= {"Admitted", "Placed"}


def declare(scene: Scene, name: str, **spec: Any) -> None:
    head = {"apiVersion": names.API_VERSION, "kind": "CapacityWindow"}
    scene.api.create("capacitywindows", {**head, "metadata": {"name": name}, "spec": spec})


def conditions(scene: Scene, name: str) -> list[tuple[str, str, str]]:
    found = scene.api.get("capacitywindows", name) or {}
    told = (found.get("status") or {}).get("conditions") or []
    return [(each["status"], each["reason"], each["message"]) for each in told]


def test_windows_that_make_no_sense_are_refused_and_others_are_taken(cluster: Cluster) -> None:
    scene = scene_of(cluster, {"n1": "worker"})
    given = {"begin": "2030-01-31T22:00:00Z", "end": "2030-02-01T02:00:00Z", "nodes": ["n1"]}
    for row in ROWS["refused_windows"]:
        with pytest.raises(RefusedError, match=row["says"]) as error:
            declare(scene, "wrong", **given | row["spec"])
        assert "\n" not in str(error.value)
    for k, spec in enumerate(ROWS["taken_windows"]):
        declare(scene, f"fine-{k}", **given | spec)
    with scene.controller(FIFO):
        taken = [f"fine-{k}" for k in range(len(ROWS["taken_windows"]))]
        until(lambda: all(conditions(scene, name) for name in taken), "it has read them")
    said = {reason for name in taken for _, reason, _ in conditions(scene, name)}
    assert said == {"Accepted", "NoNode"}, "none is invalid"


def written(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_window_is_kept_and_says_so(cluster: Cluster) -> None:
    """What becomes of jobs before, in and after one: windows in scenarios.yaml."""
    scene = scene_of(cluster, {"n0": "worker", "n1": "worker", "p0": "ps"})
    now = int(time.time())
    during = {"begin": written(now + 40), "end": written(now + 54)}
    declare(scene, "firmware", **during, nodes=["n1"])
    declare(scene, "odd", **during, nodes=["n7"])
    kept = f"keeps node n1 from {during['begin']} until {during['end']}"
    lacks = "expected nodes with a role, found none of n7; nothing of it is done"
    with scene.controller(lambda: oasis.Recourse.rolling(80, rounds=3, keep_admitted=True)):
        scene.submit(scene.elastic("long", 2, 8, 600.0))
        until(lambda: scene.workers() == {"long": 8}, "it has both nodes", 6.0)
        until(lambda: conditions(scene, "firmware") == [("True", "Accepted", kept)], "told", 6.0)
        until(lambda: conditions(scene, "odd") == [("False", "NoNode", lacks)], "told, too", 6.0)
        columns = scene.plane.kubectl("get", "capacitywindows", "firmware", "--no-headers").split()
        assert columns[3:] == ['["n1"]', "True", "Accepted"]
        time.sleep(max(0.0, now + 40 - time.time()))
        there = {pod["spec"].get("nodeName") for pod in scene.pods() if not has_ended(pod)}
        assert "n1" not in there, "nor one that is ending"
        assert "n0" in there, "it goes on beside the window"


# -- the scheduler itself is asked -----------------------------------------------------------------


def add_nodes(cluster: Cluster, labels: dict[str, dict[str, str]]) -> None:
    nodes = cluster.plane.nodes
    for name, own in labels.items():
        nodes.add(name, {"cpu": "1000", "pods": "10000"}, own)
    nodes.wait_ready(*labels)
    for name, taints in ASKED.items():
        cluster.plane.kubectl("taint", "node", name, *taints)
    nodes.cordon(CORDONED)
    until(lambda: nodes.read(CORDONED)["spec"].get("taints"), "it is tainted")


def pod(name: str, rules: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod with these rules that may go to one node, if to any."""
    selector = rules.get("nodeSelector", {})
    own = {HOSTNAME: node, **selector} if isinstance(selector, dict) else selector
    containers = [{"name": "train", "image": "train"}]
    spec = {**rules, "nodeSelector": own, "containers": containers}
    return {"metadata": {"name": name}, "spec": spec}


def verdicts(cluster: Cluster) -> dict[str, str]:
    """By name of the pod, whether the scheduler admitted it; those that it has looked at."""
    said = {name: condition(made, "PodScheduled") for name, made in cluster.read().items()}
    return {name: "01"[found["status"] == "True"] for name, found in said.items() if found}


def test_the_scheduler_says_what_is_written_down(cluster: Cluster) -> None:
    """The rules of the controller are held against the same table (test_node_affinity.py)."""
    labels, templates = drawn()
    add_nodes(cluster, labels)
    expected = {}
    for k, (rules, row) in enumerate(zip(templates, VERDICTS, strict=True)):
        for name, admitted in zip(labels, row, strict=True):
            cluster.create(pod(f"t{k}-{name}", rules, name))
            expected[f"t{k}-{name}"] = admitted
    until(lambda: len(verdicts(cluster)) == len(expected), "it has looked at all pods", 180.0)
    assert verdicts(cluster) == expected


def test_the_api_server_refuses_rules_that_are_bad_input(cluster: Cluster) -> None:
    for spec, said in REFUSED:
        with pytest.raises(RefusedError) as caught:
            cluster.create(pod("bad", spec, "n0"))
        assert caught.value.status in (400, 422), said


def test_what_the_cluster_refuses_is_learnt(cluster: Cluster) -> None:
    """Anti-affinity to a pod on n0 sends a gang elsewhere; a job that is refused holds no room."""
    clock = Slots(slot_seconds=2.0)
    scene = scene_of(cluster, {"n0": "worker", "n1": "worker"}, clock=clock)
    container = {"name": "c", "image": "c"}
    meta = {"name": "db", "labels": {"app": "db"}}
    cluster.create({"metadata": meta, "spec": {"nodeName": "n0", "containers": [container]}})
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "db"}}}
    far = {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    never = {"priorityClassName": "is-not-there"}
    for name, spec, workers in (("never", never, 8), ("far", far, 4)):
        made = scene.rigid(name, workers, 2)
        made["spec"]["workers"]["template"]["spec"] |= spec
        scene.submit(made)
    with scene.controller(FIFO) as controller:
        until(lambda: scene.phases()["far"] == "Completed", "n1 is found", 60.0)
        status = scene.statuses()["never"]
        assert (status["phase"], told(status)["Placed"]["reason"]) == ("Pending", "PodsRefused")
        assert controller.metrics.withdrawn._value.get() <= 1
