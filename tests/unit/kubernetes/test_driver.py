"""The driver makes the decisions of the simulator when the cluster does what it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import oasis
from baselines import FIFO, SRTF
from oasis.driver.driver import Driver
from oasis.kubernetes.cluster.nodes import instance_of
from oasis.online.prices import PriceBounds
from tests.unit.kubernetes.fakes import FakeCluster, site_for, specs_of

EXAMPLE = Path(__file__).parents[3] / "docs/examples/congested.json"


def live_oasis(instance: oasis.Instance, horizon: int | None) -> oasis.OASiS:
    bounds = PriceBounds.from_instance(instance)
    return oasis.OASiS.rolling(instance.horizon, bounds, keep_admitted=True, end=horizon)


POLICIES: dict[
    str, tuple[Callable[[oasis.Instance], object], Callable[[oasis.Instance], object]]
] = {
    "oasis": (
        lambda i: live_oasis(i, i.horizon),
        oasis.OASiS.from_instance,
    ),
    "recourse": (lambda _: oasis.Recourse(), lambda _: oasis.Recourse()),
    "fifo": (lambda _: FIFO(), lambda _: FIFO()),
    "srtf": (lambda _: SRTF(), lambda _: SRTF()),
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_decisions_are_those_of_the_simulator(name: str) -> None:
    """On the instance as it is read from the objects: bandwidth there is in whole bits a second,
    and the random search of recourse may go another way for a difference of 1e-12."""
    shipped = oasis.read(EXAMPLE)
    on_cluster, in_simulator = POLICIES[name]
    specs, site = specs_of(shipped), site_for(shipped, shipped.horizon)
    instance = instance_of(specs.values(), site, shipped.horizon, {})
    run = oasis.simulate(instance, in_simulator(instance))
    cluster = FakeCluster(Driver(on_cluster(instance), site), specs)
    cluster.run(instance.horizon)
    # What is completed is told a slot later. In the simulator, who is given up then is unfinished.
    in_time = set(cluster.rejected)
    cluster.step(instance.horizon)
    done = {d.job_id: d.completion for d in run.decisions if d.completion is not None}
    assert {f"default/{uid[4:]}": slot for uid, slot in cluster.completed.items()} == done
    assert len(done) > 2
    rejected = {d.job_id for d in run.decisions if not d.admitted}
    assert {f"default/{uid[4:]}" for uid in in_time} == rejected
    running = {
        (slot, f"default/{uid[4:]}", allocation.worker_count, allocation.ps_count)
        for slot, uid, allocation in cluster.history
        if uid in cluster.completed
    }
    planned = set()
    for decision in run.decisions:
        if decision.schedule is not None:
            counts: dict[int, list[int]] = {}
            for k, rows in enumerate((decision.schedule.workers, decision.schedule.ps)):
                for slot, _, count in rows.tolist():
                    counts.setdefault(slot, [0, 0])[k] += count
            planned |= {(slot, decision.job_id, *both) for slot, both in counts.items()}
    assert running == planned
