"""Policies decide on a cluster as in the simulator, and gangs hold whose pods are late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import oasis
from experiments.evaluation.policies import OASIS, POLICIES
from oasis import Cluster, Constant, Instance, Job, Server
from oasis.driver.driver import Driver
from oasis.kubernetes.cluster.nodes import instance_of
from oasis.online.prices import PriceBounds
from tests.unit.kubernetes.fakes import CLOCK, FakeCluster, site_for, specs_of

EXAMPLE = Path(__file__).parents[3] / "docs/examples/congested.json"
TOO_LARGE = ("kubernetes-default", "locality-aware", "dragon", "specon")  # for one at least


def live_oasis(instance: oasis.Instance, horizon: int | None) -> oasis.OASiS:
    bounds = PriceBounds.from_instance(instance)
    return oasis.OASiS.rolling(instance.horizon, bounds, keep_admitted=True, end=horizon)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("is_congested", [True, False])
def test_the_decisions_are_those_of_the_simulator(name: str, is_congested: bool) -> None:
    """On the instance as it is read from the objects: bandwidth there is in whole bits a second,
    and the random search of recourse may go another way for a difference of 1e-12."""
    calm = replace(oasis.generate("testbed", jobs=14, seed=3), horizon=60)
    shipped = oasis.read(EXAMPLE) if is_congested else calm
    make = POLICIES[name].make
    specs, site = specs_of(shipped), site_for(shipped, shipped.horizon)
    instance = instance_of(specs.values(), site, shipped.horizon, {})
    run = oasis.simulate(instance, make(instance))
    policy = live_oasis(instance, instance.horizon) if name == OASIS else make(instance)
    cluster = FakeCluster(Driver(policy, site), specs)
    cluster.run(instance.horizon)
    # What is completed is told a slot later. In the simulator, who is given up then is unfinished.
    in_time = set(cluster.rejected)
    cluster.step(instance.horizon)
    done = {d.job_id: d.completion for d in run.decisions if d.completion is not None}
    assert {f"default/{uid[4:]}": slot for uid, slot in cluster.completed.items()} == done
    assert len(done) > 1 or name in TOO_LARGE
    rejected = {d.job_id for d in run.decisions if not d.admitted}
    assert {f"default/{uid[4:]}" for uid in in_time} == rejected
    held: dict[tuple[str, int], list[int]] = {}
    for decision in run.decisions:
        if decision.schedule is not None:
            for k, rows in enumerate((decision.schedule.workers, decision.schedule.ps)):
                for slot, _, count in rows.tolist():
                    held.setdefault((decision.job_id, slot), [0, 0])[k] += count
    assert held == {
        (f"default/{uid[4:]}", slot): [allocation.worker_count, allocation.ps_count]
        for slot, uid, allocation in cluster.history
        if uid in cluster.completed
    }


# -- gangs that are late ---------------------------------------------------------------------------


RESOURCES = ("gpu", "cpu", "memory_gb", "storage_gb", "bandwidth_gbps")
ROOM = dict.fromkeys(RESOURCES, 9.0) | {"gpu": 8.0}
SERVERS = (Server("w", ROOM),), (Server("p", {**ROOM, "gpu": 0.0}),)
MACHINES = Cluster(RESOURCES, *SERVERS, CLOCK.work_seconds)


def one(name: str, least: int, most: int, work: int, utility: Any) -> Job:
    """A job of `work` worker-slots."""
    numbers: dict[str, Any] = {"epochs": work, "chunks": most, "minibatch_time": 1 / most}
    needs: dict[str, Any] = {"worker": {"gpu": 1.0}, "ps": {}, "gradient_mb": 0.0}
    return Job(name, 0, minibatches=1, **numbers, **needs, utility=utility, min_workers=least)


def test_the_rest_of_a_gang_that_is_late_holds_its_minimum() -> None:
    """One worker-slot is left because pods came late; three workers do it."""
    made = Instance(20, MACHINES, (one("gang", 3, 3, 10, Constant(5.0)),))
    policy = oasis.Recourse.rolling(40, keep_admitted=True)
    cluster = FakeCluster(Driver(policy, site_for(made, None)), specs_of(made))
    cluster.step(0)
    cluster.done["uid-gang"] = 2.5
    for slot in range(1, 8):
        cluster.step(slot)
    assert cluster.completed == {"uid-gang": 3}
    assert {allocation.worker_count for _, _, allocation in cluster.history} == {3}


def test_a_gang_that_is_behind_its_plan_but_on_time_goes_on() -> None:
    """Its plan does six worker-slots for work of four: 0.6 fewer in one slot harm nobody."""
    gang = one("gang", 3, 3, 4, oasis.Piecewise((0.0, 1.0, 2.0), (2.0, 2.0, 0.0)))
    rival = oasis.Piecewise((0.0, 1.0, 2.0), (90.0, 90.0, 0.0))
    made = Instance(20, MACHINES, (gang, *(one(f"o{k}", 1, 5, 5, rival) for k in range(6))))
    past = [one(f"p{k}", 1, 4, w, Constant(v)) for k, (w, v) in enumerate([(4, 5.0), (8, 100.0)])]
    bounds = oasis.PriceBounds.from_jobs(past, MACHINES, 20)
    policy = oasis.OASiS.rolling(20, bounds, keep_admitted=True)
    played = FakeCluster(Driver(policy, site_for(made, None)), specs_of(made))
    played.step(0)
    played.done["uid-gang"] -= 0.6
    played.step(1)
    held = [a.worker_count for _, uid, a in played.history if uid == "uid-gang"]
    assert held == [3, 3]
    assert not policy.late
    assert played.done["uid-gang"] == 6.0 - 0.6
