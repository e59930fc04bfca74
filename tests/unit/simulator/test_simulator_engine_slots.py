"""Slots: outages lie between them, and a job holds its machines to the end of its last one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oasis.simulator import Allocation, Machine, Outage, Plan, PolicyJob, Site
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.engine import Engine
from oasis.simulator.run import replay
from oasis.simulator.workload import Workload
from tests.unit.simulator.test_simulator_engine import Script

ONE = Allocation(((0, 1),))


def workload(work: float = 4.0, *, slotted: bool = True, arrival: float = 0.0) -> Workload:
    job = PolicyJob("a", arrival, work, ((0, 1),), max_workers=3)
    site = Site(("gpu",), (Machine("m0", (3.0,)), Machine("m1", (3.0,))), slotted=slotted)
    return Workload.of(site, [job])


def first_slots(work: float, workers: int = 1, arrival: float = 0.0) -> tuple[float, float]:
    """End of the work of a job that runs from its arrival on, and of its use of machines."""
    plan = Plan({0: Allocation(((0, workers),))})
    policy = Script({arrival: plan})
    outcome = replay(workload(work, arrival=arrival), policy)
    (job,) = outcome.jobs
    assert job.end is not None
    freed, used = outcome.timeline[-1]
    assert used == (0, 0)
    return job.end, freed


@pytest.mark.parametrize(
    ("begin", "end"), [(0.5, math.inf), (0.5, 2.0), (1.0, 2.5), (0.5, 1.5), (1.0, 1.0 + 1e-9)]
)
def test_outage_that_begins_or_ends_within_a_slot_is_refused(begin: float, end: float) -> None:
    with pytest.raises(ValueError, match="whole slots"):
        Engine(workload(), Script({}), outages=[Outage(0, begin, end)])


@pytest.mark.parametrize("outage", [Outage(0, 1.0, 2.0), Outage(0, 1.0), Outage(1, 0.0, 7.0)])
def test_outage_of_whole_slots_may_last_for_ever(outage: Outage) -> None:
    engine = Engine(workload(), Script({}), outages=[outage])
    while engine.step():
        pass
    back = outage.end if outage.end < math.inf else outage.begin
    assert engine.state.now == back
    assert engine.state.down == (set() if outage.end < math.inf else {outage.machine})


def test_outage_may_begin_at_any_time_where_there_are_no_slots() -> None:
    policy = Script({})
    replay(workload(slotted=False), policy, outages=[Outage(0, 0.5, 1.25)])
    assert policy.asked == [0.0, 0.5, 1.25]


def test_outages_of_one_machine_may_not_touch_but_those_of_two_may_overlap() -> None:
    Engine(workload(), Script({}), outages=[Outage(0, 1.0, 3.0), Outage(1, 2.0, 4.0)])
    Engine(workload(), Script({}), outages=[Outage(0, 4.0, 5.0), Outage(0, 1.0, 3.0)])
    for again in (3.0, 2.0):
        with pytest.raises(ValueError, match="machine 0 overlap"):
            Engine(workload(), Script({}), outages=[Outage(0, 1.0, 3.0), Outage(0, again, 9.0)])


@pytest.mark.parametrize("machine", [-1, 2])
def test_outage_of_a_machine_that_is_not_there_is_refused(machine: int) -> None:
    with pytest.raises(ValueError, match=f"there is no machine {machine}"):
        Engine(workload(), Script({}), outages=[Outage(machine, 1.0)])


def test_empty_outage_is_refused() -> None:
    with pytest.raises(ValueError, match="end too early"):
        Engine(workload(), Script({}), outages=[Outage(0, 1.0, 1.0)])


@pytest.mark.parametrize("arrival", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("work", [0.25, 1.0, 1.5, 2.0, 3.75])
def test_machines_are_free_at_the_end_of_the_slot_in_which_the_work_ends(
    work: float, arrival: float
) -> None:
    assert first_slots(work, arrival=arrival) == (arrival + work, math.ceil(arrival + work))


@pytest.mark.parametrize("arrival", [0.0, 2.0])
def test_the_last_bit_of_the_work_takes_no_slot_of_its_own(arrival: float) -> None:
    """Work that ends after the slot by less than the tolerance of rounding ends with it."""
    assert first_slots(3 * (1 + 1e-12), 3, arrival) == (arrival + 1.0, arrival + 1.0)
    assert first_slots(float(np.nextafter(2.0, 3.0)), 1, arrival) == (arrival + 2.0,) * 2


def test_work_that_ends_late_by_more_than_rounding_takes_the_next_slot() -> None:
    end, free = first_slots(2.0 + 1e-6)
    assert end == pytest.approx(2.0 + 1e-6, abs=1e-12)
    assert free == 3.0


@pytest.mark.parametrize("arrival", [0.0, 0.5, 2.0])
def test_a_job_with_hardly_any_work_holds_its_machines_for_one_slot(arrival: float) -> None:
    end, free = first_slots(1e-12, arrival=arrival)
    assert end == pytest.approx(arrival, abs=1e-11)
    assert free == math.floor(arrival) + 1.0


def test_setting_up_delays_the_end_of_the_last_slot() -> None:
    policy = Script({0.0: Plan({0: ONE})})
    outcome = replay(workload(1.5), policy, costs=ChangeCosts(start=0.75))
    assert outcome.jobs[0].end == 2.25
    assert outcome.timeline == ((0.0, (1, 0)), (3.0, (0, 0)))


@pytest.mark.parametrize(("wake_at", "asked"), [(0.3, 1.0), (1.0, 1.0), (1.2, 2.0), (2.0, 2.0)])
def test_timer_goes_off_between_slots(wake_at: float, asked: float) -> None:
    policy = Script({0.0: Plan(wake_at=wake_at)})
    replay(workload(), policy)
    assert policy.asked == [0.0, asked]


@pytest.mark.parametrize("wake_at", [0.3, 1.2])
def test_timer_goes_off_when_it_says_where_there_are_no_slots(wake_at: float) -> None:
    policy = Script({0.0: Plan(wake_at=wake_at)})
    replay(workload(slotted=False), policy)
    assert policy.asked == [0.0, wake_at]


def test_slotted_policy_is_woken_at_whole_times_also_where_there_are_no_slots() -> None:
    plans = {0.0: Plan(wake_at=0.5), 1.0: Plan({0: ONE}), 2.0: Plan(wake_at=2.75)}
    policy = Script(plans, slotted=True)
    replay(workload(2.5, slotted=False), policy, outages=[Outage(1, 0.25)])
    assert policy.asked == [0.0, 0.25, 1.0, 2.0, 2.75, 3.0, 3.5]


def test_slotted_policy_is_woken_while_jobs_are_there_or_still_to_come() -> None:
    policy = Script({0.0: Plan(), 3.0: Plan({0: ONE})}, slotted=True)
    replay(workload(1.5, arrival=3.0), policy, outages=[Outage(1, 1.0)])
    assert policy.asked == [1.0, 2.0, 3.0, 4.0, 5.0]
