"""The event loop on cases worked out by hand; most are rows of scenarios.toml."""

from __future__ import annotations

import json
import math
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest

import baselines
from baselines import EASY
from oasis import PolicyError
from oasis.scheduling import Plan, View
from oasis.simulator import (
    NOTHING,
    Allocation,
    ChangeCosts,
    Engine,
    Machine,
    Observation,
    Outage,
    PlainJob,
    PolicyJob,
    ScalingTable,
    Site,
    TrainingCurve,
    Workload,
    replay,
)
from oasis.simulator.state import JobProgress
from oasis.simulator.workload import rigid_workload_on
from tests.builders import GPU, rows

ON_A, ON_B, TWO = Allocation(((0, 1),)), Allocation(((1, 1),)), Allocation(((0, 2),))
CASES = rows(__file__, "scenarios.toml")["case"]


class Script:
    """Answers by time, and is woken for each answer unless told when; notes what it sees."""

    name, told_remaining = "script", True

    def __init__(
        self,
        plans: dict[float, Plan],
        wake: dict[float, float] | None = None,
        slotted: bool = False,
    ) -> None:
        self.plans, self.wake, self.slotted = plans, wake, slotted
        self.parameters: dict[str, Any] = {}

    def reset(self, site: Site) -> None:
        self.seen: list[list[Any]] = []
        self.left: dict[float, list[tuple[float, float]]] = {}

    def decide(self, view: View) -> Plan:
        told = (view.finished, view.evicted, view.arrived)
        self.seen.append([view.now, *([job.id for job in jobs] for jobs in told)])
        self.left[view.now] = [(view.remaining(job), view.attained(job)) for job in view.jobs()]
        plan = self.plans.get(view.now, Plan())
        later = min((time for time in self.plans if time > view.now), default=None)
        plan.wake_at = later if self.wake is None else self.wake.get(view.now)
        return plan


def workload(*jobs: PolicyJob, machines: tuple[float, ...] = (2.0, 2.0), **site: Any) -> Workload:
    made = tuple(Machine(f"m{k}", (float(size),)) for k, size in enumerate(machines))
    return Workload.of(Site(("gpu",), made, **site), jobs)


def job(name: str = "a", arrival: float = 0.0, work: float = 4.0, **changes: Any) -> PolicyJob:
    return PolicyJob(name, arrival, work, **({"worker": GPU, "max_workers": 4} | changes))


def held(tasks: Any) -> Allocation:
    """What a row of a plan says: tasks of workers, or of both groups by name."""
    groups = tasks if isinstance(tasks, dict) else {"workers": tasks}
    return Allocation(**{name: tuple(map(tuple, each)) for name, each in groups.items()})


def plan_of(answer: dict[str, Any], index: dict[str, int]) -> Plan:
    refused = {index[name]: how for name, how in answer.items() if isinstance(how, str)}
    changes = {index[name]: held(how) for name, how in answer.items() if index[name] not in refused}
    return Plan(changes, refused)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["shows"])
def test_what_comes_of_what_a_policy_answers(case):
    jobs = [job(name, **fields) for name, fields in case["jobs"].items()]
    work = workload(*jobs, machines=case.get("machines", (2, 2)), **case.get("site", {}))
    index = {one.id: one.index for one in work.jobs}
    plans = {float(at): plan_of(each, index) for at, each in case.get("plans", {}).items()}
    wake = {float(at): time for at, time in case["wake"].items()} if "wake" in case else None
    policy: Any = Script(plans, wake, case.get("slotted", False))
    if "policy" in case:
        policy = baselines.make(case["policy"], **case.get("options", {}))
    speed = ScalingTable(**case["speed"]) if "speed" in case else None
    costs = ChangeCosts(**case.get("costs", {}))
    outages = [Outage(*each) for each in case.get("outages", [])]
    outcome = replay(work, policy, speed=speed, costs=costs, outages=outages)
    for name, times in case.get("times", {}).items():
        (found,) = (each for each in outcome.jobs if each.job_id == name)
        assert {field: shown(getattr(found, field)) for field in times} == times
    for field, value in case.get("outcome", {}).items():
        assert shown(getattr(outcome, field)) == value, field
    if "seen" in case:
        assert policy.seen == case["seen"]
    if "asked" in case:
        assert [now for now, *_ in policy.seen] == case["asked"]


def shown(value: Any) -> Any:
    """As in TOML, which has lists and no None."""
    return "none" if value is None else json.loads(json.dumps(value))


def test_what_cannot_run_is_refused_whole():
    for plan, message in (
        (
            Plan({0: Allocation(((0, 3),))}),
            r"\[job a, server m0, resource gpu\]: more than is free",
        ),
        (Plan({0: ON_A, 1: Allocation(((1, 3),))}), r"job b, server m1, resource gpu"),
    ):
        engine = Engine(workload(job("a"), job("b")), Script({0.0: plan}))
        with pytest.raises(PolicyError, match=message) as caught:
            engine.step()
        assert caught.value.policy == "script"
        assert engine.state.free == [(2,), (2,)]
        assert engine.state.jobs[0].history == []


@pytest.mark.parametrize("placement", ["pooled", "whole"])
def test_others_have_their_gpus_as_soon_as_these_are_free(placement):
    rows = [("a", 0.0, 100.0, 8), ("b", 10.0, 50.0, 4), ("c", 20.0, 10.0, 2)]
    jobs = [PlainJob(*row) for row in rows]
    held = ((-5.0, 60.0, 6), (30.0, 60.0, 4))
    found = replay(rigid_workload_on(jobs, [8, 8], placement, held), EASY())
    assert [job.start for job in found.jobs] == [0.0, 60.0, 20.0]
    found = replay(rigid_workload_on(jobs[2:], [2, 2], placement, ((15.0, 99.0, 4),)), EASY())
    assert (found.jobs[0].start, found.until) == (99.0, 109.0)


def test_work_left_and_attained_of_a_paused_job():
    plans = {0.0: Plan({0: ON_A}), 1.0: Plan({0: NOTHING}), 4.0: Plan({0: ON_B})}
    policy = Script(plans, {float(k): k + 1.0 for k in range(6)})
    replay(workload(job()), policy)
    assert [policy.left[t] for t in range(7)] == [
        [(4.0 - done, done)] for done in (0, 1, 1, 1, 1, 2, 3)
    ]


def test_a_job_that_is_done_has_no_work_left():
    settled: list[tuple[str, float, float | None]] = []

    def settle(progress: JobProgress) -> None:
        settled.append((progress.job.id, progress.remaining, progress.end))

    plan = Plan({0: ON_A}, {1: "no"})
    replay(workload(job(work=0.3), job("b", work=2.0)), Script({0.0: plan}), on_settled=settle)
    assert settled == [("b", 2.0, None), ("a", 0.0, 0.3)]


def test_time_of_the_policy_is_part_of_the_time_of_the_run():
    class Slow(Script):
        def decide(self, view: View) -> Plan:
            sleep(0.005)
            return super().decide(view)

    begin = perf_counter()
    outcome = replay(workload(job()), Slow({k: Plan({0: ON_A}) for k in (0.0, 1.0, 2.0)}))
    elapsed = perf_counter() - begin
    assert outcome.calls == 4
    assert 0.0 < outcome.policy_seconds + outcome.simulator_seconds <= elapsed
    assert min(outcome.policy_seconds, outcome.simulator_seconds) >= 0.0


# -- slots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outages", "message"),
    [
        ([Outage(0, 0.5)], "whole slots"),
        ([Outage(0, 0.5, 2.0)], "whole slots"),
        ([Outage(0, 1.0, 1.0 + 1e-9)], "whole slots"),
        ([Outage(0, 1.0, 3.0), Outage(0, 3.0, 9.0)], "machine 0 overlap"),
        ([Outage(0, 1.0, 3.0), Outage(0, 2.0, 9.0)], "machine 0 overlap"),
        ([Outage(-1, 1.0)], "there is no machine -1"),
        ([Outage(2, 1.0)], "there is no machine 2"),
        ([Outage(0, 1.0, 1.0)], "end too early"),
    ],
)
def test_outages_that_cannot_be_are_refused(outages, message):
    with pytest.raises(ValueError, match=message):
        Engine(workload(job(), slotted=True), Script({}), outages=outages)


def test_outages_may_last_for_ever_and_those_of_two_machines_overlap():
    outages = [Outage(0, 4.0, 5.0), Outage(0, 1.0, 3.0), Outage(1, 2.0)]
    engine = Engine(workload(job(), slotted=True), Script({}), outages=outages)
    while engine.step():
        pass
    assert (engine.state.now, engine.state.down) == (5.0, {1})


JUST_ABOVE = float(np.nextafter(2.0, 3.0))


@pytest.mark.parametrize("arrival", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(
    ("work", "workers", "end", "free"),
    [
        *((work, 1, work, None) for work in (0.25, 1.0, 1.5, 2.0, 3.75)),
        # the last bit of the work takes no slot of its own
        (3 * (1 + 1e-12), 3, 1.0, None),
        (JUST_ABOVE, 1, 2.0, None),
        # what ends late by more than rounding takes the next slot, hardly any work takes one
        (2.0 + 1e-6, 1, 2.0 + 1e-6, 3),
        (1e-12, 1, 0.0, 1),
    ],
)
def test_machines_are_free_at_the_end_of_the_slot_in_which_the_work_ends(
    work, workers, end, free, arrival
):
    plan = Plan({0: Allocation(((0, workers),))})
    one = job(arrival=arrival, work=work)
    outcome = replay(workload(one, machines=(3.0,), slotted=True), Script({arrival: plan}))
    freed, used = outcome.timeline[-1]
    assert used == (0, 0)
    assert outcome.jobs[0].end == pytest.approx(arrival + end, abs=1e-11)
    if arrival != 0.5:
        assert freed == arrival + (math.ceil(end) if free is None else free)


# -- what is observed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (ChangeCosts, {"save": -1.0}),
        (ChangeCosts, {"start": math.inf}),
        (ChangeCosts, {"checkpoint_interval": 0.0}),
        (Observation, {"interval": 0.0}),
        (Observation, {"interval": math.inf}),
        (Observation, {"noise": -1.0, "interval": 1.0}),
    ],
)
def test_costs_and_observations_that_cannot_be_are_refused(make, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected"):
        make(**wrong)


CURVE = TrainingCurve(((0.0, 1.0), (0.5, 0.2), (1.0, 0.0)))


class Looking(Script):
    """Notes what is observed of each job, who waits since when, and who runs."""

    def decide(self, view: View) -> Plan:
        jobs = list(view.jobs())
        self.looks = {**getattr(self, "looks", {}), view.now: self.look(view, jobs)}
        return super().decide(view)

    def look(self, view: View, jobs: list[PolicyJob]) -> Any:
        return [list(view.observed(one) or ()) for one in jobs]


def test_training_is_seen_through_its_curve_at_the_ticks_of_the_clock_while_it_works():
    """Set up until 2; a tenth of the work a second; paused from 7 to 12."""
    plans = {0.0: Plan({0: ON_A}), 7.0: Plan({0: NOTHING}), 12.0: Plan({0: ON_A}), 13.0: Plan()}
    policy = Looking(plans)
    work = workload(job(work=10.0, curve=CURVE), job("b", work=10.0))
    replay(work, policy, costs=ChangeCosts(start=2.0), observation=Observation(3.0))
    expected = [(3.0, 1.0 - 1.6 * 0.1), (6.0, 1.0 - 1.6 * 0.4), (12.0, 0.2)]
    seen, other = policy.looks[13.0]
    assert np.array(seen) == pytest.approx(np.array(expected))
    assert other == []  # a job without a curve shows nothing


def test_noise_comes_from_the_seed_and_does_not_depend_on_who_looks_or_when():
    def seen(seed: int, *watch: float, interval: float = 2.0, noise: float = 0.1) -> Any:
        policy = Looking({0.0: Plan({0: ON_A}), **{time: Plan() for time in watch}})
        looked = Observation(interval, noise, seed)
        replay(workload(job(work=10.0, curve=CURVE)), policy, observation=looked)
        return np.array(policy.looks[9.0][0])

    once, often = seen(1, 9.0), seen(1, 1.0, 2.0, 5.0, 8.0, 9.0)
    assert once == pytest.approx(often)
    assert (once != seen(2, 9.0)).any()
    assert once[:, 0].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    noisy, true = (seen(1, 9.0, interval=0.01, noise=noise)[:, 1] for noise in (0.1, 0.0))
    assert (noisy - true).std() == pytest.approx(0.1, rel=0.1)


def test_who_waits_since_when_who_runs_and_what_is_free():
    class Asking(Looking):
        def look(self, view: View, jobs: list[PolicyJob]) -> Any:
            view.free()[0] = view.capacity()[0] = (99,)  # copies, to plan on
            named = [[one.id for one in group] for group in (view.waiting(), view.running())]
            since = [view.waiting_since(one) for one in jobs]
            return (*named, since, view.free(), view.capacity(), view.lost)

    plans = {1.0: Plan({0: ON_A}), 3.0: Plan({0: NOTHING, 1: ON_A}), 5.0: Plan({0: ON_B})}
    policy = Asking(plans)
    Engine(workload(job(), job("b")), policy, outages=[Outage(1, 3.0, 5.0)]).run()
    both = [(2,), (2,)]
    assert policy.looks[0.0] == (["a", "b"], [], [0.0, 0.0], both, both, [])
    assert policy.looks[3.0] == (["b"], ["a"], [None, 0.0], [(1,), (0,)], [(2,), (0,)], [1])
    assert policy.looks[5.0] == (["a"], ["b"], [3.0, None], [(1,), (2,)], both, [])
