"""Live schedulers at small: each call and event, what it answers and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import oasis
from baselines.registry import CONTROLLERS
from oasis import Cluster, Constant, Deadline, InstanceError, OasisError, Piecewise
from oasis.driver.driver import Driver
from oasis.driver.entry import Entry, Facts, Submission
from oasis.driver.events import (
    EVENTS,
    Advance,
    Cancel,
    FinishEarly,
    LoseServer,
    ReserveWindow,
    RestoreServer,
    Revise,
    Submit,
    event_of,
    plain_event,
)
from oasis.driver.live import LiveScheduler
from oasis.online.answers import Change, Completion, Delay, Progress, Totals
from oasis.online.prices import PriceBounds
from oasis.online.recourse.params import RecourseParams
from oasis.scheduling import BasePolicy, Plan, Site, View
from oasis.scheduling.job import NOTHING, Allocation
from oasis.scheduling.site import policy_job, site_of
from tests import builders
from tests.live import KINDS, random_job

CLUSTER = builders.cluster(gpus=2.0, servers=2)
job = partial(builders.job, workers=4)  # all four GPUs unless it says otherwise


def recourse(lookahead: int = 8, **options: Any) -> LiveScheduler:
    return LiveScheduler.recourse(CLUSTER, lookahead, **options)


def irrevocable(**options: Any) -> LiveScheduler:
    past = [job("cheap", 0, 4, 1.0, 7), job("dear", 0, 1, 20.0, 7)]
    return LiveScheduler.oasis(CLUSTER, 8, PriceBounds.from_jobs(past, CLUSTER, 8), **options)


def test_slots_are_absolute_and_the_plan_reaches_lookahead_slots_ahead():
    scheduler = recourse(lookahead=3)
    scheduler.advance(1000)
    assert scheduler.submit(job("late", 1000, 3, 1.0, 9)).completion == 1002
    waits = scheduler.submit(job("waits", 1000, 1, 0.1, 9))
    assert (waits.admitted, waits.completion) == (True, None)
    assert waits.reason == "waits: there is no room for it yet"
    assert scheduler.jobs == ("late", "waits")
    assert list(scheduler.plan()) == ["late"]
    scheduler.advance(1001)  # slot 1003 comes within reach
    assert scheduler.plan()["waits"].completion == 1003
    assert list(scheduler.plan(slots=2)) == ["late"]
    assert scheduler.plan(slots=1)["late"].workers[:, 0].tolist() == [1001, 1001]


def test_progress_names_what_completed_and_what_can_earn_nothing_any_more():
    scheduler = recourse()
    scheduler.submit(job("dear", 0, 2, 9.0, 1))
    assert scheduler.submit(job("cheap", 0, 2, 1.0, 2)).completion is None
    assert scheduler.advance(1) == Progress(1, (), ())
    assert scheduler.advance(2) == Progress(2, (Completion("dear", 1, 9.0),), ("cheap",))
    totals = scheduler.totals
    assert (totals.submitted, totals.completed, totals.given_up) == (2, 1, 1)
    assert (totals.utility, totals.worker_slots_done, totals.given_up_after_start) == (9.0, 8, 0)
    assert scheduler.jobs == ()


def test_a_quote_names_who_would_be_delayed_and_who_would_be_displaced():
    scheduler = recourse()
    scheduler.submit(job("patient", 0, 2, 5.0, 7))
    quote = scheduler.quote(job("urgent", 0, 1, 5.0, 0))
    assert quote.decision.completion == 0
    assert quote.change == Change(delayed=(Delay("patient", 1, 2),), utility=5.0)
    assert scheduler.quote(job("huge", 0, 8, 90.0, 7)).change == Change(
        displaced=("patient",), utility=85.0
    )
    assert scheduler.jobs == ("patient",)
    assert (scheduler.calls, scheduler.totals.submitted) == (1, 1)


def test_a_job_that_is_done_before_its_time_completes_where_it_runs():
    scheduler = recourse()
    scheduler.submit(job("long", 0, 4, 9.0, 7))
    scheduler.submit(job("next", 0, 1, 1.0, 7))
    scheduler.advance(2)
    change = scheduler.finish("long")
    assert change.moved == ("next",)
    assert scheduler.plan()["next"].completion == 2
    assert (scheduler.totals.completed, scheduler.totals.utility) == (1, 9.0)
    with pytest.raises(InstanceError, match="job_id: expected a live job, got 'long'"):
        scheduler.finish("long")


def test_revised_work_is_planned_for():
    scheduler = recourse()
    scheduler.submit(job("long", 0, 4, 9.0, 7))
    scheduler.advance(1)
    scheduler.revise("long", 4)
    assert scheduler.plan()["long"].completion == 1
    scheduler.revise("long", 24)
    assert scheduler.plan()["long"].completion == 6
    assert scheduler.revise("long", 400).given_up == ("long",)


@pytest.mark.parametrize("make", [recourse, irrevocable])
def test_the_work_of_several_jobs_is_revised_at_once(make):
    one, other = make(), make()
    for scheduler in (one, other):
        scheduler.submit(job("a", 0, 2, 19.0, 7))
        scheduler.submit(job("b", 0, 2, 19.0, 7))
        scheduler.advance(1)
        assert set(scheduler.jobs) == {"a", "b"}
    calls = one.calls
    one.revise_all({"b": 3, "a": 5})
    assert one.calls == calls + 1
    work = {name: int(schedule.worker_slots) for name, schedule in one.plan().items()}
    assert work == {"a": 5, "b": 3}
    other.revise_all({"a": 5, "b": 3})
    assert other.plan() == one.plan(), "the order of the names means nothing"
    before = one.plan()
    for wrong, message in (
        ({"a": 1, "c": 1}, "job_id: expected a live job, got 'c'"),
        ({"a": 1, "b": 0}, r"remaining_work\.b: expected an integer >= 1"),
    ):
        with pytest.raises(InstanceError, match=message):
            one.revise_all(wrong)
        assert one.plan() == before, "nothing was changed"
    assert one.revise_all({}).given_up == ()


@pytest.mark.parametrize("wrong", [[], None, [("a", 1)], "a"])
@pytest.mark.parametrize("make", [recourse, irrevocable])
def test_revised_work_that_is_no_mapping_is_refused_in_one_line(make, wrong):
    scheduler = make()
    scheduler.submit(job("a", 0, 2, 19.0, 7))
    before, calls = scheduler.plan(), scheduler.calls
    with pytest.raises(InstanceError) as caught:
        scheduler.revise_all(wrong)
    expected = "expected an object of worker-slots by id"
    assert str(caught.value) == f"remaining_work: {expected}, got {wrong!r}"
    assert (scheduler.plan(), scheduler.calls) == (before, calls), "nothing was changed"


def test_a_promise_is_the_last_slot_that_is_nearly_as_good_as_what_is_planned():
    """Nothing is lost if the job, which has until slot 7, ends in slot 3 instead of slot 1."""
    scheduler = recourse(commitment="arrival")
    scheduler.submit(job("promised", 0, 2, 9.0, 7))
    assert (scheduler.plan()["promised"].completion, scheduler.promised("promised")) == (1, 7)
    change = scheduler.lose("w#0")
    assert (change.broken, change.delayed) == ((), (Delay("promised", 1, 3),))


LATER_IS_WORSE = Piecewise(delays=(1.0, 2.0), values=(9.0, 6.0))


@pytest.mark.parametrize(
    ("make", "utility"),
    [
        (lambda: recourse(commitment="arrival"), LATER_IS_WORSE),
        (irrevocable, Deadline(9.0, 7.0)),
    ],
)
def test_a_promise_that_a_lost_server_breaks_is_named(make, utility):
    scheduler = make()
    scheduler.submit(replace(job("promised", 0, 2, 9.0, 7), utility=utility))
    assert scheduler.promised("promised") == 1
    change = scheduler.lose("w#0")
    assert (change.broken, change.delayed) == (("promised",), (Delay("promised", 1, 3),))
    assert scheduler.promised("promised") is None
    assert set(scheduler.plan()["promised"].workers[:, 1].tolist()) == {1}
    assert scheduler.totals.broken_promises == 1
    scheduler.restore("w#0")
    assert scheduler.submit(job("next", 0, 1, 9.0, 1, workers=2)).completion in (0, 1)


def test_oasis_moves_nobody_for_a_newcomer_or_when_room_comes_free():
    scheduler = irrevocable()
    scheduler.submit(job("first", 0, 2, 9.0, 7))
    scheduler.submit(job("second", 0, 2, 9.0, 7))
    assert {name: s.completion for name, s in scheduler.plan().items()} == {"first": 1, "second": 3}
    assert scheduler.cancel("first").utility == -9.0
    assert scheduler.last_change.moved == ()
    assert scheduler.plan()["second"].completion == 3
    assert scheduler.submit(job("third", 0, 2, 9.0, 7)).completion == 1


def test_oasis_gives_up_what_no_server_is_left_for():
    scheduler = irrevocable()
    scheduler.submit(job("only", 0, 2, 9.0, 7))
    scheduler.advance(1)
    scheduler.lose("w#0")
    change = scheduler.lose("w#1")
    assert (change.given_up, change.broken) == (("only",), ())  # broken by the first loss
    assert (scheduler.totals.worker_slots_wasted, scheduler.totals.broken_promises) == (4, 1)
    assert not scheduler.submit(job("next", 1, 1, 9.0, 7)).admitted


def test_the_prices_of_a_server_that_comes_back_are_those_of_what_is_on_it():
    scheduler = irrevocable()
    ledger = scheduler.policy.commitments.ledger
    before = ledger.worker_prices
    scheduler.lose("w#1")
    scheduler.advance(5)
    scheduler.restore("w#1")
    assert np.allclose(ledger.worker_prices, before, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("submit", {"job": job("a", 3, 1, 1.0, 1)}, "arrival: expected the present slot 2, got 3"),
        ("submit", {"job": job("b", 2, 1, 1.0, 1)}, "id: expected the id of no live job, got 'b'"),
        ("submit", {"job": "b"}, "job: expected an object of oasis.Job, got 'b'"),
        (
            "submit",
            {"job": replace(job("a", 2, 1, 1.0, 1), worker={"tpu": 1.0})},
            "worker.tpu",
        ),
        ("quote", {"job": job("a", 1, 1, 1.0, 1)}, "arrival: expected the present slot 2, got 1"),
        ("advance", {"now": 1}, "now: expected an integer >= 2, got 1"),
        ("advance", {"now": 2.5}, "now: expected an integer >= 0, got 2.5"),
        ("cancel", {"job_id": "x"}, "job_id: expected a live job, got 'x'"),
        ("finish", {"job_id": "w"}, "job_id: expected a job that has run, got 'w'"),
        (
            "revise",
            {"job_id": "b", "remaining_work": 0},
            "remaining_work.b: expected an integer >= 1",
        ),
        ("lose", {"server": "nowhere"}, "server: expected the id of a server, got 'nowhere'"),
        ("lose", {"server": "w#0"}, "server: expected a server that is not lost, got 'w#0'"),
        ("restore", {"server": "w#1"}, "server: expected a lost server, got 'w#1'"),
        ("plan", {"slots": 0}, "slots: expected an integer >= 1, got 0"),
        ("promised", {"job_id": "x"}, "job_id: expected a live job, got 'x'"),
    ],
)
def test_what_cannot_be_is_one_line_and_changes_nothing(tmp_path, call, arguments, message):
    scheduler = recourse()
    scheduler.advance(2)
    scheduler.lose("w#0")
    scheduler.submit(replace(job("b", 2, 4, 1.0, 9), utility=Constant(9.0)))
    scheduler.submit(replace(job("w", 2, 4, 1.0, 9), utility=Constant(1.0)))
    scheduler.save(tmp_path / "before")
    with pytest.raises(OasisError, match=message) as caught:
        getattr(scheduler, call)(**arguments)
    assert "\n" not in str(caught.value)
    scheduler.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lookahead": 0}, "lookahead: expected an integer >= 1, got 0"),
        ({"patience": 0}, "patience: expected an integer >= 1, got 0"),
        ({"patience": 2.5}, "patience: expected an integer >= 1, got 2.5"),
        ({"patience": 2 * 10**6 + 1}, "patience: expected an integer <= 2000000, got 2000001"),
        ({"commitment": "never"}, "commitment: expected one of arrival, start, none"),
        ({"seconds": -1}, "seconds: expected a finite number >= 0, got -1"),
        ({"seed": -1}, "seed: expected an integer >= 0, got -1"),
        ({"bounds": object()}, "bounds: only jobs that are promised something"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        LiveScheduler.recourse(CLUSTER, **{"lookahead": 4, **options})
    if "patience" in options:
        with pytest.raises(ValueError, match=message):
            irrevocable(**options)


def test_all_options_survive_saving_and_bounds_of_other_resources_are_refused(tmp_path):
    bounds = PriceBounds.from_jobs([job("a", 0, 1, 1.0, 1)], CLUSTER, 4)
    limits: dict[str, Any] = {"patience": 5, "seconds": 2.0, "min_utility_fraction": 0.25}
    params = RecourseParams(rounds=1, growth=0.5)
    scheduler = recourse(commitment="arrival", params=params, seed=7, bounds=bounds, **limits)
    scheduler.save(tmp_path / "saved")
    loaded: Any = LiveScheduler.load(tmp_path / "saved").policy
    assert loaded.making() == scheduler.policy.making()
    assert (loaded.making()["growth"], loaded.patience, loaded.lookahead) == (0.5, 5, 8)
    other = Cluster(("gpu", "cpu"), CLUSTER.worker_servers, CLUSTER.ps_servers, 1.0)
    with pytest.raises(ValueError, match="bounds: expected one for each of gpu, cpu"):
        LiveScheduler.oasis(other, 4, bounds)


def test_a_job_that_holds_something_stays_in_its_form_when_another_comes_in_the_same_slot():
    instance = oasis.generate("kinds", jobs=8, worker_servers=3, ps_servers=2, horizon=8, seed=0)
    service = oasis.LiveScheduler.recourse(instance.cluster, 8)
    for job in instance.jobs_by_arrival():
        service.advance(max(service.now, job.arrival // 3 * 3))
        service.submit(dataclasses.replace(job, arrival=service.now))
    assert service.advance(8).completed


@pytest.mark.parametrize("kind", KINDS)
def test_several_slots_at_once_are_those_slots_one_by_one(kind):
    for seed in range(4):
        one, other = KINDS[kind](), KINDS[kind]()
        rng = np.random.default_rng(seed)
        for k in range(10):
            for scheduler in (one, other):
                scheduler.submit(random_job(np.random.default_rng([seed, k]), f"j{k}", one.now))
            ahead = one.now + int(rng.choice([1, 2, 4]))
            steps = [other.advance(now) for now in range(other.now + 1, ahead + 1)]
            leap = one.advance(ahead)
            assert leap.completed == tuple(done for step in steps for done in step.completed)
            assert leap.given_up == tuple(name for step in steps for name in step.given_up)
            assert one.plan() == other.plan()
        assert one.totals == other.totals


class Idle(BasePolicy):
    """Runs nothing; it notes when it was asked."""

    slotted = True

    def reset(self, site: Site) -> None:
        super().reset(site)
        self.asked: list[float] = []

    def decide(self, view: View) -> Plan:
        self.asked.append(view.now)
        return Plan()


@pytest.mark.parametrize("steps", [(5,), (1, 2, 3, 4, 5), (2, 4, 5)])
def test_a_policy_in_slots_is_asked_in_every_slot_with_a_live_job(steps):
    scheduler = LiveScheduler(Idle(), CLUSTER)
    for begin, there in ((0, False), (5, True), (10, False)):
        if there:
            scheduler.submit(job("a", begin, 1, 1.0, 7))
        for step in steps:
            scheduler.advance(begin + step)
        if there:
            scheduler.cancel("a")
    assert scheduler.policy.asked == [5, 6, 7, 8, 9, 10, 10]


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_controller_is_quoted_on_a_copy_of_itself(name):
    """Whatever its queue goes by is that of the copy."""
    scheduler = LiveScheduler(CONTROLLERS[name](), CLUSTER)
    quote = scheduler.quote(job("a", 0, 1, 1.0, 7)).decision
    assert quote == scheduler.submit(job("a", 0, 1, 1.0, 7))


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_service_may_be_idle_for_any_time(jobs, monkeypatch):
    """Calls from outside may come at any time, which a simulation knows all of."""
    monkeypatch.setattr("oasis.driver.loop.MOST_IDLE_CALLS", 20)
    instance = oasis.generate("testbed", jobs=1, seed=1)
    scheduler = LiveScheduler(Idle(), instance.cluster)
    for job in instance.jobs[:jobs]:
        scheduler.submit(replace(job, arrival=0))
    for _ in range(50):
        scheduler.advance(scheduler.now + 1)
    assert scheduler.now == 50


BOTH = pytest.mark.parametrize("make", [recourse, irrevocable])
Make = Callable[..., LiveScheduler]


@pytest.mark.parametrize(
    "event",
    [
        Submit(job("a", 0, 1, 5.0)),
        Advance(3),
        Cancel("a"),
        FinishEarly("a"),
        Revise({"a": 3}),
        LoseServer("w#0"),
        RestoreServer("w#0"),
        ReserveWindow("firmware", 1, 3, ["w#0", "w#1"]),
    ],
)
def test_an_event_comes_back_from_its_line_in_a_journal(event):
    assert event_of(json.loads(json.dumps(plain_event(event)))) == event
    assert EVENTS[type(event).__name__] is type(event)


def test_an_early_end_is_now_if_it_runs_now_and_otherwise_the_slot_before():
    core = recourse()
    core._service.take_in(Submit(replace(job("a", 0, 2, 8.0), utility=Constant(8.0))))
    now = deepcopy(core)
    now._service.take_in(FinishEarly("a"))
    assert now._service._completed == [Completion("a", 0, 8.0)]
    for event in (Advance(1), LoseServer("w#0"), LoseServer("w#1")):
        core._service.take_in(event)
    assert core._service._planned()["a"][0] is None
    core._service.take_in(FinishEarly("a"))
    assert core._service._completed == [Completion("a", 0, 8.0)]


def test_a_promise_that_can_be_kept_elsewhere_is_kept():
    core = irrevocable()
    core._service.take_in(Submit(replace(job("a", 0, 2, 20.0, 7), chunks=2)))
    before = core._service.schedules()["a"]
    (server,) = set(before.workers[:, 1].tolist())
    assert core._service.take_in(LoseServer(f"w#{server}")) == Change(moved=("a",))
    after = core._service.schedules()["a"]
    assert set(after.workers[:, 1].tolist()) == {1 - server}
    assert after.completion == before.completion


@BOTH
def test_each_event_is_answered_and_counted(make):
    core = make()
    decision: Any = core._service.take_in(Submit(job("a", 0, 2, 20.0, 7)))
    assert decision.admitted
    assert core.last_change == Change(utility=20.0)
    assert core.totals == Totals(submitted=1)
    assert core._service.take_in(Cancel("a")) == core.last_change == Change(utility=-20.0)
    assert core.totals == Totals(submitted=1, cancelled=1)
    core._service.take_in(Submit(job("b", 0, 2, 20.0, 7)))
    # A completion in the course of time is no loss.
    assert core._service.take_in(Advance(5)) == Progress(5, (Completion("b", 1, 20.0),))
    assert core.last_change == Change()
    counts = Totals(submitted=2, cancelled=1, completed=1, worker_slots_done=8, utility=20.0)
    assert core.totals == counts == Totals.from_dict(json.loads(json.dumps(counts.to_dict())))
    assert core._service.take_in(Advance(5)) == Progress(5), "going nowhere is allowed"
    with pytest.raises(InstanceError, match="now: expected an integer >= 5, got 4"):
        core._service.take_in(Advance(4))
    assert core.calls == 5


class OnFirst:
    """Puts every job on the first machine, and notes what it is told."""

    name, slotted, parameters = "on-first", False, {}

    def reset(self, site: Any) -> None:
        self.seen: list[tuple[list[str], list[str]]] = []

    def decide(self, view: Any) -> Plan:
        self.seen.append(([job.id for job in view.finished], [job.id for job in view.evicted]))
        return Plan({job.index: Allocation(((0, 1),)) for job in view.arrived})


def test_a_job_that_is_done_is_not_evicted_from_a_machine_that_goes_down():
    policy = OnFirst()
    driver: Driver[Submission] = Driver(policy, site_of(CLUSTER))
    specs = {"0": Submission("0", job("a", 0, 3, 1.0, 7))}
    driver.step(0, Facts(specs))
    outcome = driver.step(3, Facts(specs, done={"0": 12.0}, down=frozenset({0})))
    assert outcome.completed == ["0"]
    assert policy.seen == [([], []), (["a"], [])]


class Waking(BasePolicy):
    """Does nothing but ask to be woken at one time."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.asked: list[float] = []

    def decide(self, view: View) -> Plan:
        self.asked.append(view.now)
        return Plan(wake_at=self.at if view.now < self.at else None)


@pytest.mark.parametrize("quarters", range(1, 17))
def test_a_policy_is_woken_in_the_first_slot_that_does_not_begin_before_its_time(
    quarters, monkeypatch
):
    """And the service takes no step in which nobody is asked, but the last, to the end."""
    policy, steps = Waking(quarters / 4), list[int]()
    core = LiveScheduler(policy, CLUSTER)
    step = core._service._driver.step

    def noted(slot: int, *args: Any, **options: Any) -> Any:
        steps.append(slot)
        return step(slot, *args, **options)

    monkeypatch.setattr(core._service._driver, "step", noted)
    core._service.take_in(Submit(job("a", 0, 1)))
    core._service.take_in(Advance(6))
    first = math.ceil(Fraction(quarters, 4))
    assert policy.asked == [0, first]
    assert steps == [0, first, 6]


INSTANCE = oasis.generate("testbed", jobs=2, seed=1)
SITE = site_of(INSTANCE.cluster)


def entry(resize: str = "elastic") -> Entry[Submission]:
    job = INSTANCE.jobs[0]
    seen = policy_job(job, SITE, 0)
    return Entry(Submission("u", job, resize=resize), seen, job.arrival, seen.work)


def test_a_change_is_a_resize_and_a_restart_where_no_task_is_kept():
    made = entry()
    for workers, resizes, restarts in (
        (((0, 2),), 0, 0),  # it begins
        (((0, 3),), 1, 0),
        (((0, 3),), 1, 0),  # nothing changes
        (((1, 3),), 2, 1),  # all tasks are others
        ((), 2, 1),
        (((1, 1),), 3, 2),  # it goes on after a pause
    ):
        made.allocation = Allocation(workers) if workers else NOTHING
        made.put_in_force()
        assert (made.resizes, made.restarts) == (resizes, restarts)
    made = entry("restart")  # a job that restarts when it is resized counts each resize
    for count in (2, 3):
        made.allocation = Allocation(((0, count),))
        made.put_in_force()
    assert (made.resizes, made.restarts) == (1, 1)
