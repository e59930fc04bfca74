"""The adapter on a control plane: what is installed, nodes and jobs of an instance, controllers."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

import oasis
from experiments.cli.main import main
from oasis.kubernetes import names
from oasis.kubernetes.api.connection import Connection, RetryParams
from oasis.kubernetes.api.resources import OASIS_JOBS, PODS, Objects
from oasis.kubernetes.cluster.pods import is_ending
from oasis.kubernetes.cluster.seen import Seen
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.names import API_VERSION, FIELD_MANAGER, HOSTNAME, KIND, NODE_ROLE, PLURAL
from oasis.kubernetes.objects.existing import ExistingKind
from oasis.kubernetes.objects.manifests import own, shared
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.background import beside
from tests.kubernetes.cluster import GPU, Cluster, pod, room
from tests.kubernetes.controlplane.plane import Account, ControlPlane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.faults import FaultPlan, let_meet
from tests.kubernetes.instance_objects import job_object, node_objects
from tests.unit.kubernetes.played import job
from tests.unit.kubernetes.test_existing_jobs import made

CLOCK = SlotClock(slot_seconds=4.0, startup_seconds=2.5)
ENDED = {"Completed", "Rejected", "GivenUp"}
EXAMPLE = Path(__file__).parents[2] / "docs/examples/congested.json"
SYSTEM = "oasis-system"


def rights(namespace: str = SYSTEM, spaces: Sequence[str] = ()) -> list[dict[str, Any]]:
    return [made for made in own(namespace, spaces=spaces) if "Role" in made["kind"]]


def told(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {condition["type"]: condition for condition in status.get("conditions") or ()}


class Scene:
    """Everything around the controllers of one test."""

    # Jobs are in `namespace`, leases and checkpoints of the name `name` in `SYSTEM`.
    def __init__(self, plane: ControlPlane, namespace: str, clock: SlotClock) -> None:
        self.plane, self.namespace, self.clock = plane, namespace, clock
        kinds = [made for made in shared() if made["kind"] == "CustomResourceDefinition"]
        plane.define(kinds)
        self.account: Account = plane.service_account(FIELD_MANAGER, SYSTEM, rights())
        self.admin = plane.objects

    def settings(self, **more: Any) -> ControllerSettings:
        given = {
            "namespace": SYSTEM,
            "name": self.namespace,
            "slot_seconds": self.clock.slot_seconds,
            "startup_seconds": self.clock.startup_seconds,
            "watched": self.namespace,
            "lease_seconds": 3.0,
            "first_slot_at": self.clock.epoch or None,
        }
        return ControllerSettings(**(given | more))

    def add_nodes(self, cluster: oasis.Cluster, pool: str = "") -> None:
        """The servers of `cluster` as nodes, perhaps of a pool; waits until they are ready."""
        names = []
        for node in node_objects(cluster):
            name, labels = node["metadata"]["name"], node["metadata"]["labels"]
            if pool:
                name = f"{pool}-{name}"
                labels |= {HOSTNAME: name, "pool": pool}
            self.plane.nodes.add(name, node["status"]["allocatable"], labels)
            names.append(name)
        self.plane.nodes.wait_ready(*names)

    def job(self, job: oasis.Job, slot_seconds: float, **spec: Any) -> dict[str, Any]:
        made = job_object(job, self.clock, slot_seconds=slot_seconds, namespace=self.namespace)
        made["spec"] |= spec
        return made

    def submit(self, made: dict[str, Any]) -> dict[str, Any]:
        return self.admin.connection.request(
            "POST", OASIS_JOBS.path(self.namespace), body=made, query={"fieldManager": "owner"}
        )

    def statuses(self) -> dict[str, dict[str, Any]]:
        items, _ = self.admin.list_all(OASIS_JOBS, self.namespace)
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
        params: RetryParams | None = None,
        faults: FaultPlan | None = None,
        now: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Controller:
        connection = Connection.open(str(self.account.kubeconfig()), params=params)
        if faults is not None:
            let_meet(connection, faults)
        return Controller(Objects(connection), policy, self.settings(**settings), identity, now=now)

    def command(self, *words: str) -> list[str]:
        """`oasis kubernetes run` with these words, as its owner starts it."""
        clock = self.clock
        return [
            *(sys.executable, "-m", "experiments.cli", "kubernetes", "run", *words),
            *("--slot-seconds", f"{clock.slot_seconds:g}"),
            *("--startup-seconds", f"{clock.startup_seconds:g}"),
            *("--system-namespace", SYSTEM, "--controller-name", self.namespace),
            *("--namespace", self.namespace, "--kubeconfig", str(self.account.kubeconfig())),
        ]

    def pods(self, prefix: str = "") -> list[dict[str, Any]]:
        """Pods of anybody whose names begin so."""
        found = self.admin.list_all(PODS, self.namespace)[0]
        return [pod for pod in found if pod["metadata"]["name"].startswith(prefix)]

    def our_pods(self) -> dict[str, dict[str, Any]]:
        """Pods of the adapter by uid of their job."""
        jobs, _ = self.admin.list_all(OASIS_JOBS, self.namespace)
        return Seen({PLURAL: jobs, "pods": self.pods()}).pods

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
        made = job(name, minimum=minimum, maximum=maximum, template=template)
        made["metadata"]["namespace"] = self.namespace
        own = {"utility": {"kind": "constant", "value": 10}, "work": {"workerSeconds": seconds}}
        return {"apiVersion": API_VERSION, "kind": KIND, **made, "spec": made["spec"] | own | spec}

    def delete(self, name: str) -> None:
        self.admin.connection.request("DELETE", OASIS_JOBS.path(self.namespace, name))

    def edit(self, name: str, spec: dict[str, Any]) -> None:
        meta = {"name": name, "namespace": self.namespace}
        self.admin.merge_patch(OASIS_JOBS, {"metadata": meta, "spec": spec})

    def call(self, *words: str, code: int = 0) -> str:
        """Run a subcommand as the admin, in this process, that ends with `code`; its output."""
        where = ("--kubeconfig", str(self.plane.admin.kubeconfig()))
        out, err = io.StringIO(), io.StringIO()
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            patch.dict(os.environ, COLUMNS="200"),
            pytest.raises(SystemExit) as ended,
        ):
            main(["kubernetes", *words, *where])
        assert ended.value.code == code, err.getvalue()
        return out.getvalue()

    # -- what comes of it --------------------------------------------------------------------------

    def wait(self, phases: dict[str, str], within: float = 90.0) -> None:
        until(lambda: self.phases().items() >= phases.items(), f"phases {phases}", within)

    def all_ended(self) -> bool:
        return all(phase in ENDED for phase in self.phases().values())

    def wait_ended(self, within: float = 120.0) -> dict[str, str]:
        until(self.all_ended, "all jobs have ended", within)
        return self.phases()

    def running(self) -> list[dict[str, Any]]:
        pods = [pod for pods in self.our_pods().values() for pod in pods.values()]
        return [p for p in pods if p["status"]["phase"] == "Running" and not is_ending(p)]

    def workers(self) -> dict[str, int]:
        """Running pods of each job, by name of the job."""
        return Counter(pod["metadata"]["ownerReferences"][0]["name"] for pod in self.running())


def scene_of(
    cluster: Cluster, nodes: int | Mapping[str, str] = 2, gpus: int = 4, clock: SlotClock = CLOCK
) -> Scene:
    """A scene with nodes that take tasks of both kinds, or with these: a role by name."""
    found = Scene(cluster.plane, cluster.namespace, clock)
    if isinstance(nodes, int):
        nodes = dict.fromkeys((f"n{k}" for k in range(nodes)), "both")
    for name, role in nodes.items():
        cluster.plane.nodes.add(name, room(gpus), {NODE_ROLE: role})
    cluster.plane.nodes.wait_ready(*nodes)
    return found


Object = dict[str, Any]


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


def marked(
    scene: Scene, kind: ExistingKind, name: str, spec: Object, seconds: float = 20.0, **notes: str
) -> Object:
    """An object that is ours, suspended; `notes` are annotations by the names in `names`."""
    said = {"WORK": json.dumps({"workerSeconds": seconds})}
    said["UTILITY"] = json.dumps({"kind": "constant", "value": 10})
    found = made(spec, **said | notes)
    meta = {**found["metadata"], "name": name, "namespace": scene.namespace, "uid": None}
    return {"apiVersion": kind.api_version, "kind": kind.name, **found, "metadata": meta}


def job_spec(workers: int, lasts: str | None = None, **more: Any) -> Object:
    return {"parallelism": workers, "template": template(lasts), **more}


def replicated(name: str, pods: int, lasts: str) -> Object:
    spec = {"parallelism": pods, "completions": pods, "template": template(lasts)}
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def make(scene: Scene, kind: ExistingKind, body: Object) -> Object:
    path = kind.where.path(scene.namespace)
    return scene.admin.connection.request("POST", path, body=body, query={"fieldManager": "owner"})


def read(scene: Scene, kind: ExistingKind, name: str) -> Object:
    found = scene.admin.get(kind.where, name, scene.namespace)
    assert found is not None
    return found


def status(scene: Scene, kind: ExistingKind, name: str) -> Object:
    notes = read(scene, kind, name)["metadata"].get("annotations") or {}
    return json.loads(notes.get(names.STATUS) or "{}")


def runtime(nodes: int, lasts: str) -> Object:
    """A ClusterTrainingRuntime of so many nodes with a GPU each."""
    text = Path(__file__).with_name("runtime.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text.replace("$NODES", str(nodes)).replace("$LASTS", lasts))  # type: ignore[no-any-return]
