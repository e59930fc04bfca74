"""Effects of a calendar on a driver, for planners and for policies of the present slot."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import oasis
from baselines import FIFO, SRTF
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts, Submission
from oasis.model.calendar import Calendar, CalendarEntry
from oasis.model.errors import PolicyError
from oasis.model.schedule import SLOT
from oasis.scheduling.job import Allocation
from oasis.scheduling.policy import BasePolicy, Plan, Planner
from oasis.scheduling.site import Machine, Site, site_of
from tests import builders

PAIR = builders.cluster(gpus=4.0, servers=2)
EARLY = oasis.Deadline(1.0, 2.0)


def two(gpus: float = 4.0) -> Site:
    return Site(
        ("gpu",), (Machine("n0", (gpus,)), Machine("n1", (gpus,))), unit_seconds=60.0, slotted=True
    )


def job(name: str, slots: float, workers: int = 1, gpus: float = 4.0) -> oasis.Job:
    return oasis.Job(
        id=name,
        arrival=0,
        epochs=1,
        chunks=workers,
        minibatches=1,
        minibatch_time=slots,
        gradient_mb=0.0,
        worker={"gpu": gpus},
        ps={},
        utility=oasis.Constant(1.0),
    )


def run(
    policy: Any, site: Site, jobs: list[oasis.Job], calendar: Calendar, slots: int
) -> list[Any]:
    driver: Driver[Any] = Driver(policy, site)
    specs = {each.id: Submission(each.id, each) for each in jobs}
    done: dict[str, float] = {}
    seen = []
    for slot in range(slots):
        outcome = driver.boundary(slot, Facts(dict(specs), dict(done), calendar=calendar))
        assert outcome.error is None
        assert not outcome.failed
        for uid in outcome.completed:
            del specs[uid]
        held = {uid: entry.allocation.machines for uid, entry in driver.by_uid.items()}
        seen.append({uid: sorted(machines) for uid, machines in held.items() if machines})
        for uid, entry in driver.by_uid.items():
            done[uid] = done.get(uid, 0.0) + entry.allocation.worker_count
    return seen


def test_fifo_begins_no_job_that_would_be_interrupted() -> None:
    """It counts on the fewest workers that a job may have; a job that just fits begins."""
    for workers, slots, begin in product((1, 2), (1, 3), range(1, 7)):
        calendar = Calendar((CalendarEntry("w", begin, begin + 1, frozenset({0, 1})),))
        for fewest in {1, workers}:
            given = replace(job("a", float(slots), workers), min_workers=fewest)
            seen = run(FIFO(), two(), [given], calendar, 11)
            first = 0 if slots * workers // fewest <= begin else begin + 1
            held = [{"a": list(range(workers))}] * slots
            assert seen == [*[{}] * first, *held, *[{}] * (11 - first - slots)]
    elsewhere = Calendar((CalendarEntry("a", 0, 2, frozenset({1})),))
    assert run(FIFO(), two(), [job("long", 4.0)], elsewhere, 5) == [*[{"long": [0]}] * 4, {}]


def test_a_job_that_runs_is_paused_by_a_late_window_and_keeps_its_work() -> None:
    site, spec = two(), Submission("a", job("a", 4.0))
    driver: Driver[Any] = Driver(SRTF(), site)
    driver.boundary(0, Facts({"a": spec}))
    both = Calendar((CalendarEntry("w", 1, 3, frozenset({0, 1})),))
    driver.boundary(1, Facts({"a": spec}, {"a": 1.0}, calendar=both))
    assert not driver.by_uid["a"].allocation.workers
    assert driver.down == {0, 1}
    driver.boundary(3, Facts({"a": spec}, {"a": 1.0}, calendar=both))
    assert driver.by_uid["a"].allocation.workers
    assert not driver.down


class Fixed(BasePolicy):
    """Places jobs as it is told in slot 0, fails in slot 1, and leaves all as it is afterwards."""

    slotted = True

    def __init__(self, **places: tuple[tuple[int, int], ...]) -> None:
        self.places = places
        self.evicted: list[str] = []

    def decide(self, view: Any) -> Plan:
        if view.now == 1:
            raise ZeroDivisionError
        self.evicted += [each.id for each in view.evicted]
        self.free = view.free()
        return Plan({each.index: Allocation(self.places[each.id]) for each in view.arrived})


def test_a_closed_machine_is_left_though_the_policy_fails_which_is_told_later() -> None:
    policy = Fixed(a=((0, 1),), b=((1, 1),))
    driver: Driver[Any] = Driver(policy, two())
    specs = {name: Submission(name, job(name, 9.0)) for name in "ab"}
    driver.boundary(0, Facts(specs))
    closed = Calendar((CalendarEntry("w", 1, 3, frozenset({0})),))
    assert driver.boundary(1, Facts(specs, calendar=closed)).error is not None
    assert not driver.by_uid["a"].allocation.workers
    assert driver.by_uid["b"].allocation.workers
    driver.boundary(2, Facts(specs, calendar=closed))
    assert policy.evicted == ["a"]
    assert not driver.by_uid["a"].allocation.workers


class Ahead(BasePolicy):
    """Has `a` run on a machine; when `b` comes within the slot, plans that one there instead."""

    slotted, fails = True, False

    def decide(self, view: Any) -> Plan:
        if self.fails:
            raise ZeroDivisionError
        plan = {each.index: Allocation(((0, 1),)) for each in view.arrived}
        if view.now == 1 and view.arrived:
            plan[0] = Allocation(())
        return Plan(plan)


@pytest.mark.parametrize("fails", [False, True])
def test_a_job_that_was_planned_between_boundaries_on_a_machine_that_is_lost_never_began(
    fails: bool,
) -> None:
    policy = Ahead()
    driver: Driver[Any] = Driver(policy, two())
    specs = {name: Submission(name, job(name, 9.0)) for name in "ab"}
    driver.boundary(0, Facts({"a": specs["a"]}))
    assert driver.arrive(specs).error is None
    late = driver.by_uid["b"]
    assert (late.allocation.worker_count, late.begun, late.has_form) == (1, False, True)
    policy.fails = fails
    outcome = driver.boundary(1, Facts(specs, {"a": 1.0}, down=frozenset({0})))
    assert (outcome.error is not None) == fails
    late = driver.by_uid["b"]
    assert (late.allocation.worker_count, late.begun, late.has_form) == (0, False, False)


class Ignoring(Fixed, Planner):
    """Says that it plans around a calendar, and does not."""

    def plan_around(self, calendar: Calendar) -> None:
        pass

    def decide(self, view: Any) -> Plan:
        return Plan() if view.now else super().decide(view)


def test_a_planner_that_ignores_the_calendar_is_told_so() -> None:
    """Until the window begins it may do as it likes, also begin what will be interrupted."""
    site, spec, policy = two(), Submission("a", job("a", 4.0)), Ignoring(a=((0, 1),))
    driver: Driver[Any] = Driver(policy, site)
    closed = Calendar((CalendarEntry("w", 1, 3, frozenset({0})),))
    driver.boundary(0, Facts({"a": spec}, calendar=closed))
    assert policy.free == [machine.capacity for machine in site.machines]
    with pytest.raises(PolicyError, match=r"\[job a, server n0\]: is closed"):
        driver.step(1, Facts({"a": spec}, {"a": 1.0}, calendar=closed))


def test_nothing_is_planned_on_a_closed_server_not_even_what_asks_for_nothing() -> None:
    instance = oasis.generate("testbed", jobs=1, seed=1)
    light = replace(instance.jobs[0], worker={}, ps={}, gradient_mb=0.0, arrival=0)
    policy = oasis.OASiS.rolling(12, oasis.PriceBounds.from_instance(instance))
    driver: Driver[Any] = Driver(policy, site_of(instance.cluster))
    every = frozenset(range(len(driver.site.machines)))
    calendar = Calendar((CalendarEntry("w", 2, 5, every),))
    driver.boundary(0, Facts({"a": Submission("a", light)}, calendar=calendar))
    ((schedule, _),) = policy.planned().values()
    if schedule is not None:
        assert not np.isin(schedule.workers[:, SLOT], (2, 3, 4)).any()
