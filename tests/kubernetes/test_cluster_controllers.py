"""DRAGON, KOD2, the priority queue and SpeCon as controllers of a real cluster.

Each has a namespace and nodes of its own on one control plane, and all run at the same time. What
they decide is compared, decision by decision, with a simulation of the same jobs. Each is on a
clock that waits for its pods, and for the reports of their training (`tests.kubernetes.stepped`).
"""

from __future__ import annotations

import secrets
from typing import Any

from baselines import registry
from oasis.kubernetes.api.resources import PODS
from oasis.kubernetes.control.controller import Controller
from oasis.kubernetes.control.reconciler import Reconciler
from oasis.kubernetes.names import LOSS, NODE_ROLE
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.scheduling.job import TrainingCurve
from oasis.simulator import Observation, replay
from tests.decisions import Logged, first_difference, workload_of
from tests.kubernetes.adapter import elastic
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene
from tests.kubernetes.stepped import CLOCK, Stepped, lost_slots, run_all


def policy_of(name: str) -> Any:
    """With its times scaled: a slot's work stands for the 30 seconds between two looks."""
    unit = CLOCK.work_seconds
    if name == "dragon":
        return registry.make(name, urgent_after=3 * unit, idle_after=2 * unit)
    return registry.make(name, interval=unit) if name == "specon" else registry.make(name)


NAMES = ("dragon", "kod2", "priority-queue", "specon")
# name: fewest, first and most workers, worker-slots of work, slot of arrival
JOBS = {
    "a": (1, 2, 6, 12, 0),
    "b": (1, 4, 4, 12, 0),
    "c": (2, 4, 6, 12, 1),
    "d": (1, 2, 3, 6, 2),
    "e": (2, 2, 2, 4, 4),
    "f": (1, 3, 8, 9, 6),
}
ALONE = {name: (1, 1, 1, 3 if k % 2 else 8, k // 2) for k, name in enumerate("abcdef")}
CURVE = TrainingCurve.exponential(1.0, 0.1, 40.0)


class Stage:
    """One policy with its own namespace and nodes."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name, self.jobs = name, ALONE if name == "specon" else JOBS
        pool = f"{name}-{secrets.token_hex(2)}"
        home = Cluster(cluster.plane, f"{cluster.namespace}-{pool}")
        home.create_namespace()
        self.scene = Scene(cluster.plane, home.namespace, CLOCK)
        self.nodes = [f"{pool}-{k}" for k in range(2)]
        for node in self.nodes:
            room = {GPU: "4", "cpu": "96", "memory": "1Ti"}
            cluster.plane.nodes.add(node, room, {NODE_ROLE: "both", "pool": pool})
        self.made: list[Logged] = []
        self.specs: dict[str, JobSpec] = {}
        self.stepped = Stepped(
            self.scene,
            self.policy,
            self.arriving,
            self.is_over,
            self.report if name == "specon" else lambda _: None,
            node_selector=f"pool={pool}",
        )

    def policy(self) -> Logged:
        self.made.append(Logged(policy_of(self.name)))
        return self.made[-1]

    def arriving(self, slot: int) -> list[dict[str, Any]]:
        """The jobs that arrive in `slot`."""
        found = []
        for name, (least, first, most, work, arrival) in self.jobs.items():
            if arrival == slot:
                body = elastic(self.scene, name, least, most, work * self.scene.clock.work_seconds)
                body["spec"]["workers"]["initial"] = first
                found.append(body)
        return found

    def is_over(self, reconciler: Reconciler) -> bool:
        """Return whether all jobs have ended; record which jobs there were."""
        self.specs |= reconciler.reader.specs
        phases = [job.phase for job in reconciler.statuses.values()]
        return phases == ["Completed"] * len(self.jobs)

    def report(self, controller: Controller) -> None:
        """Let each pod of a running job tell the loss that it will have at the end of the slot, and
        wait until the controller has seen it."""
        statuses, told = self.scene.statuses(), {}
        for pods in self.scene.our_pods().values():
            for name, pod in pods.items():
                progress = statuses[pod["metadata"]["ownerReferences"][0]["name"]]["progress"]
                done = (progress["workerSeconds"] + self.scene.clock.work_seconds) / progress[
                    "total"
                ]
                loss = CURVE.at(min(1.0, done))
                notes = {LOSS: repr(float(loss))}
                meta = {"namespace": self.scene.namespace, "name": name, "annotations": notes}
                self.scene.admin.merge_patch(PODS, {"metadata": meta})
                told[name] = loss
        store = controller.stores[PODS.plural]

        def heard() -> dict[str, float]:
            notes = {
                pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(LOSS)
                for pod in store.items()
                if pod["metadata"]["namespace"] == self.scene.namespace
            }
            return {name: float(loss) for name, loss in notes.items() if loss is not None}

        until(lambda: told.items() <= heard().items(), "the controller has heard every report")

    def simulated(self, site: Any) -> Logged:
        """The same jobs in the simulator."""
        jobs = {uid: (spec, self.jobs[spec.name][-1]) for uid, spec in self.specs.items()}
        logged = Logged(policy_of(self.name))
        curves = dict.fromkeys(jobs, CURVE) if self.name == "specon" else {}
        replay(workload_of(jobs, site, curves), logged, observation=Observation(1.0))
        return logged


def test_on_a_cluster_they_decide_as_in_the_simulator(cluster: Cluster) -> None:
    stages = [Stage(cluster, name) for name in NAMES]
    cluster.plane.nodes.wait_ready(*(node for stage in stages for node in stage.nodes))
    run_all([stage.stepped for stage in stages])
    differ = {}
    for stage in stages:
        controller = stage.stepped.controller
        assert controller.reconciler is not None
        assert lost_slots(controller) == 0.0, "all pods were there in every slot"
        assert set(stage.scene.phases().values()) == {"Completed"}
        wanted = stage.simulated(controller.reconciler.site).decided
        assert len(wanted) > len(stage.jobs), f"{stage.name} resizes or moves jobs here"
        if stage.made[-1].decided != wanted:
            differ[stage.name] = first_difference(stage.made[-1].decided, wanted)
    assert differ == {}, "the first decision that differs, here and simulated"
