"""The shipped example on a cluster, decided as `oasis.simulate` decides it.

OASiS, recourse, SRTF and FIFO run at the same time, each with its own nodes and namespace, and each
on a clock that waits for its pods (`tests.kubernetes.stepped`).
"""

from __future__ import annotations

import oasis
from experiments.evaluation.live import cluster_policy, read_bounds
from experiments.evaluation.policies import OASIS, POLICIES
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.demo import imported
from tests.kubernetes.live_instance import (
    completions,
    pool,
    scene_for,
    stepped_through,
)
from tests.kubernetes.scene import EXAMPLE
from tests.kubernetes.stepped import lost_slots, run_all

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
