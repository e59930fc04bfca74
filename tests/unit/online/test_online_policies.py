"""OASiS and recourse as policies: they carry out what they plan, on the machines of a site."""

from __future__ import annotations

import pytest

import oasis
from oasis.model.errors import InstanceError
from oasis.online.recourse.policy import Recourse
from oasis.scheduling.job import NOTHING
from oasis.scheduling.site import Machine, Site, allocation_in, allocations, cluster_of
from oasis.simulator import Workload

INSTANCE = oasis.generate("testbed", jobs=8, seed=2)
SITE = Workload.from_instance(INSTANCE).site


def live(instance: oasis.Instance) -> oasis.OASiS:
    """OASiS as a service runs it, with the bounds of the instance."""
    bounds = oasis.PriceBounds.from_instance(instance)
    return oasis.OASiS.rolling(instance.horizon, bounds, keep_admitted=True, end=instance.horizon)


def test_a_live_policy_decides_as_oasis_does_in_the_simulator() -> None:
    printed = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
    carried = oasis.simulate(INSTANCE, live(INSTANCE))
    assert carried.total_utility == printed.total_utility > 0
    for job_id, schedule in printed.schedules.items():
        assert carried.schedules[job_id] == schedule


def test_recourse_carries_out_its_plan() -> None:
    run = oasis.simulate(INSTANCE, Recourse(rounds=2))
    assert oasis.verify(INSTANCE, run) == pytest.approx(run.total_utility)


def test_what_a_job_holds_in_a_slot_is_what_its_schedule_says() -> None:
    run = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
    for schedule in run.schedules.values():
        by_slot = allocations(schedule, SITE)
        assert list(by_slot) == sorted(set(schedule.workers[:, 0].tolist()))
        for slot in range(INSTANCE.horizon):
            assert allocation_in(schedule, slot, SITE) == by_slot.get(slot, NOTHING)


def test_a_site_is_the_cluster_of_its_instance_again() -> None:
    cluster = cluster_of(SITE)
    assert cluster.worker_ids == INSTANCE.cluster.worker_ids
    assert cluster.ps_ids == INSTANCE.cluster.ps_ids
    both = Site(("gpu",), (Machine("a", (4.0,)),))
    with pytest.raises(InstanceError, match=r"^machine a: expected worker or ps, got both"):
        cluster_of(both)
