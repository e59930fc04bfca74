"""OASiS and recourse as a service asks them, and what comes of each event."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from oasis.driver.driver import Driver
from oasis.driver.entry import Facts, Submission
from oasis.driver.events import (
    EVENTS,
    Advance,
    Cancel,
    Event,
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
from oasis.model.errors import InstanceError
from oasis.model.utility import Constant
from oasis.online.answers import Change, Completion, Progress, Totals
from oasis.online.oasis import OASiS
from oasis.online.prices import PriceBounds
from oasis.online.recourse.policy import Recourse
from oasis.scheduling.job import Allocation
from oasis.scheduling.policy import BasePolicy, Plan, View
from oasis.scheduling.site import site_of
from tests import builders

CLUSTER = builders.cluster(gpus=2.0, servers=2)
LOOKAHEAD = 8
job = partial(builders.job, workers=4)  # all four GPUs unless it says otherwise


def recourse(**options: Any) -> LiveScheduler:
    return LiveScheduler(Recourse.rolling(LOOKAHEAD, **options), CLUSTER)


def irrevocable(**options: Any) -> LiveScheduler:
    past = [job("cheap", 0, 4, 1.0, 7), job("dear", 0, 1, 20.0, 7)]
    bounds = PriceBounds.from_jobs(past, CLUSTER, LOOKAHEAD)
    return LiveScheduler(OASiS.rolling(LOOKAHEAD, bounds, **options), CLUSTER)


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
def test_an_event_comes_back_from_its_line_in_a_journal(event: Event) -> None:
    assert event_of(json.loads(json.dumps(plain_event(event)))) == event
    assert EVENTS[type(event).__name__] is type(event)


@BOTH
def test_patience_is_twice_the_lookahead_unless_given(make: Make) -> None:
    for given, most in (({}, 2 * LOOKAHEAD), ({"patience": 5}, 5)):
        core = make(**given)
        core._take_in(Submit(replace(job("a", 0, 1, 5.0), utility=Constant(5.0))))
        policy: Any = core.policy
        assert len(policy.live[0].table) == most


@BOTH
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 0}, "patience: expected an integer >= 1, got 0"),
        ({"patience": 2.5}, "patience: expected an integer >= 1, got 2.5"),
        ({"patience": 2 * 10**6 + 1}, "patience: expected an integer <= 2000000, got 2000001"),
    ],
)
def test_bad_patience_is_refused(make: Make, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        make(**options)
    assert str(caught.value) == message


def test_an_early_end_is_now_if_it_runs_now_and_otherwise_the_slot_before() -> None:
    core = recourse()
    core._take_in(Submit(replace(job("a", 0, 2, 8.0), utility=Constant(8.0))))
    now = deepcopy(core)
    now._take_in(FinishEarly("a"))
    assert now._completed == [Completion("a", 0, 8.0)]
    for event in (Advance(1), LoseServer("w#0"), LoseServer("w#1")):
        core._take_in(event)
    assert core._planned()["a"][0] is None
    core._take_in(FinishEarly("a"))
    assert core._completed == [Completion("a", 0, 8.0)]


def test_a_promise_that_can_be_kept_elsewhere_is_kept() -> None:
    core = irrevocable()
    core._take_in(Submit(replace(job("a", 0, 2, 20.0, 7), chunks=2)))
    before = core._schedules()["a"]
    (server,) = set(before.workers[:, 1].tolist())
    assert core._take_in(LoseServer(f"w#{server}")) == Change(moved=("a",))
    after = core._schedules()["a"]
    assert set(after.workers[:, 1].tolist()) == {1 - server}
    assert after.completion == before.completion


@BOTH
def test_each_event_is_answered_and_counted(make: Make) -> None:
    core = make()
    decision: Any = core._take_in(Submit(job("a", 0, 2, 20.0, 7)))
    assert decision.admitted
    assert core.last_change == Change(utility=20.0)
    assert core.totals == Totals(submitted=1)
    assert core._take_in(Cancel("a")) == core.last_change == Change(utility=-20.0)
    assert core.totals == Totals(submitted=1, cancelled=1)
    core._take_in(Submit(job("b", 0, 2, 20.0, 7)))
    # A completion in the course of time is no loss.
    assert core._take_in(Advance(5)) == Progress(5, (Completion("b", 1, 20.0),))
    assert core.last_change == Change()
    counts = Totals(submitted=2, cancelled=1, completed=1, worker_slots_done=8, utility=20.0)
    assert core.totals == counts == Totals.from_dict(json.loads(json.dumps(counts.to_dict())))
    assert core._take_in(Advance(5)) == Progress(5), "going nowhere is allowed"
    with pytest.raises(InstanceError, match="now: expected an integer >= 5, got 4"):
        core._take_in(Advance(4))
    assert core.calls == 5


def test_a_job_that_oasis_rejects_is_forgotten_and_counted_as_refused() -> None:
    core = irrevocable()
    core._take_in(Submit(job("a", 0, 8, 20.0, 7)))
    core._take_in(Submit(job("b", 0, 1, 1.0, 7)))
    assert [live.job.id for live in core._driver.jobs.values()] == ["a"]
    assert core.totals == Totals(submitted=2, refused=1)


class OnFirst:
    """Puts every job on the first machine, and notes what it is told."""

    name, slotted, parameters = "on-first", False, {}

    def reset(self, site: Any) -> None:
        self.seen: list[tuple[list[str], list[str]]] = []

    def decide(self, view: Any) -> Plan:
        self.seen.append(([job.id for job in view.finished], [job.id for job in view.evicted]))
        return Plan({job.index: Allocation(((0, 1),)) for job in view.arrived})


def test_a_job_that_is_done_is_not_evicted_from_a_machine_that_goes_down() -> None:
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
    quarters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the service takes no step in which nobody is asked, but the last, to the end."""
    policy, steps = Waking(quarters / 4), list[int]()
    core = LiveScheduler(policy, CLUSTER)
    step = core._driver.step

    def noted(slot: int, *args: Any, **options: Any) -> Any:
        steps.append(slot)
        return step(slot, *args, **options)

    monkeypatch.setattr(core._driver, "step", noted)
    core._take_in(Submit(job("a", 0, 1)))
    core._take_in(Advance(6))
    first = math.ceil(Fraction(quarters, 4))
    assert policy.asked == [0, first]
    assert steps == [0, first, 6]
