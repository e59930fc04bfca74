"""OASiS and recourse as the world of a service calls them, and what is counted of each call."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.driver.service import CALLS, Events, Service, Submission, carry_out, counted
from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.errors import InstanceError
from oasis.model.schedule import Schedule
from oasis.model.utility import Constant
from oasis.online.answers import (
    Change,
    Completion,
    Progress,
    Totals,
)
from oasis.online.oasis import OASiS
from oasis.online.prices import PriceBounds
from oasis.online.recourse.policy import WAITS, Recourse
from oasis.online.rolling import restricted
from oasis.scheduling.job import Allocation
from oasis.scheduling.policy import BasePolicy, Plan, View
from oasis.scheduling.site import site_of
from tests import builders

CLUSTER = builders.cluster(gpus=2.0, servers=2)
LOOKAHEAD = 8
job = partial(builders.job, workers=4)  # all four GPUs unless it says otherwise


def recourse(**options: Any) -> Service:
    return Service(Recourse.rolling(LOOKAHEAD, **options), CLUSTER)


def irrevocable(cluster: Cluster = CLUSTER, **options: Any) -> Service:
    past = [job("cheap", 0, 4, 1.0, 7), job("dear", 0, 1, 20.0, 7)]
    bounds = PriceBounds.from_jobs(past, CLUSTER, LOOKAHEAD)
    return Service(OASiS.rolling(LOOKAHEAD, bounds, **options), cluster)


def live_of(core: Service, name: str) -> Any:
    """The job as OASiS keeps it."""
    policy: Any = core.policy
    return policy.live[core.find(name).job.index]


BOTH = pytest.mark.parametrize("make", [recourse, irrevocable])
Make = Callable[..., Service]


# -- what every core has ---------------------------------------------------------------------------


@BOTH
def test_patience_is_twice_the_lookahead_unless_given(make: Make) -> None:
    for given, most in (({}, 2 * LOOKAHEAD), ({"patience": 5}, 5)):
        core = make(**given)
        core.submit(replace(job("a", 0, 1, 5.0), utility=Constant(5.0)))
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


@BOTH
def test_servers_are_located_by_their_place_among_the_machines(make: Make) -> None:
    core = make()
    assert core.locate("w#1", lost=False) == 1
    assert core.locate("p", lost=False) == 2
    core.lose(1)
    assert core.locate("w#1", lost=True) == 1
    with pytest.raises(
        InstanceError, match="server: expected a server that is not lost, got 'w#1'"
    ):
        core.locate("w#1", lost=False)
    core.restore_server(1)
    with pytest.raises(InstanceError, match="server: expected a lost server, got 'w#1'"):
        core.locate("w#1", lost=True)


@BOTH
@pytest.mark.parametrize("server", ["w", "x", 0, None])
def test_the_id_of_a_group_is_the_id_of_no_server(make: Make, server: Any) -> None:
    with pytest.raises(InstanceError, match="server: expected the id of a server, got "):
        make().locate(server, lost=False)


@BOTH
def test_a_new_job_must_fit_the_present_and_the_cluster(make: Make) -> None:
    core = make()
    core.submit(job("a", 0, 1, 5.0))
    for made, message in (
        ("a", "job: expected a job, got 'a'"),
        (job("b", 1, 1, 5.0), "arrival: expected the present slot 0, got 1 (job 'b')"),
        (job("a", 0, 1, 5.0), "id: expected the id of no live job, got 'a'"),
        (
            replace(job("b", 0, 1, 5.0), worker={"tpu": 1.0}),
            "worker.tpu: expected one of the resources gpu",
        ),
    ):
        with pytest.raises(InstanceError) as caught:
            core.check_new(made)  # type: ignore[arg-type]
        assert str(caught.value) == message


@BOTH
def test_a_job_is_found_by_its_id_while_it_lives(make: Make) -> None:
    core = make()
    core.submit(job("a", 0, 1, 5.0))
    assert core.find("a").job.id == "a"
    core.advance(1)
    with pytest.raises(InstanceError, match="job_id: expected a live job, got 'a'"):
        core.find("a")


@BOTH
def test_a_copy_goes_its_own_way(make: Make) -> None:
    core = make()
    core.submit(job("a", 0, 2, 5.0))
    copy = core._copy()
    assert copy.cluster is core.cluster  # what nobody changes is shared
    assert copy.find("a") is not core.find("a")
    copy.advance(2)
    copy.lose(0)
    assert core.now == 0
    assert core.planned()["a"][0] == Schedule("a", [[0, 0, 2], [0, 1, 2], [1, 0, 2], [1, 1, 2]], [])
    assert copy.planned() == {}


@BOTH
def test_what_a_policy_was_made_with_makes_it_again(make: Make) -> None:
    policy: Any = make(patience=5).policy
    again = type(policy).made(json.loads(json.dumps(policy.making())))
    assert again.parameters == policy.parameters
    assert again.making() == policy.making()


@BOTH
def test_a_saved_state_goes_on_as_the_service_would_have(make: Make) -> None:
    core = make()
    core.submit(job("a", 0, 3, 5.0))
    core.advance(1)
    core.submit(job("b", 1, 2, 7.0))
    core.lose(1)
    again = make()
    again.restore(json.loads(json.dumps(core.state())))
    assert (again.now, again._lost) == (core.now, core._lost)
    assert again.planned() == core.planned()
    for each in (core, again):
        each.advance(3)
        each.restore_server(1)
        each.submit(job("c", 3, 1, 9.0, 2))
    assert again.planned() == core.planned()
    assert again.state()["driver"] == core.state()["driver"]


@BOTH
def test_a_job_that_never_ran_has_no_early_end(make: Make) -> None:
    core = make()
    core.submit(job("a", 0, 4, 9.0, 20))
    core.submit(job("b", 0, 1, 5.0, 20))
    starts = {name: found.start for name, found in core.schedules().items()}
    assert len(starts) == 2
    waiting = core.find(max(starts, key=lambda name: starts[name]))
    with pytest.raises(InstanceError, match=r"job_id: expected a job that has run, got "):
        core.complete(waiting)


def test_an_early_end_is_now_if_it_runs_now_and_otherwise_the_slot_before() -> None:
    core = recourse()
    core.submit(replace(job("a", 0, 2, 8.0), utility=Constant(8.0)))
    now = core._copy()
    assert now.complete(now.find("a")).completed == [Completion("a", 0, 8.0)]
    core.advance(1)
    core.lose(0)
    core.lose(1)
    assert core.planned()["a"][0] is None
    assert core.complete(core.find("a")).completed == [Completion("a", 0, 8.0)]


def test_the_part_of_a_schedule_before_a_slot() -> None:
    schedule = Schedule("a", [[1, 0, 2], [3, 0, 1]], [[1, 0, 1], [3, 0, 1]])
    assert restricted(schedule, 4) == schedule
    assert restricted(schedule, 3) == Schedule("a", [[1, 0, 2]], [[1, 0, 1]])
    assert restricted(schedule, 1) is None


def test_a_job_without_a_schedule_is_planned_for_nothing() -> None:
    core = recourse()
    core.submit(job("long", 0, LOOKAHEAD, 50.0))
    decision, _ = core.submit(job("a", 0, 1, 5.0))
    assert (decision.admitted, decision.schedule, decision.reason) == (True, None, WAITS)
    assert core.planned()["a"] == (None, 0.0)
    core.advance(1)  # slot 8 comes within reach
    assert core.planned()["a"][1] == 5.0


# -- OASiS, irrevocable ----------------------------------------------------------------------------


def test_bounds_must_be_for_the_resources_of_the_cluster() -> None:
    other = Cluster(("gpu", "cpu"), CLUSTER.worker_servers, CLUSTER.ps_servers, 1.0)
    with pytest.raises(ValueError, match="bounds: expected one for each of gpu, cpu"):
        irrevocable(other)


def test_an_admitted_job_is_promised_its_completion_and_a_rejected_one_is_forgotten() -> None:
    core = irrevocable()
    first, _ = core.submit(job("a", 0, 8, 20.0, 7))
    assert (first.admitted, first.completion) == (True, 7)
    assert live_of(core, "a").promise == 7
    second, _ = core.submit(job("b", 0, 1, 1.0, 7))
    assert not second.admitted
    assert [live.job.id for live in core.live] == ["a"]


def test_a_cancelled_job_leaves_the_ledger_as_it_was() -> None:
    core = irrevocable()
    policy: Any = core.policy
    ledger = policy.held.ledger
    used, price = ledger.worker_used, ledger.worker_prices
    core.submit(job("a", 0, 3, 20.0, 7))
    assert ledger.worker_used.any()
    events = core.cancel(core.find("a"))
    assert np.array_equal(ledger.worker_used, used)
    assert np.array_equal(ledger.worker_prices, price)
    assert events.done == 0


def test_a_lost_server_moves_who_was_on_it_and_breaks_what_cannot_be_kept() -> None:
    core = irrevocable()
    core.submit(job("a", 0, 2, 20.0, 7))
    events = core.lose(0)
    assert events.broken == ["a"]
    live = live_of(core, "a")
    assert live.promise is None
    assert live.schedule is not None
    assert live.schedule.completion == 3
    assert set(live.schedule.workers[:, 1].tolist()) == {1}
    assert core.lose(2).broken == []  # nobody is there


def test_a_promise_that_can_be_kept_elsewhere_is_kept() -> None:
    core = irrevocable()
    core.submit(replace(job("a", 0, 2, 20.0, 7), chunks=2))
    live = live_of(core, "a")
    promise = live.promise
    assert live.schedule is not None
    (server,) = set(live.schedule.workers[:, 1].tolist())
    assert core.lose(server).broken == []
    assert set(live.schedule.workers[:, 1].tolist()) == {1 - server}
    assert live.schedule.completion == live.promise == promise


def test_a_job_for_which_nothing_is_left_is_given_up() -> None:
    core = irrevocable()
    core.submit(job("a", 0, 2, 20.0, 7))
    core.lose(0)
    events = core.lose(1)
    assert events.gone == ["a"]
    assert core.live == []


# -- calls and what they did -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "decision", "expected"),
    [
        ("submit", Decision("a", admitted=True), Totals(submitted=1)),
        ("submit", Decision("a", admitted=False), Totals(submitted=1, refused=1)),
        ("cancel", None, Totals(cancelled=1)),
        ("advance", None, Totals()),
    ],
)
def test_calls_are_counted_by_kind(call: str, decision: Decision | None, expected: Totals) -> None:
    assert counted(Totals(), call, decision, Events()) == expected
    assert counted(expected, call, None, Events()).refused == expected.refused


def test_what_happened_is_added_to_the_totals() -> None:
    ended = [Completion("a", 4, 2.5), Completion("c", 4, 0.5)]
    events = Events(ended, ["b", "d"], ["a", "b"], 1, done=9, wasted=3, cut_short=1)
    first = counted(Totals(), "advance", None, events)
    assert first == Totals(
        completed=2,
        given_up=2,
        given_up_after_start=1,
        broken_promises=2,
        worker_slots_done=9,
        worker_slots_wasted=3,
        cut_short=1,
        utility=3.0,
    )
    assert counted(first, "advance", None, events).utility == 6.0
    assert Totals.from_dict(json.loads(json.dumps(first.to_dict()))) == first


def test_there_is_one_function_for_each_call() -> None:
    names = "advance cancel finish lose reserve restore revise revise_all submit"
    assert sorted(CALLS) == names.split()


@BOTH
def test_going_nowhere_is_allowed_and_going_back_is_not(make: Make) -> None:
    core = make()
    core.advance(3)
    effect = carry_out(core, Totals(), "advance", {"now": 3})
    assert effect.answer == Progress(3)
    with pytest.raises(InstanceError) as caught:
        carry_out(core, Totals(), "advance", {"now": 2})
    assert str(caught.value) == "now: expected an integer >= 3, got 2"


@BOTH
@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("cancel", {"job_id": "b"}, "job_id: expected a live job, got 'b'"),
        ("finish", {"job_id": None}, "job_id: expected a live job, got None"),
        (
            "revise",
            {"job_id": "a", "remaining_work": 0},
            "remaining_work: expected an integer >= 1, got 0",
        ),
        ("lose", {"server": "q"}, "server: expected the id of a server, got 'q'"),
        ("restore", {"server": "p"}, "server: expected a lost server, got 'p'"),
    ],
)
def test_a_refused_call_changes_nothing(
    make: Make, call: str, arguments: dict[str, Any], message: str
) -> None:
    core = make()
    core.submit(job("a", 0, 2, 20.0, 7))
    before = json.dumps(core.state())
    with pytest.raises(InstanceError) as caught:
        carry_out(core, Totals(), call, arguments)
    assert str(caught.value) == message
    assert json.dumps(core.state()) == before


@BOTH
def test_a_decision_is_the_answer_to_submit_and_a_change_to_the_others(make: Make) -> None:
    core = make()
    effect = carry_out(core, Totals(), "submit", {"job": job("a", 0, 2, 20.0, 7)})
    assert isinstance(effect.answer, Decision)
    assert effect.change == Change(utility=20.0)
    assert effect.totals == Totals(submitted=1)
    effect = carry_out(core, effect.totals, "cancel", {"job_id": "a"})
    assert effect.answer == effect.change == Change(utility=-20.0)
    assert effect.totals == Totals(submitted=1, cancelled=1)


@BOTH
def test_a_completion_in_the_course_of_time_is_no_loss(make: Make) -> None:
    core = make()
    core.submit(job("a", 0, 2, 20.0, 7))
    effect = carry_out(core, Totals(), "advance", {"now": 5})
    assert effect.answer == Progress(5, (Completion("a", 1, 20.0),))
    assert effect.change == Change()
    assert effect.totals == Totals(completed=1, worker_slots_done=8, utility=20.0)


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
    core = Service(policy, CLUSTER)
    step = core.driver.step

    def noted(slot: int, *args: Any, **options: Any) -> Any:
        steps.append(slot)
        return step(slot, *args, **options)

    monkeypatch.setattr(core.driver, "step", noted)
    core.submit(job("a", 0, 1))
    core.advance(6)
    first = math.ceil(Fraction(quarters, 4))
    assert policy.asked == [0, first]
    assert steps == [0, first, 6]
