"""The shipped example on a cluster, decided as `oasis.simulate` decides it.

OASiS, recourse, SRTF and FIFO run at the same time, each with its own nodes and namespace, and each
on a clock that waits for its pods (`tests.kubernetes.stepped`).
"""

from __future__ import annotations

import re

import pytest

import oasis
from experiments.evaluation.live import cluster_policy, read_bounds
from experiments.evaluation.policies import OASIS, POLICIES
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.demo import imported
from tests.kubernetes.live_instance import (
    completions,
    delayed,
    late_jobs,
    pool,
    scene_for,
    start_up_seconds,
    stepped_through,
)
from tests.kubernetes.scene import EXAMPLE
from tests.kubernetes.stepped import CLOCK, lost_slots, run_all

NAMES = ("oasis", "recourse", "srtf", "fifo")


def test_the_example_is_decided_as_in_the_simulator(cluster: Cluster) -> None:
    shipped = oasis.read(EXAMPLE)
    last = shipped.horizon
    scenes = {name: scene_for(cluster, name, shipped.cluster) for name in NAMES}
    stepped = {}
    for name, scene in scenes.items():
        bounds = read_bounds(EXAMPLE, last) if name == OASIS else None
        policy = cluster_policy(name, {}, lookahead=last, horizon=last, bounds=bounds)
        stepped[name] = stepped_through(scene, shipped, policy)
    run_all(list(stepped.values()))
    differ = {}
    for name, scene in scenes.items():
        assert lost_slots(stepped[name].controller) == 0.0, "all pods were there in every slot"
        instance = imported(scene, shipped, pool(scene))
        decisions = oasis.simulate(instance, POLICIES[name].make(instance)).decisions
        here = {d.job_id.rpartition("/")[2]: d.completion for d in decisions}
        there = completions(scene, last)
        assert there.keys() == here.keys()
        assert any(slot is not None for slot in here.values())
        if there != here:
            differ[name] = {k: (there[k], here[k]) for k in here if there[k] != here[k]}
    assert differ == {}, "completed in (slot on the cluster, slot in the simulator)"


def test_pods_that_take_time_to_start_make_no_job_later_than_they_do_in_the_simulator(
    cluster: Cluster,
) -> None:
    """New pods work a quarter of a slot after it began, which nobody allowed for.

    A worker is paid for the rest of its first slot. How long it took to start is what the
    controller measured; in the simulator a gang that begins, grows or moves does nothing for so
    long.
    """
    late = 0.25
    shipped = oasis.read(EXAMPLE)
    last = shipped.horizon
    scenes = {name: scene_for(cluster, name, shipped.cluster) for name in ("fifo", "srtf")}
    stepped = {
        name: stepped_through(
            scene, shipped, cluster_policy(name, {}, lookahead=last, horizon=last), late
        )
        for name, scene in scenes.items()
    }
    run_all(list(stepped.values()))
    for name, scene in scenes.items():
        instance = imported(scene, shipped, pool(scene))
        measured = start_up_seconds(stepped[name].controller)
        assert measured == pytest.approx(late * CLOCK.slot_seconds)
        costs = delayed(CLOCK, measured)
        decisions = oasis.simulate(instance, POLICIES[name].make(instance), costs=costs).decisions
        there = completions(scene, last)
        here = {d.job_id.rpartition("/")[2]: d.completion for d in decisions}
        assert late_jobs(there, here, last) == {}
        assert sum(slot is not None and slot + 1 < last for slot in here.values()) > 2
        started = [
            request.name
            for request in cluster.plane.requests(scene.account)
            if (request.verb, request.resource) == ("create", "pods")
            and request.namespace == scene.namespace
            and re.search(r"-w\d+-[0-9a-f]+$", request.name)  # a worker, no parameter server
        ]
        lost = lost_slots(stepped[name].controller)
        if name == "fifo":  # whom it starts it lets run: each of its pods began once, and late
            assert lost == pytest.approx(late * len(started))
        assert lost > 0
