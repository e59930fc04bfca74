"""Every policy decides on a cluster as in the simulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import oasis
from experiments.evaluation.policies import OASIS, POLICIES
from oasis.driver.driver import Driver
from oasis.kubernetes.cluster.nodes import instance_of
from oasis.online.prices import PriceBounds
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of

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
