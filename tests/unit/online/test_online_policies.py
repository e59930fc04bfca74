"""OASiS and recourse as policies: they carry out what they plan, on the machines of a site."""

from __future__ import annotations

import pytest

import oasis
from oasis import Form, Job, Piecewise, Server
from oasis.model.errors import InstanceError
from oasis.scheduling.site import Machine, Site, cluster_of
from oasis.simulator import Outage, Workload
from tests.oracle import kinds

INSTANCE = oasis.generate("testbed", jobs=8, seed=2)
SITE = Workload.from_instance(INSTANCE).site


def live(instance: oasis.Instance) -> oasis.OASiS:
    """OASiS as a service runs it, with the bounds of the instance."""
    bounds = oasis.PriceBounds.from_instance(instance)
    return oasis.OASiS.rolling(instance.horizon, bounds, keep_admitted=True, end=instance.horizon)


def test_a_site_is_the_cluster_of_its_instance_again():
    cluster = cluster_of(SITE)
    assert cluster.worker_ids == INSTANCE.cluster.worker_ids
    assert cluster.ps_ids == INSTANCE.cluster.ps_ids
    both = Site(("gpu",), (Machine("a", (4.0,)),))
    with pytest.raises(InstanceError, match=r"^machine a: expected worker or ps, got both"):
        cluster_of(both)


def of_two_kinds() -> oasis.Instance:
    """One job holds the fast machine for two slots, for which another one's second form waits."""
    utility = Piecewise((0.0, 11.0), (20.0, 9.0))
    slow = Form(chunks=2, minibatch_time=5.0, requires={"gpu": ["slow"]})
    fast = Form(worker={"gpu": 3.0}, chunks=1, requires={"gpu": ["fast"]})
    first = Job("first", 0, 1, 4, 1, 2.0, 0.0, {"gpu": 1.0}, {}, utility, requires=fast.requires)
    second = Job("second", 0, 1, 4, 1, 4.0, 0.0, {"gpu": 1.0}, {}, utility, forms=(slow, fast))
    servers = (
        Server("a", {"gpu": 1.0}, labels={"gpu": "slow"}),
        Server("b", {"gpu": 4.0}, labels={"gpu": "fast"}),
    )
    cluster = oasis.Cluster(("gpu",), servers, (), slot_seconds=1.0)
    return oasis.Instance(11, cluster, (first, second))


def test_a_plan_for_later_is_for_the_work_of_its_form():
    """Four worker-slots in the second form; a job that has not begun says ten, of the first."""
    instance = of_two_kinds()
    printed = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    assert printed.schedules["second"].form == 1
    assert printed.schedules["second"].start == 2
    assert oasis.simulate(instance, live(instance)).schedules == printed.schedules


@pytest.mark.parametrize(
    ("outage", "form", "slots"),
    [
        # It has begun, and waits for its machine rather than begin anew in another form.
        (Outage(1, 3.0, 6.0), 1, [2, 6, 7, 8]),
        # It has not: no promise is left to keep, and it may run in any form.
        (Outage(1, 1.0), 0, [*range(1, 11)]),
    ],
)
def test_a_late_job_takes_what_is_left_in_the_form_in_which_it_began(outage, form, slots):
    run = oasis.simulate(of_two_kinds(), live(of_two_kinds()), outages=[outage])
    schedule = run.schedules["second"]
    assert (schedule.form, schedule.workers[:, 0].tolist()) == (form, slots)


def test_what_a_form_holds_leaves_no_room_for_a_late_job():
    """On instances of kinds where machines leave for good or for a while, no plan is refused."""
    for seed in range(60):
        instance = kinds.instance(seed)
        last = len(instance.cluster.worker_ids) - 1
        for outages in (
            [Outage(0, 1.0, 3.0)],
            [Outage(0, 1.0), Outage(last, 2.0, 3.0)][: last + 1],
        ):
            run = oasis.simulate(instance, live(instance), outages=outages)
            oasis.verify(instance, run.schedules)
