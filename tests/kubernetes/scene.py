"""The adapter on a control plane: what is installed, nodes and jobs of an instance, controllers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

import oasis
from oasis.kubernetes.api.connection import Connection
from oasis.kubernetes.api.resources import Objects
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.settings import ControllerSettings
from tests.background import beside
from tests.kubernetes import names
from tests.kubernetes.cluster import Cluster, Object, is_running, pod, room
from tests.kubernetes.controlplane.api import PREFIXES
from tests.kubernetes.controlplane.plane import Account, ControlPlane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults import FaultPlan, FirstAnswers, let_meet
from tests.kubernetes.instance_objects import Slots, job_object, node_objects
from tests.kubernetes.names import API_VERSION, CONTROLLER, GPU, HOSTNAME, KIND, NODE_ROLE, SYSTEM

CLOCK = Slots(slot_seconds=4.0, startup_seconds=2.5)
ENDED = {"Completed", "Rejected", "GivenUp"}
EXAMPLE = Path(__file__).parents[2] / "docs/examples/congested.json"
OASIS = (sys.executable, "-m", "experiments.cli", "kubernetes")  # as a user types it


def answered(*words: str) -> str:
    """Output of a subcommand."""
    env = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run([*OASIS, *words], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def installed(*words: str) -> list[Object]:
    """The manifests that `oasis kubernetes install` prints."""
    return list(yaml.safe_load_all(answered("install", "--image=oasis", *words)))


def rights(namespace: str = SYSTEM, spaces: Sequence[str] = ()) -> list[Object]:
    """The roles of a controller, perhaps in some namespaces alone, and who has them."""
    within = (f"--namespaced={','.join(spaces)}",) if spaces else ()
    made = installed("--own", f"--system-namespace={namespace}", *within)
    return [body for body in made if "Role" in body["kind"]]


def shared() -> list[Object]:
    """The kinds, policies and roles that all controllers of a cluster have in common."""
    return [body for body in installed() if body not in installed("--own")]


class Scene:
    """Everything around the controllers of one test."""

    # Jobs are in `namespace`, leases and checkpoints of the name `name` in `SYSTEM`.
    def __init__(self, plane: ControlPlane, namespace: str, clock: Slots) -> None:
        self.plane, self.namespace, self.clock = plane, namespace, clock
        kinds = [made for made in shared() if made["kind"] == "CustomResourceDefinition"]
        plane.define(kinds)
        self.account: Account = plane.service_account(CONTROLLER, SYSTEM, rights())
        self.api = plane.api

    def add_nodes(self, cluster: oasis.Cluster, pool: str = "") -> None:
        """The servers of `cluster` as nodes, perhaps of a pool; waits until they are ready."""
        added = []
        for node in node_objects(cluster):
            name, labels = node["metadata"]["name"], node["metadata"]["labels"]
            if pool:
                name = f"{pool}-{name}"
                labels |= {HOSTNAME: name, "pool": pool}
            self.plane.nodes.add(name, node["status"]["allocatable"], labels)
            added.append(name)
        self.plane.nodes.wait_ready(*added)

    def job(self, job: oasis.Job, slot_seconds: float, **spec: Any) -> dict[str, Any]:
        made = job_object(job, self.clock, slot_seconds=slot_seconds, namespace=self.namespace)
        made["spec"] |= spec
        return made

    def submit(self, made: Object) -> Object:
        return self.api.create("oasisjobs", made, self.namespace)

    def statuses(self) -> dict[str, Object]:
        items = self.api.items("oasisjobs", self.namespace)
        return {item["metadata"]["name"]: item.get("status") or {} for item in items}

    def phases(self) -> dict[str, str]:
        return {name: status.get("phase", "") for name, status in self.statuses().items()}

    @contextmanager
    def controller(self, policy: Callable[[], Any], **given: Any) -> Iterator[Controller]:
        """A controller in a thread, with the shipped rights alone; it is stopped at the end."""
        made = self.make(policy, **given)
        with beside(lambda _: made.run(), made.stop, within=60.0):
            yield made

    def make(
        self,
        policy: Callable[[], Any],
        *,
        identity: str = "one",
        params: Mapping[str, float] | None = None,
        faults: FaultPlan | FirstAnswers | None = None,
        now: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Controller:
        connection, clock = Connection.open(str(self.account.kubeconfig())), self.clock
        connection.params = replace(connection.params, **(params or {}))
        if faults is not None:
            let_meet(connection, faults)
        given = {"namespace": SYSTEM, "name": self.namespace, "watched": self.namespace}
        given |= {"slot_seconds": clock.slot_seconds, "startup_seconds": clock.startup_seconds}
        given |= {"lease_seconds": 3.0, "first_slot_at": clock.epoch or None} | settings
        chosen = ControllerSettings(**given)
        return Controller(Objects(connection), policy, chosen, identity, now=now)

    def command(self, *words: str) -> list[str]:
        """`oasis kubernetes run` with these words, as its owner starts it."""
        clock = self.clock
        return [
            *(*OASIS, "run", *words),
            *("--slot-seconds", f"{clock.slot_seconds:g}"),
            *("--startup-seconds", f"{clock.startup_seconds:g}"),
            *("--system-namespace", SYSTEM, "--controller-name", self.namespace),
            *("--namespace", self.namespace, "--kubeconfig", str(self.account.kubeconfig())),
        ]

    def imported(self, *words: str) -> oasis.Instance:
        """The cluster as `oasis kubernetes import` writes it."""
        slots = ["--slot-seconds", f"{self.clock.slot_seconds:g}"]
        slots += ["--startup-seconds", f"{self.clock.startup_seconds:g}"]
        with TemporaryDirectory() as folder:
            file = Path(folder) / "now.json"
            self.call("import", "-o", str(file), *slots, *words)
            return oasis.read(file)

    def pods(self, prefix: str = "") -> list[dict[str, Any]]:
        """Pods of anybody whose names begin so."""
        found = self.api.items("pods", self.namespace)
        return [pod for pod in found if pod["metadata"]["name"].startswith(prefix)]

    def our_pods(self) -> dict[str, Object]:
        """Pods of OasisJobs by name."""
        ours = self.api.items("pods", self.namespace, labelSelector=names.JOB_UID)
        return {pod["metadata"]["name"]: pod for pod in ours}

    # -- what owners and operators do --------------------------------------------------------------

    def rigid(self, name: str, workers: int, slots: float, **spec: Any) -> dict[str, Any]:
        """A job of `workers` workers with a GPU each that runs for `slots` slots."""
        seconds = workers * slots * self.clock.work_seconds
        return self.elastic(name, workers, workers, seconds, **spec)

    def elastic(
        self, name: str, minimum: int, maximum: int, seconds: float, **spec: Any
    ) -> dict[str, Any]:
        """A job of `minimum` to `maximum` workers with a GPU each and `seconds` of work."""
        template = {"spec": pod(name, 1)["spec"]}
        own: Object = {"utility": {"kind": "constant", "value": 10}, "gracePeriodSeconds": 0}
        own |= {"work": {"workerSeconds": seconds}, "completion": "work"}  # no pod ends by itself
        own["workers"] = {"minimum": minimum, "maximum": maximum, "template": template}
        meta = {"name": name, "namespace": self.namespace}
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": own | spec}

    def delete(self, name: str) -> None:
        self.api.delete("oasisjobs", name, self.namespace)

    def edit(self, name: str, spec: dict[str, Any]) -> None:
        self.api.patch("oasisjobs", name, self.namespace, spec=spec)

    def call(self, *words: str) -> str:
        """Run a subcommand as the admin; its output."""
        return answered(*words, "--kubeconfig", str(self.plane.admin.kubeconfig()))

    # -- what comes of it --------------------------------------------------------------------------

    def wait(self, phases: dict[str, str], within: float = 90.0) -> None:
        until(lambda: self.phases().items() >= phases.items(), f"phases {phases}", within)

    def all_ended(self) -> bool:
        return all(phase in ENDED for phase in self.phases().values())

    def wait_ended(self, within: float = 120.0) -> dict[str, str]:
        until(self.all_ended, "all jobs have ended", within)
        return self.phases()

    def running(self) -> list[dict[str, Any]]:
        return [pod for pod in self.our_pods().values() if is_running(pod)]

    def workers(self) -> dict[str, int]:
        """Running pods of each job, by name of the job."""
        return Counter(pod["metadata"]["ownerReferences"][0]["name"] for pod in self.running())


def scene_of(
    cluster: Cluster, nodes: int | Mapping[str, str] = 2, gpus: int = 4, clock: Slots = CLOCK
) -> Scene:
    """A scene with nodes that take tasks of both kinds, or with these: a role by name."""
    found = Scene(cluster.plane, cluster.namespace, clock)
    if isinstance(nodes, int):
        nodes = dict.fromkeys((f"n{k}" for k in range(nodes)), "both")
    for name, role in nodes.items():
        cluster.plane.nodes.add(name, room(gpus), {NODE_ROLE: role})
    cluster.plane.nodes.wait_ready(*nodes)
    return found


# -- jobs of other kinds, each named by its plural -------------------------------------------------

JOB, JOBSET, TRAINJOB = "jobs", "jobsets", "trainjobs"
KINDS = {JOB: "Job", JOBSET: "JobSet", TRAINJOB: "TrainJob"}


def template(lasts: str | None = None, *, gate: str = names.GATE) -> Object:
    """Gated pods of one GPU that succeed after the time `lasts`, such as "6s"."""
    resources = {"requests": {"cpu": "1"}, "limits": {GPU: "1"}}
    notes = {} if lasts is None else {"oasis.test/succeeds-after": lasts}
    return {
        "metadata": {"annotations": notes},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "schedulingGates": [{"name": gate}],
            "containers": [{"name": "train", "image": "train", "resources": resources}],
        },
    }


def head(plural: str) -> Object:
    return {"apiVersion": PREFIXES[plural].removeprefix("/apis/"), "kind": KINDS[plural]}


def marked(
    scene: Scene, plural: str, name: str, spec: Object, seconds: float = 20.0, **notes: str
) -> Object:
    """An object that is ours, suspended; `notes` are annotations by the names in `names`."""
    said = {"UTILITY": '{"kind": "constant", "value": 10}'}
    said["WORK"] = json.dumps({"workerSeconds": seconds})
    meta: Object = {"name": name, "namespace": scene.namespace, "labels": {}}
    meta["labels"][names.SCHEDULED] = "true"
    meta["annotations"] = {getattr(names, key): text for key, text in (said | notes).items()}
    return {**head(plural), "metadata": meta, "spec": {"suspend": True, **spec}}


def job_spec(workers: int, lasts: str | None = None, **more: Any) -> Object:
    return {"parallelism": workers, "template": template(lasts), **more}


def replicated(name: str, pods: int, lasts: str) -> Object:
    spec = {"parallelism": pods, "completions": pods, "template": template(lasts)}
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def make(scene: Scene, plural: str, body: Object) -> Object:
    return scene.api.create(plural, body, scene.namespace)


def read(scene: Scene, plural: str, name: str) -> Object:
    found = scene.api.get(plural, name, scene.namespace)
    assert found is not None
    return found


def status(scene: Scene, plural: str, name: str) -> Object:
    notes = read(scene, plural, name)["metadata"].get("annotations") or {}
    return json.loads(notes.get(names.STATUS) or "{}")  # type: ignore[no-any-return]


def runtime(nodes: int, lasts: str) -> Object:
    """A ClusterTrainingRuntime of so many nodes with a GPU each."""
    text = Path(__file__).with_name("runtime.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text.replace("$NODES", str(nodes)).replace("$LASTS", lasts))  # type: ignore[no-any-return]
