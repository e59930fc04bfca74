"""DRAGON, KOD2, the priority queue and SpeCon as controllers of a real cluster.

Each has a namespace and nodes of its own on one control plane, and all run at the same time. What
they decide is compared, decision by decision, with a simulation of the same jobs, in slots of two
seconds, or of longer ones if the machine is too slow for them (`tests.kubernetes.pace`).
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from baselines import registry
from oasis.kubernetes.names import NODE_ROLE
from oasis.kubernetes.objects.oasis_job import Clock, JobSpec
from oasis.kubernetes.reporter import Reporter
from oasis.scheduling.curve import TrainingCurve
from oasis.simulator import Observation, replay
from tests.background import beside
from tests.decisions import Logged, first_difference, workload_of
from tests.kubernetes.adapter import elastic
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.pace import compared, lost_slots
from tests.kubernetes.scene import Scene

LATE = 0.88  # of a slot: so late pods may start


def policy_of(name: str, slot: float) -> Any:
    """With its times scaled: a slot's work stands for the 30 seconds between two looks."""
    unit = slot * (1.0 - LATE)
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

    def __init__(self, cluster: Cluster, name: str, slot: float) -> None:
        self.name, self.jobs, self.slot = name, ALONE if name == "specon" else JOBS, slot
        self.pool = f"{name}-{secrets.token_hex(2)}"
        home = Cluster(cluster.plane, f"{cluster.namespace}-{self.pool}")
        home.create_namespace()
        self.scene = Scene(cluster.plane, home.namespace, Clock(slot, LATE * slot))
        self.nodes = [f"{self.pool}-{k}" for k in range(2)]
        for node in self.nodes:
            room = {GPU: "4", "cpu": "96", "memory": "1Ti"}
            cluster.plane.nodes.add(node, room, {NODE_ROLE: "both", "pool": self.pool})
        self.made: list[Logged] = []

    def policy(self) -> Logged:
        self.made.append(Logged(policy_of(self.name, self.slot)))
        return self.made[-1]

    def submit(self, slot: int) -> None:
        """The jobs that arrive in `slot`."""
        for name, (least, first, most, work, arrival) in self.jobs.items():
            if arrival == slot:
                body = elastic(self.scene, name, least, most, work * self.scene.clock.work_seconds)
                body["spec"]["workers"]["initial"] = first
                self.scene.submit(body)

    def report(self) -> None:
        """Let each pod of a running job tell the loss that it will have at the end of the slot."""
        statuses = self.scene.statuses()
        for pods in self.scene.our_pods().values():
            for name, pod in pods.items():
                progress = statuses[pod["metadata"]["ownerReferences"][0]["name"]]["progress"]
                done = (progress["workerSeconds"] + self.scene.clock.work_seconds) / progress[
                    "total"
                ]
                reporter = Reporter(self.scene.admin, self.scene.namespace, name)
                reporter.report(loss=CURVE.at(min(1.0, done)))

    def simulated(self, specs: dict[str, JobSpec], site: Any) -> Logged:
        """The same jobs in the simulator."""
        jobs = {uid: (spec, self.jobs[spec.name][-1]) for uid, spec in specs.items()}
        logged = Logged(policy_of(self.name, self.slot))
        curves = dict.fromkeys(jobs, CURVE) if self.name == "specon" else {}
        replay(workload_of(jobs, site, curves), logged, observation=Observation(1.0))
        return logged


@contextmanager
def reporting(stage: Stage) -> Iterator[None]:
    """At two thirds of each slot, the training tells its loss."""

    def work(over: threading.Event) -> None:
        clock = stage.scene.clock
        slot = max(0, clock.slot(time.time()))
        while not over.wait(max(0.0, clock.begin(slot) + stage.slot * 0.6 - time.time())):
            stage.report()
            slot += 1

    with beside(work):
        yield


def test_on_a_cluster_they_decide_as_in_the_simulator(cluster: Cluster) -> None:
    def run(slot: float, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, float]]:
        try:
            return decided_on(cluster, slot, names)
        finally:
            cluster.plane.nodes.clear()

    assert compared(run, NAMES) == {}, "the first decision that differs, here and simulated"


def decided_on(
    cluster: Cluster, slot: float, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, float]]:
    """What differs from the simulation, and what was late, by policy."""
    stages = [Stage(cluster, name, slot) for name in names]
    cluster.plane.nodes.wait_ready(*(node for stage in stages for node in stage.nodes))
    epoch = time.time() + 3.0 + slot
    specs: dict[str, dict[str, JobSpec]] = {stage.name: {} for stage in stages}
    made = {}

    def all_ended() -> bool:
        for stage in stages:
            brain = made[stage.name].brain
            specs[stage.name] |= {} if brain is None else brain.reader.specs
        phases = [list(stage.scene.phases().values()) for stage in stages]
        wanted = [["Completed"] * len(stage.jobs) for stage in stages]
        return phases == wanted

    with ExitStack() as stack:
        for stage in stages:
            stage.scene.clock = Clock(slot, LATE * slot, epoch)
            stage.submit(0)
            pool = {"node_selector": f"pool={stage.pool}", "lease_seconds": 30.0}
            made[stage.name] = stack.enter_context(stage.scene.controller(stage.policy, **pool))
            if stage.name == "specon":
                stack.enter_context(reporting(stage))
        for k in range(1, 1 + max(row[-1] for row in (*JOBS.values(), *ALONE.values()))):
            time.sleep(max(0.0, epoch + (k - 0.5) * slot - time.time()))
            for stage in stages:
                stage.submit(k)
        until(all_ended, "all jobs have ended", 30 * slot + 60.0)
        late = lost_slots(made)
        sites = {name: controller.brain.site for name, controller in made.items()}
    differ = {}
    for stage in stages:
        wanted = stage.simulated(specs[stage.name], sites[stage.name]).decided
        assert len(wanted) > len(stage.jobs), f"{stage.name} resizes or moves jobs here"
        if stage.made[-1].decided != wanted:
            differ[stage.name] = first_difference(stage.made[-1].decided, wanted)
    return differ, late
