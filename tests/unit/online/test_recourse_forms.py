"""Recourse with jobs in several forms on machines of several kinds."""

from dataclasses import replace
from functools import cache

import pytest

import oasis
from oasis import (
    Cluster,
    Constant,
    Deadline,
    Form,
    Instance,
    Job,
    OASiS,
    Piecewise,
    Recourse,
    Server,
)
from oasis.driver.policy_state import policy_state, restore_policy
from oasis.online.recourse import Commitment, Replanner
from tests.builders import nightly
from tests.oracle import kinds
from tests.unit.states import plain_state

CASES = pytest.mark.parametrize("cases", [range(20), *nightly(range(20, 60))])
ON_AB = Cluster(
    ("gpu",),
    tuple(Server(kind, {"gpu": 1.0}, labels={"gpu": kind}) for kind in "ab"),
    (),
    slot_seconds=1.0,
)
COMMITMENTS: tuple[Commitment, ...] = ("none", "start", "arrival")


@cache
def solved(seed):
    given = kinds.instance(seed)
    return given, kinds.optimum(given)


def policies(given):
    """Every level of commitment, and every rule of admission; also on a horizon that rolls."""
    made = [Recourse(commitment, rounds=3) for commitment in COMMITMENTS]
    return [
        *made,
        Recourse.from_instance(given, "arrival", min_utility_fraction=0.0, rounds=3),
        Recourse.rolling(given.horizon, rounds=3),
        Recourse.rolling(given.horizon, "arrival", patience=1, keep_admitted=True),
    ]


@CASES
def test_a_run_is_feasible_and_never_worth_more_than_the_optimum(cases):
    forms, earned, best = set(), 0.0, 0.0
    for seed in cases:
        given, optimum = solved(seed)
        best += optimum
        for k, policy in enumerate(policies(given)):
            run = oasis.simulate(given, policy)
            worth = oasis.verify(given, run)
            assert worth <= optimum * (1 + 1e-9), (seed, k)
            assert worth == pytest.approx(run.total_utility), (seed, k)
            forms |= {schedule.form for schedule in run.schedules.values()}
            earned += worth if k == 0 else 0.0
    assert forms == {0, 1, 2}
    assert earned > 0.8 * best


@CASES
def test_a_job_alone_earns_what_its_best_form_can(cases):
    several = 0
    for seed in cases:
        given = kinds.instance(seed)
        for job in given.jobs:
            alone = replace(given, jobs=(job,))
            optimum = kinds.optimum(alone)
            for commitment in COMMITMENTS[:2]:  # on arrival, a rule may refuse it
                worth = oasis.verify(alone, oasis.simulate(alone, Recourse(commitment)))
                assert worth == pytest.approx(optimum), (seed, job.id, commitment)
            several += len(job.in_forms) > 1 and optimum > 0
    assert several > len(cases)


def test_a_job_that_no_machine_admits_is_told_which_label():
    given = kinds.instance(3)
    nowhere = [Form(requires={"gpu": ["z"]}), Form(requires={"zone": ["north"]})]
    plain = replace(given.jobs[0], forms=(), speeds=None, requires={"gpu": ["z"]})
    for job in (plain, replace(plain, requires={}, forms=tuple(nowhere))):
        for commitment in COMMITMENTS:
            run = oasis.simulate(replace(given, jobs=(job,)), Recourse(commitment))
            reason = "no machine admits it: label gpu of the worker servers; its workers require"
            assert (run.decisions[0].reason or "").startswith(reason)


@CASES
@pytest.mark.parametrize("commitment", COMMITMENTS)
def test_a_job_that_has_run_keeps_its_form(commitment, cases):
    for seed in cases:
        given = kinds.instance(seed)
        planner = Replanner(given.cluster, given.horizon, commitment=commitment)
        jobs, begun = given.jobs_by_arrival(), dict[int, int]()
        for now in range(given.horizon):
            planner.advance(now)
            for key, live in list(planner.plan.live.items()):
                if live.started:
                    assert begun.setdefault(key, live.form) == live.form
                    assert live.forms == ()
                if live.remaining == 0:
                    planner.finish(key)
            planner.replan({k: job for k, job in enumerate(jobs) if job.arrival == now})
            for key, live in planner.plan.live.items():
                if live.schedule is not None:
                    assert begun.get(key, live.form) == live.form == live.schedule.form
                    assert live.job.original == jobs[key].in_form(live.form)


@pytest.mark.parametrize("commitment", ["none", "start"])
def test_a_job_that_waits_is_planned_in_another_form_for_a_newcomer(commitment):
    """It waits for the fast machine, which a newcomer then needs more; so it takes the slow one."""

    def job(name, slots, utility, forms=()):
        made = Job(name, 0, 1, 1, slots, 1.0, 0.0, {"gpu": 1.0}, {}, utility, forms=forms)
        return made if forms else replace(made, requires={"gpu": ["a"]})

    either = Form(requires={"gpu": ["a"]}), Form(minibatches=6, requires={"gpu": ["b"]})
    waits = job("waits", 1, Piecewise((0.0, 20.0), (10.0, 5.0)), either)
    planner = Replanner(ON_AB, 12, commitment=commitment)
    planner.replan({0: job("first", 3, Deadline(90.0, 2.0)), 1: waits})
    planned = planner.plan.live[1]
    assert planned.schedule is not None
    assert (planned.form, planned.remaining, planned.schedule.completion) == (0, 1, 3)
    planner.advance(1)
    planner.replan({2: replace(job("newcomer", 4, Deadline(90.0, 5.0)), arrival=1)})
    assert planned.schedule is not None
    assert (planned.form, planned.remaining, planned.schedule.completion) == (1, 6, 6)
    planner.advance(2)
    planner.cancel(2)  # what has run stays in its form, though the fast machine is free again
    planner.replan({})
    assert (planned.form, planned.done, planned.remaining) == (1, 1, 5)


def test_a_run_goes_on_from_its_state_and_a_quote_changes_nothing():
    """At every slot the policy is replaced by one that was restored from plain data."""

    class Restored(Recourse):
        """Asks a copy of itself that was made from its state."""

        def decide(self, view):  # type: ignore[no-untyped-def]
            assert self.lookahead is not None
            other = type(self).rolling(self.lookahead, self.commitment, rounds=3)
            other.reset(self._site)
            probe, before = replace(PROBE, arrival=int(view.now)), self.planned()
            self.foresee(probe, int(view.now))  # what is computed once, as of a job, is there now
            assert self.planned() == before
            state = policy_state(self, ())
            restore_policy(other, state, {}, self._site)
            quotes = [one.foresee(probe, int(view.now)) for one in (self, other)]
            assert quotes[0] == quotes[1]
            assert plain_state(policy_state(self, ())) == plain_state(state)
            plan = super().decide(view)
            assert Recourse.decide(other, view) == plan
            lives = [one.planner.plan.live for one in (self, other) if one.planner is not None]
            for key, live in lives[0].items():
                again = lives[1][key]
                assert [one.form for one in live.forms] == [one.form for one in again.forms]
                # until it runs, a job has all the work of the form in which it is planned
                assert all(
                    one.remaining == live.remaining for one in live.forms if one.form == live.form
                )
            assert other.planned() == self.planned()
            return plan

    for seed in range(12):
        given = kinds.instance(seed)
        PROBE = replace(given.jobs[0], id="probe")
        for commitment in COMMITMENTS:
            run = oasis.simulate(given, Restored.rolling(given.horizon, commitment, rounds=3))
            oasis.verify(given, run)


def test_what_is_left_of_a_job_whose_patience_is_over_stays_in_its_form_if_it_has_run():
    forms = Form(minibatches=50, requires={"gpu": ["a"]}), Form(requires={"gpu": ["b"]})

    def job(name, arrival, slots, utility):
        return Job(name, arrival, 1, 1, slots, 1.0, 0.0, {"gpu": 1.0}, {}, utility, forms=forms)

    jobs = (
        job("has run", 0, 4, Constant(10.0)),
        job("newcomer", 1, 3, Deadline(90.0, 2.0)),
        job("waits", 1, 2, Constant(1.0)),
    )
    given = Instance(12, ON_AB, jobs)
    run = oasis.simulate(given, Recourse.rolling(12, patience=4, keep_admitted=True))
    assert oasis.verify(given, run) == 101.0
    assert {schedule.form for schedule in run.schedules.values()} == {1}
    assert [run.schedules[job.id].completion for job in jobs] == [6, 3, 8]


def test_on_three_kinds_of_machines_it_earns_at_least_what_oasis_does():
    given = oasis.generate("kinds", jobs=20, seed=1)
    assert {len(job.in_forms) for job in given.jobs} == {3}
    printed = oasis.verify(given, oasis.simulate(given, OASiS.from_instance(given)))
    for commitment in COMMITMENTS:
        run = oasis.simulate(given, Recourse(commitment, rounds=3))
        worth = oasis.verify(given, run)
        assert worth >= printed, commitment
        assert {schedule.form for schedule in run.schedules.values()} == {0, 1, 2}
        assert run.report["broken_promises"] == []
