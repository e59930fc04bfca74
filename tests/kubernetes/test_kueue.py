"""Beside the real Kueue, which keeps quotas and makes the pods: ``make kubernetes-kueue``."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

import oasis
from baselines import FIFO, SRTF
from experiments.evaluation.live import cluster_policy
from experiments.evaluation.policies import POLICIES
from oasis.kubernetes import names
from oasis.kubernetes.api.resources import NODES, PODS
from oasis.kubernetes.cluster.nodes import Machines, instance_of
from oasis.kubernetes.cluster.pods import has_ended, is_ending
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.objects.conditions import said
from oasis.kubernetes.objects.existing import (
    JOB,
    JOBSET,
    TRAINJOB,
    WORKLOAD,
    ExistingKind,
    parse,
)
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from oasis.kubernetes.objects.workload import GATED_BY, LOCAL_QUEUES, WORKLOADS, kept
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.audit import denied
from tests.kubernetes.controlplane.owners import Kueue
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene, make, read, runtime, scene_of, told
from tests.kubernetes.scene import status as status_of
from tests.kubernetes.stepped import Stepped
from tests.kubernetes.tutorial.page import CHART

pytestmark = pytest.mark.nightly  # to build Kueue takes ten minutes of processor time
Object = dict[str, Any]
CLOCK = SlotClock(slot_seconds=4.0, startup_seconds=2.5)
HORIZON = 150
STOPS = "oasis.test/stops-after"


@pytest.fixture
def scene(cluster: Cluster, kueue: Kueue) -> Scene:
    """Eight nodes of eight GPUs, the queues of two teams, and our gates on what is in ours."""
    found = scene_of(cluster, {f"n{k}": "worker" for k in range(8)}, 8, CLOCK)
    queues = Path(__file__).with_name("queues.yaml").read_text(encoding="utf-8")
    policies = (CHART / "kueue.yaml").read_text(encoding="utf-8")
    for text in (queues.replace("$NAMESPACE", found.namespace), policies):
        cluster.plane.apply(yaml.safe_load_all(text))

    def is_gated() -> bool:
        path, body = JOB.where.path(found.namespace), body_of(found, JOB, "try", 1, 1, 1.0)
        made = found.admin.connection.request("POST", path, body=body, query={"dryRun": "All"})
        return "schedulingGates" in made["spec"]["template"]["spec"]

    until(is_gated, "the policies are in force")
    return found


def body_of(
    scene: Scene,
    kind: ExistingKind,
    name: str,
    workers: int,
    gpus: int,
    slots: float,
    worth: float = 100.0,
    queue: str = "oasis",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Object:
    """A plain object in a queue; on its pods stand what its job is worth, and its work."""
    clock = scene.clock
    target, decay = 2 * slots * clock.slot_seconds, 0.2 / clock.slot_seconds
    utility = {"kind": "sigmoid", "priority": worth, "targetSeconds": target}
    utility["decayPerSecond"] = decay
    work = {"workerSeconds": workers * slots * clock.work_seconds}
    notes = {names.UTILITY: json.dumps(utility), names.WORK: json.dumps(work), **more}
    container = {"name": "train", "image": "train", "resources": {"limits": {GPU: str(gpus)}}}
    grace = 30 if STOPS in more else 0
    pod: Object = {"restartPolicy": "Never", "terminationGracePeriodSeconds": grace}
    pod["containers"] = [container]
    spec: Object = {"parallelism": workers, "completions": workers, "backoffLimit": 0}
    spec["completionMode"] = "Indexed"
    spec["template"] = {"metadata": {"annotations": notes}, "spec": pod}
    if kind is JOBSET:
        spec = {"replicatedJobs": [{"name": "worker", "template": {"spec": spec}}]}
    meta = {"name": name, "namespace": scene.namespace, "labels": {names.QUEUE: queue}}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}


def submit(scene: Scene, name: str, workers: int, gpus: int, **more: Any) -> Object:
    return make(scene, JOB, body_of(scene, JOB, name, workers, gpus, 1000.0, **more))


def workloads(scene: Scene) -> dict[str, Object]:
    found, _ = scene.admin.list_all(WORKLOADS, scene.namespace, kept=kept)
    return {item["metadata"]["ownerReferences"][0]["name"]: item for item in found}


def status(scene: Scene, name: str) -> Object:
    notes = workloads(scene).get(name, {"metadata": {"annotations": {}}})["metadata"]["annotations"]
    return json.loads(notes.get(names.STATUS) or "{}")  # type: ignore[no-any-return]


def running(scene: Scene, name: str) -> dict[str, str]:
    """Node of each running pod of a job, by the uid of the pod."""
    return {
        pod["metadata"]["uid"]: pod["spec"]["nodeName"]
        for pod in scene.pods(f"{name}-")
        if pod["status"]["phase"] == "Running" and not is_ending(pod)
    }


def end(scene: Scene, pods: Iterable[Object]) -> None:
    """Let pods succeed; those of a watch may be gone from the server already."""
    there = {pod["metadata"]["uid"] for pod in scene.pods("")}
    for pod in pods:
        if pod["metadata"]["uid"] in there and not has_ended(pod):
            body = {"metadata": pod["metadata"], "status": {"phase": "Succeeded"}}
            scene.admin.merge_patch(PODS, body, "status")


class Kueued(Stepped):
    """A controller on the clock of its pods; a job whose work is done ends with its slot."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.made: dict[str, str] = {}  # uid of each Workload, by that of its owner

    def submit(self, body: Object) -> None:
        kind = JOBSET if body["kind"] == "JobSet" else JOB
        uid = make(self._scene, kind, body)["metadata"]["uid"]
        until(lambda: uid in self.owners(), f"Kueue sees {body['metadata']['name']}")
        self.made[uid] = self.owners()[uid]["metadata"]["uid"]

    def owners(self) -> dict[str, Object]:
        items = self.controller.stores[WORKLOADS.plural].items()
        return {item["metadata"]["ownerReferences"][0]["uid"]: item for item in items}

    def begin_next(self, reconciler: Reconciler) -> None:
        """Let end what has done its work by the end of this slot."""
        stores = {name: store.items() for name, store in self.controller.stores.items()}
        over = []
        for uid, entry in reconciler.live.items():
            done = reconciler.done.get(uid, 0.0) + entry.allocation.worker_count
            if entry.allocation.workers and done >= entry.work - 1e-6:
                over.append(uid)
                end(self._scene, Seen(stores).pods[uid].values())

        def have_ended() -> bool:
            return all(said(self.owners()[uid], "Finished").get("status") == "True" for uid in over)

        until(have_ended, "they end")
        super().begin_next(reconciler)


def twelve(scene: Scene) -> list[tuple[int, Object]]:
    """Nine Jobs, of which three may be resized, and three JobSets, one a slot."""
    rng, made = random.Random(7), []
    for k in range(12):
        size = rng.choice([(8, 4), (4, 8), (3, 8), (8, 2), (2, 8), (6, 4), (4, 4)])
        slots, worth = rng.choice([4, 8, 12, 20]), rng.choice([50, 100, 200])
        kind = JOBSET if k % 4 == 3 else JOB
        most = size[0]
        bounds = {names.MINIMUM: str(most // 2), names.MAXIMUM: str(most)} if k % 4 == 1 else {}
        body = body_of(scene, kind, f"t{k:02d}", *size, slots, worth, more=bounds)
        made.append((k, body))
    return made


@pytest.mark.parametrize("name", ["srtf", "recourse"])
def test_twelve_jobs_run_as_in_the_simulator(name: str, scene: Scene, kueue: Kueue) -> None:
    begin = scene.plane.audit_position()
    jobs: list[tuple[int, Object]] = []

    def arrivals(slot: int) -> list[Object]:
        jobs[:] = jobs or twelve(scene)  # by the clock of the controller
        if slot == 6 and name == "srtf":  # what is planned meanwhile starts when it is back
            kueue.kill()
            kueue.start()
        return [body for arrival, body in jobs if arrival == slot]

    def over(reconciler: Reconciler) -> bool:
        phases = [status.phase for status in reconciler.statuses.values()]
        return len(phases) == len(jobs) and set(phases) == {"Completed"}

    policy = cluster_policy(name, {}, lookahead=HORIZON, horizon=HORIZON)
    stepped = Kueued(scene, policy, arrivals, over, horizon=HORIZON)
    stepped.run()
    now = {uid: item["metadata"]["uid"] for uid, item in stepped.owners().items()}
    assert stepped.made.items() <= now.items(), "none was made anew"
    found = {kind.plural: scene.admin.list_all(kind)[0] for kind in (LOCAL_QUEUES, NODES)}
    seen = Seen({**found, WORKLOADS.plural: list(workloads(scene).values())})
    by_name = {item["metadata"]["ownerReferences"][0]["name"]: item for _, item in seen.jobs}
    there = {job: status(scene, job)["completionSlot"] for job in by_name}
    specs = [
        (parse(by_name[f"t{slot:02d}"], WORKLOAD, scene.clock, DEFAULT_RESOURCES), slot)
        for slot in range(12)
    ]
    machines = Machines.of(seen, DEFAULT_RESOURCES, None, scene.clock.work_seconds)
    instance = instance_of(specs, machines.site, HORIZON, {})
    run = oasis.simulate(instance, POLICIES[name].make(instance))
    here = {d.job_id.rpartition("/")[2].split("-")[1]: d.completion for d in run.decisions}
    assert there == here
    resized = {job for job in by_name if "resizes" in status(scene, job)}
    assert resized or name == "srtf"
    assert not denied(scene.plane.requests(scene.account, begin))


# -- between two teams -----------------------------------------------------------------------------


def test_the_plan_follows_quota_that_is_borrowed_and_reclaimed(scene: Scene) -> None:
    with scene.controller(SRTF):
        for name, workers in (("a1", 2), ("a2", 2), ("a3", 4)):
            submit(scene, name, workers, 8)
        mine = {"a1": 2, "a2": 2, "a3": 4}
        until(lambda: {n: len(running(scene, n)) for n in mine} == mine, "all 64 GPUs are used")
        submit(scene, "b1", 4, 8, queue="theirs")
        until(lambda: len(running(scene, "b1")) == 4, "the other team has its own back")

        def is_told() -> bool:
            told_of = {name: status(scene, name)["workers"] for name in mine}
            runs = {name: len(running(scene, name)) for name in mine}
            return told_of == runs and sum(runs.values()) == 4

        until(is_told, "the plan is what runs, and it is within the quota")
        submit(scene, "a4", 1, 8)
        until(lambda: "phase" in status(scene, "a4"), "it is read")
        assert workloads(scene)["a4"]["spec"]["queueName"] == "oasis", "it is not even tried"
        scene.plane.kubectl("delete", "job", "b1", f"--namespace={scene.namespace}")
        until(lambda: sum(len(running(scene, n)) for n in mine) == 8, "they have it again")


def test_pods_go_where_others_leave_room_and_a_killed_controller_goes_on(
    scene: Scene, kueue: Kueue, tmp_path: Path
) -> None:
    submit(scene, "b2", 4, 8, queue="theirs")
    until(lambda: len(running(scene, "b2")) == 4, "others are there")
    taken = set(running(scene, "b2").values())
    words = scene.command("--policy", "fifo")
    with (tmp_path / "log").open("w") as log:
        with subprocess.Popen(words, stderr=log) as process:
            submit(scene, "a5", 2, 8)
            until(lambda: len(running(scene, "a5")) == 2, "it runs elsewhere")
            before = running(scene, "a5")
            assert not taken & set(before.values())
            process.kill()
        kueue.kill()
        kueue.start()
        submit(scene, "a6", 2, 8)
        with subprocess.Popen(words, stderr=log) as process:
            until(lambda: len(running(scene, "a6")) == 2, "and the next beside it")
            assert running(scene, "a5") == before, "nothing was moved"
            process.kill()


def test_a_job_whose_workload_is_made_anew_goes_on(scene: Scene) -> None:
    """Kueue does so where a Job is stopped and changed, and its Workload has quota still."""
    with scene.controller(FIFO):
        submit(scene, "a7", 4, 8)
        until(lambda: len(running(scene, "a7")) == 4, "it runs")
        before, arrived = workloads(scene)["a7"]["metadata"], status(scene, "a7")["arrivalSlot"]
        change = {"metadata": {"name": "a7", "namespace": scene.namespace}}
        spec = {"parallelism": 2, "completions": 2, "suspend": True}
        scene.admin.merge_patch(JOB.where, {**change, "spec": spec})
        until(lambda: len(running(scene, "a7")) == 2, "it runs as it was changed")
        until(lambda: status(scene, "a7").get("phase") == "Running", "it says so")
        after = workloads(scene)["a7"]["metadata"]
        assert (after["name"], status(scene, "a7")["arrivalSlot"]) == (before["name"], arrived)
        assert after["uid"] != before["uid"]


@pytest.mark.parametrize("timeout", ["60s", "2s"])
def test_a_gang_stands_at_our_gate_until_slow_pods_are_gone(
    timeout: str, scene: Scene, kueue: Kueue
) -> None:
    """Kueue's quota is free before the nodes are; if Kueue waits for less, it starts anew."""
    evicted = set()

    def runs() -> bool:
        taken = {pod["spec"].get("nodeName") for pod in scene.pods("slow-")}
        assert not taken & set(running(scene, "quick").values())
        evicted.add(said(workloads(scene)["quick"], "Evicted").get("reason", ""))
        return len(running(scene, "quick")) == 8

    again = {"backoffBaseSeconds": 1, "backoffMaxSeconds": 1}
    ready = {"timeout": timeout, "requeuingStrategy": again}
    with kueue.configured(waitForPodsReady=ready), scene.controller(SRTF):
        submit(scene, "slow", 8, 8, more={STOPS: "6s"})
        until(lambda: len(running(scene, "slow")) == 8, "it runs")
        make(scene, JOB, body_of(scene, JOB, "quick", 8, 8, 10.0))
        until(lambda: "quick" in workloads(scene), "Kueue sees it")
        until(runs, "it runs when the others are gone")
    assert ("PodsReadyTimeout" in evicted) == (timeout == "2s")


def test_our_name_is_taken_off_the_admission_gate(scene: Scene, kueue: Kueue) -> None:
    def make_gated(name: str, *gates: str) -> None:
        body = body_of(scene, JOB, name, 2, 8, 1000.0, queue="oasis-started")
        body["metadata"]["annotations"] = {GATED_BY: ",".join((*gates, names.GATE))}
        body["spec"]["template"]["spec"]["schedulingGates"] = [{"name": names.GATE}]
        make(scene, JOB, body)

    with kueue.configured(featureGates={"VisibilityOnDemand": False, "AdmissionGatedBy": True}):
        make_gated("g1")
        make_gated("g2", "them.io/gate")
        until(lambda: workloads(scene).keys() >= {"g1", "g2"}, "Kueue sees them")
        assert said(workloads(scene)["g1"], "QuotaReserved")["reason"] == "AdmissionGated"
        with scene.controller(FIFO):
            until(lambda: len(running(scene, "g1")) == 2, "it runs")
            left = read(scene, JOB, "g2")["metadata"]["annotations"][GATED_BY]
            assert (left, running(scene, "g2")) == ("them.io/gate", {})


@pytest.mark.usefixtures("owners")
def test_a_train_job_has_the_nodes_of_its_runtime(scene: Scene) -> None:
    made, slots = runtime(4, "600s"), 1000.0
    (part,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    notes = body_of(scene, JOB, "", 4, 1, slots)["spec"]["template"]["metadata"]["annotations"]
    template = part["template"]["spec"]["template"]
    template["metadata"]["annotations"] |= notes
    template["spec"]["containers"][0]["resources"] = {"limits": {GPU: "1"}}  # as there is quota for
    made["metadata"]["name"] = "queued"
    scene.plane.apply([made])
    meta = {"name": "train", "namespace": scene.namespace, "labels": {names.QUEUE: "oasis"}}
    body = {"apiVersion": TRAINJOB.api_version, "kind": "TrainJob", "metadata": meta}
    begin = scene.plane.audit_position()
    with scene.controller(SRTF):
        make(scene, TRAINJOB, {**body, "spec": {"runtimeRef": {"name": "queued"}}})
        until(lambda: len(running(scene, "train")) == 4, "it runs")
        make(scene, JOB, body_of(scene, JOB, "quick", 8, 8, 10.0))
        until(lambda: len(running(scene, "quick")) == 8, "it makes way")
        assert not workloads(scene)["train"]["spec"]["active"]
        end(scene, scene.pods("quick-"))
        until(lambda: len(running(scene, "train")) == 4, "it goes on")
        end(scene, scene.pods("train-"))
        until(lambda: status(scene, "train").get("phase") == "Completed", "it ends")
    assert not denied(scene.plane.requests(scene.account, begin))


def test_a_job_that_both_would_manage_is_left_alone(scene: Scene) -> None:
    with scene.controller(FIFO):
        both = {"k1": ("oasis", 4), "k3": ("theirs", 4), "k4": ("theirs", 16)}  # k4 over quota
        for name, (queue, workers) in both.items():
            body = body_of(scene, JOB, name, workers, 4, 10.0, queue=queue)
            body["metadata"]["labels"][names.SCHEDULED] = "true"
            body["spec"]["suspend"] = True
            make(scene, JOB, body)
        begun = time.monotonic()
        runs = submit(scene, "k2", 1, 1)
        until(lambda: running(scene, "k2"), "another one runs")
        item = workloads(scene)["k2"]
        meta = {name: item["metadata"][name] for name in ("name", "namespace", "uid")}
        scene.admin.merge_patch(WORKLOADS, {"metadata": meta, "spec": {"active": False}})
        until(lambda: not running(scene, "k2"), "somebody stops it")
        until(lambda: told(status(scene, "k2"))["Placed"]["reason"] == "LeftAlone", "it says so")
        assert workloads(scene)["k2"]["spec"]["active"] is False
        generation = read(scene, JOB, "k2")["metadata"]["generation"]
        assert generation <= runs["metadata"]["generation"] + 3
        until(lambda: time.monotonic() > begun + 60.0, "a minute is over", 60.0)
        for name in both:
            reason = told(status_of(scene, JOB, name))["Valid"]["message"]
            assert "its Workload is scheduled here if" in reason
            assert read(scene, JOB, name)["metadata"]["generation"] < 3
