"""DRAGON, KOD2, the priority queue and SpeCon as controllers of a real cluster.

Each has a namespace and nodes of its own on one control plane, and all run at the same time. What
they decide is compared, decision by decision, with a simulation of the same jobs in slots of the
same length: a slot here stands for the 30 seconds in which these policies usually think.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from baselines import registry
from oasis.kubernetes.names import NODE_ROLE
from oasis.kubernetes.objects import Clock, JobSpec
from oasis.kubernetes.reporter import Reporter
from oasis.scheduling.curve import TrainingCurve
from oasis.simulator import Observation, replay
from tests.background import beside
from tests.decisions import Logged, first_difference, workload_of
from tests.kubernetes.adapter import elastic
from tests.kubernetes.cluster import GPU, Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import Scene

SLOT, STARTUP = 5.0, 4.4
SCALE = (SLOT - STARTUP) / 30.0  # of the policies' times
POLICIES: dict[str, Callable[[], Any]] = {
    "dragon": lambda: registry.make("dragon", urgent_after=90 * SCALE, idle_after=60 * SCALE),
    "kod2": lambda: registry.make("kod2"),
    "priority-queue": lambda: registry.make("priority-queue"),
    "specon": lambda: registry.make("specon", interval=30 * SCALE),
}
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

    def __init__(self, cluster: Cluster, name: str, epoch: float) -> None:
        self.name, self.jobs = name, ALONE if name == "specon" else JOBS
        self.home = Cluster(cluster.plane, f"{cluster.namespace}-{name}")
        self.home.create_namespace()
        clock = Clock(SLOT, STARTUP, epoch)
        self.scene = Scene(cluster.plane, self.home.namespace, clock)
        self.nodes = [f"{name}-{k}" for k in range(2)]
        for node in self.nodes:
            room = {GPU: "4", "cpu": "96", "memory": "1Ti"}
            cluster.plane.nodes.add(node, room, {NODE_ROLE: "both", "pool": name})
        self.made: list[Logged] = []

    def policy(self) -> Logged:
        self.made.append(Logged(POLICIES[self.name]()))
        return self.made[-1]

    def submit(self, slot: int) -> None:
        """The jobs that arrive in `slot`."""
        for name, (least, first, most, work, arrival) in self.jobs.items():
            if arrival == slot:
                body = elastic(self.scene, name, least, most, work * (SLOT - STARTUP))
                body["spec"]["workers"]["initial"] = first
                self.scene.submit(body)

    def report(self) -> None:
        """Let each pod of a running job tell the loss that it will have at the end of the slot."""
        statuses = self.scene.statuses()
        for pods in self.scene.our_pods().values():
            for name, pod in pods.items():
                progress = statuses[pod["metadata"]["ownerReferences"][0]["name"]]["progress"]
                done = (progress["workerSeconds"] + SLOT - STARTUP) / progress["total"]
                reporter = Reporter(self.scene.admin, self.scene.namespace, name)
                reporter.report(loss=CURVE.at(min(1.0, done)))

    def simulated(self, specs: dict[str, JobSpec], site: Any) -> Logged:
        """The same jobs in the simulator."""
        jobs = {uid: (spec, self.jobs[spec.name][-1]) for uid, spec in specs.items()}
        logged = Logged(POLICIES[self.name]())
        curves = dict.fromkeys(jobs, CURVE) if self.name == "specon" else {}
        replay(workload_of(jobs, site, curves), logged, observation=Observation(1.0))
        return logged


@contextmanager
def reporting(stage: Stage) -> Iterator[None]:
    """At two thirds of each slot, the training tells its loss."""

    def work(over: threading.Event) -> None:
        clock = stage.scene.clock
        slot = max(0, clock.slot(time.time()))
        while not over.wait(max(0.0, clock.begin(slot) + SLOT * 0.6 - time.time())):
            stage.report()
            slot += 1

    with beside(work):
        yield


def test_on_a_cluster_they_decide_as_in_the_simulator(cluster: Cluster) -> None:
    epoch = time.time() + 4.0 + 2.0 * len(POLICIES)
    stages = [Stage(cluster, name, epoch) for name in POLICIES]
    cluster.plane.nodes.wait_ready(*(node for stage in stages for node in stage.nodes))
    with ExitStack() as stack:
        for stage in stages:
            stage.submit(0)
        made = {
            stage.name: stack.enter_context(
                stage.scene.controller(
                    stage.policy, node_selector=f"pool={stage.name}", lease_seconds=30.0
                )
            )
            for stage in stages
        }
        stack.enter_context(reporting(stages[-1]))
        specs: dict[str, dict[str, JobSpec]] = {stage.name: {} for stage in stages}
        for slot in range(1, 1 + max(row[-1] for row in (*JOBS.values(), *ALONE.values()))):
            time.sleep(max(0.0, epoch + (slot - 0.5) * SLOT - time.time()))
            for stage in stages:
                stage.submit(slot)

        def all_ended() -> bool:
            for stage in stages:
                brain = made[stage.name].brain
                specs[stage.name] |= {} if brain is None else brain.reader.specs
            return all(
                set(stage.scene.phases().values()) == {"Completed"}
                and len(stage.scene.phases()) == len(stage.jobs)
                for stage in stages
            )

        until(all_ended, "all jobs have ended", 120.0)
        sites = {name: controller.brain.site for name, controller in made.items()}
    differ = {}
    for stage in stages:
        wanted = stage.simulated(specs[stage.name], sites[stage.name]).decided
        if stage.made[-1].decided != wanted:
            differ[stage.name] = (stage.made[-1].decided, wanted)
        assert len(wanted) > len(stage.jobs), f"{stage.name} resizes or moves jobs here"
        stage.home.clear()
    assert {name: first_difference(*both) for name, both in differ.items()} == {}
