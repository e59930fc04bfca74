"""The adapter on a control plane: what is installed, nodes and jobs of an instance, controllers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oasis
from oasis.kubernetes.api.connection import Connection, RetryParams
from oasis.kubernetes.api.resources import OASIS_JOBS, PODS, Objects
from oasis.kubernetes.cluster.pods import by_job
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.settings import ControllerSettings
from oasis.kubernetes.names import FIELD_MANAGER, HOSTNAME, PLURAL
from oasis.kubernetes.objects.manifests import own, shared
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.background import beside
from tests.kubernetes.controlplane.access import Account
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.faults import FaultPlan, let_meet
from tests.kubernetes.instance_objects import job_object, node_objects

EXAMPLE = Path(__file__).parents[2] / "docs/examples/congested.json"
SYSTEM = "oasis-system"


def rights(namespace: str = SYSTEM, spaces: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The shipped rights of a controller."""
    return [made for made in own(namespace, spaces=spaces) if "Role" in made["kind"]]


def told(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Conditions by type."""
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
        """Those of the controllers here."""
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
        """The object of a job of an instance."""
        made = job_object(job, self.clock, slot_seconds=slot_seconds, namespace=self.namespace)
        made["spec"] |= spec
        return made

    def submit(self, made: dict[str, Any]) -> dict[str, Any]:
        """Make an object as its owner would."""
        return self.admin.connection.request(
            "POST", OASIS_JOBS.path(self.namespace), body=made, query={"fieldManager": "owner"}
        )

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Status of each job by name."""
        items, _ = self.admin.list_all(OASIS_JOBS, self.namespace)
        return {item["metadata"]["name"]: item.get("status") or {} for item in items}

    def phases(self) -> dict[str, str]:
        """Phase of each job by name."""
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
        """A controller that has not been started."""
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

    def our_pods(self) -> dict[str, dict[str, Any]]:
        """Pods of the adapter by uid of their job."""
        jobs, _ = self.admin.list_all(OASIS_JOBS, self.namespace)
        pods = self.admin.list_all(PODS, self.namespace)[0]
        return by_job({PLURAL: jobs, "pods": pods})
