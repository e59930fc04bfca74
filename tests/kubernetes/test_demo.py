"""The shipped example on a cluster, decided as `oasis.simulate` decides it.

OASiS, recourse, SRTF and FIFO run at the same time, each with its own nodes and namespace. A slot
lasts ``OASIS_SLOT_SECONDS``, 4 by default: 2 are enough for one policy on an idle machine, but not
for four beside other work, where the pods of a gang may take a second and more to change places.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import replace

import oasis
from experiments.evaluation.cluster_policies import cluster_policy, read_bounds
from experiments.evaluation.policies import OASIS, POLICIES
from oasis.kubernetes.objects import Clock
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.demo import imported
from tests.kubernetes.scene import EXAMPLE, Scene

SLOT = float(os.environ.get("OASIS_SLOT_SECONDS", "4"))
NAMES = ("oasis", "recourse", "srtf", "fifo")


def renamed(instance: oasis.Instance, pool: str) -> oasis.Instance:
    """The same servers under names of their own, in the same order."""
    cluster = instance.cluster
    groups = (cluster.worker_servers, cluster.ps_servers)
    worker, ps = (
        tuple(replace(server, id=f"{pool}-{server.id}") for server in group) for group in groups
    )
    return replace(
        instance, cluster=oasis.Cluster(cluster.resources, worker, ps, cluster.slot_seconds)
    )


def test_the_example_is_decided_as_in_the_simulator(cluster: Cluster) -> None:
    shipped = oasis.read(EXAMPLE)
    epoch = time.time() + 12.0 + 2.0 * len(NAMES)
    scenes: dict[str, Scene] = {}
    for name in NAMES:
        home = Cluster(cluster.plane, f"{cluster.namespace}-{name}")
        home.create_namespace()
        scenes[name] = Scene(cluster.plane, home.namespace, Clock(SLOT, 0.85 * SLOT, epoch))
        scenes[name].add_nodes(renamed(shipped, name).cluster, {"pool": name})
    with ExitStack() as stack:
        for name, scene in scenes.items():
            for job in shipped.jobs:
                if job.arrival == 0:
                    scene.submit(scene.job(job, shipped.slot_seconds))
            bounds = read_bounds(EXAMPLE, shipped.horizon) if name == OASIS else None
            policy = cluster_policy(
                name, {}, lookahead=shipped.horizon, horizon=shipped.horizon, bounds=bounds
            )
            stack.enter_context(
                scene.controller(
                    policy,
                    node_selector=f"pool={name}",
                    horizon=shipped.horizon,
                    lease_seconds=30.0,
                )
            )
        for job in shipped.jobs_by_arrival():
            if job.arrival > 0:
                time.sleep(max(0.0, epoch + (job.arrival - 0.6) * SLOT - time.time()))
                for scene in scenes.values():
                    scene.submit(scene.job(job, shipped.slot_seconds))
        over = epoch + (shipped.horizon + 1.5) * SLOT
        time.sleep(max(0.0, over - time.time()))
        differ = {}
        for name, scene in scenes.items():
            instance = imported(scene, shipped, f"pool={name}")
            run = oasis.simulate(instance, POLICIES[name].make(instance))
            here = {d.job_id.rpartition("/")[2]: d.completion for d in run.decisions}
            told = scene.statuses()
            there = {job: told[job].get("completionSlot") for job in here}
            there = {
                job: None if slot is None or slot >= shipped.horizon else slot
                for job, slot in there.items()
            }
            if there != here:
                differ[name] = {
                    job: (there[job], here[job]) for job in here if there[job] != here[job]
                }
    assert differ == {}, "completed in (slot on the cluster, slot in the simulator)"
