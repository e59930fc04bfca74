"""Gavel: its linear program against another one of the same sentences, its rounds by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from baselines.gavel import Gavel
from baselines.time_shares import Kinds, Program, Way
from oasis.model.forms import Requirement
from oasis.model.groups import TaskGroup
from oasis.scheduling import Machine, PolicyJob, Site
from oasis.simulator import ChangeCosts, Outage, PlainJob, Workload, replay, rigid_workload

VALUES = ("a", "b", "c")


def site(*counts: int, gpus: float = 4.0) -> Site:
    """This many machines of each kind, of four GPUs each."""
    machines = [
        Machine(f"{value}{k}", (gpus, 8.0), labels={"gpu": value})
        for value, count in zip(VALUES, counts, strict=False)
        for k in range(count)
    ]
    return Site(("gpu", "cpu"), tuple(machines), 60.0)


def on(where: Site, *values: str, workers: int = 4, work: float = 1.0, gpus: int = 1) -> PolicyJob:
    """A job of one form on machines of these kinds."""
    amounts = ((0, gpus), (1, 1))
    demand = where.limited(amounts, TaskGroup.WORKER, Requirement({"gpu": list(values)}))
    return PolicyJob("j", 0.0, work, demand, ((1, 1),), workers, workers)


def reference(ways: list[Way], where: Site, needs: dict[int, float] | None = None) -> float:
    """The optimum, with one variable for each way and pair of values of the label.

    That of the sum, or of the least throughput over what each job needs.
    """
    values = sorted({machine.labels["gpu"] for machine in where.machines})
    capacity = {
        (value, r): sum(m.amounts[r] for m in where.machines if m.labels["gpu"] == value)
        for value in values
        for r in range(2)
    }
    columns = []
    for way in ways:
        required = getattr(way.seen.worker, "requires", {}).get("gpu", VALUES)
        for value, beside in product(values, values):
            if value in required and (way.ps or beside == values[0]):
                load = dict.fromkeys(capacity, 0.0)
                for r, amount in way.seen.worker:
                    load[value, r] += amount * way.workers
                for r, amount in way.seen.ps:
                    load[beside, r] += amount * way.ps
                columns.append((way, load))
    if not columns:
        return 0.0
    jobs = sorted({way.job for way in ways})
    rows = [[float(way.job == job) for way, _ in columns] for job in jobs]
    rows += [[load[place] for _, load in columns] for place in capacity]
    limits = [1.0] * len(jobs) + list(capacity.values())
    goal = [-way.rate for way, _ in columns]
    if needs is not None:
        rows = [[*row, 0.0] for row in rows]
        able = {way.job for way, load in columns if all(capacity[p] for p in load if load[p])}
        for job in able:
            rates = [-way.rate * (way.job == job) for way, _ in columns]
            rows.append([*rates, needs[job]])
            limits.append(0.0)
        goal = [0.0] * len(columns) + [-1.0]
    found = linprog(goal, rows, limits)
    assert found.status == 0
    return float(-found.fun)


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Way], Site]:
    where = site(*draw(st.lists(st.integers(0, 2), min_size=1, max_size=3).filter(any)))
    ways = []
    for job in range(draw(st.integers(1, 5))):
        for form in range(draw(st.integers(1, 3))):
            values = draw(st.sets(st.sampled_from(VALUES), min_size=1))
            workers, gpus = draw(st.integers(1, 6)), draw(st.integers(0, 2))
            seen = on(where, *sorted(values), workers=workers, gpus=gpus)
            rate = workers * draw(st.sampled_from([1.0, 2.2, 0.3]))
            ways.append(Way(job, form, seen, workers, draw(st.integers(0, 2)), rate))
    return ways, where


def solved(ways: list[Way], where: Site) -> Program:
    kinds = Kinds(where, [way.seen for way in ways])
    return Program(ways, kinds, kinds.totals([machine.capacity for machine in where.machines]))


@given(program=programs())
def test_the_program_is_solved_to_the_optimum_of_the_reference(program):
    ways, where = program
    shares = solved(ways, where).shares()
    earned = sum(share * way.rate for share, way in zip(shares, ways, strict=True))
    assert earned == pytest.approx(reference(ways, where), abs=1e-6)
    for job in {way.job for way in ways}:
        own = [share for share, way in zip(shares, ways, strict=True) if way.job == job]
        assert all(share >= 0 for share in own)
        assert sum(own) <= 1 + 1e-6


@given(program=programs(), needs=st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5))
def test_the_least_throughput_over_its_need_is_that_of_the_reference(program, needs):
    ways, where = program
    of_all, by_job = solved(ways, where), dict(enumerate(needs))
    level = of_all.level(by_job)
    if level == math.inf:  # no job can run anywhere
        assert of_all.shares(by_job) == [0.0] * len(ways)
        return
    assert level == pytest.approx(reference(ways, where, by_job), rel=1e-6)
    rates: dict[int, float] = {}
    for way, share in zip(ways, of_all.shares(by_job), strict=True):
        rates[way.job] = rates.get(way.job, 0.0) + share * way.rate
    able = [job for job, rate in rates.items() if rate > 0.0]
    assert min(rates[job] / by_job[job] for job in able) == pytest.approx(level, rel=1e-5)


def forms(where: Site, name: str, speeds: dict[str, float], work: float = 60.0) -> PolicyJob:
    """A job of four workers, so much faster on each kind; times in minutes."""
    made = [replace(on(where, v, work=4 * work / s), id=name, ps=()) for v, s in speeds.items()]
    return replace(made[0], forms=tuple(made))


def test_each_job_begins_on_the_kind_where_all_together_are_fastest():
    """By itself, x would take b, too; together it pays to leave b to y."""
    where = site(1, 1)
    jobs = [forms(where, "x", {"a": 1.0, "b": 2.0}), forms(where, "y", {"a": 1.0, "b": 4.0})]
    outcome = replay(Workload.of(where, jobs), Gavel())
    assert [job.end for job in outcome.jobs] == [60.0, 15.0]
    assert replay(Workload.of(where, jobs[:1]), Gavel()).jobs[0].end == 30.0


def test_turns_go_by_share_over_time_received():
    """Three jobs of three workers on four GPUs, one at a time; LP: sum of 3 X_m <= 4, X <= 1.

    A vertex has X = 1, 1/3 and 0. At the first round the one with 1 goes first; in the second that
    with 1/3 has received nothing and goes before it; then priorities are 1/6 and (1/3)/6 per
    minute, (1/2)/6 and (1/3)/6, (1/3)/6 each, so the first goes on for two more rounds, and at the
    tie the larger share.
    """
    jobs = [PolicyJob(name, 0.0, 3 * 600.0, ((0, 1),), (), 3, 3) for name in "xyz"]
    where = Site(("gpu",), (Machine("n", (4.0,)),), 60.0)
    log = []

    class Noting(Gavel):
        def decide(self, view: Any) -> Any:
            plan = super().decide(view)
            if view.now <= 36.0:
                log.append((view.now, sorted(self._running), dict(self._shares)))
            return plan

    replay(Workload.of(where, jobs), Noting())
    shares = {job: share for (job, _), share in log[0][2].items()}
    first, second, third = sorted(shares, key=lambda job: -shares[job])
    assert [shares[k] for k in (first, second, third)] == pytest.approx([1, 1 / 3, 0], abs=1e-9)
    assert [entry[0] for entry in log] == [0.0, 6.0, 12.0, 18.0, 24.0, 30.0, 36.0]
    assert [entry[1] for entry in log] == [
        [k] for k in (first, second, *[first] * 3, second, first)
    ]


def test_who_may_switch_goes_on_where_it_is_faster_and_pays_a_restart():
    """A quarter of x is done on a when y leaves b at 15; the rest takes 22.5 there."""
    where = site(1, 1)
    x, y = forms(where, "x", {"a": 1.0, "b": 2.0}), forms(where, "y", {"a": 1.0, "b": 4.0})

    def end(may_switch: bool, **more: Any) -> float | None:
        jobs = [replace(x, may_switch=may_switch), y]
        return replay(Workload.of(where, jobs), Gavel(), **more).jobs[0].end

    assert (end(False), end(True)) == (60.0, 37.5)
    assert end(True, costs=ChangeCosts(start=1.0, resume=3.0, resize=99.0, migrate=99.0)) == 41.5
    alone = Workload.of(where, [replace(x, may_switch=True)])
    lost = replay(alone, Gavel(), outages=[Outage(1, 10.0, 70.0)])
    assert lost.jobs[0].end == 50.0  # a third of it on b, the rest on a


def test_rounds_end_when_what_is_left_of_the_machines_can_run_no_job():
    """The program gives half its time to a job of eight on the four GPUs that are left."""
    where = site(2)
    workload = Workload.of(where, [replace(on(where, "a", workers=8, work=480.0), ps=())])
    lost = replay(workload, Gavel(), outages=[Outage(1, 20.0)])
    assert lost.jobs[0].end is None
    back = replay(workload, Gavel(), outages=[Outage(1, 20.0, 40.0)])
    assert back.jobs[0].end is not None


def of_objective(objective: str, *sizes: tuple[float, int], gpus: int = 4) -> list[float | None]:
    """Ends of jobs of these (minutes, GPUs), which all come at 0, in minutes."""
    jobs = [PlainJob(f"j{k}", 0.0, 60.0 * long, width) for k, (long, width) in enumerate(sizes)]
    workload = rigid_workload(jobs, servers=1, gpus_per_server=gpus)
    ends = [job.end for job in replay(workload, Gavel(objective=objective)).jobs]
    return [end if end is None else end / 60.0 for end in ends]


def test_the_makespan_is_that_of_the_longest_and_of_all_work_at_least():
    """Five jobs of an hour on four GPUs take 75 minutes, if each has its turn; by sums 120."""
    jobs = [(60.0, 1)] * 5
    assert max(of_objective("makespan", *jobs)) <= 75.0 + 6.0
    assert max(of_objective("throughput", *jobs)) == 120.0
    long = of_objective("makespan", (120.0, 1), *[(30.0, 1)] * 6)
    assert long[0] == 120.0  # it never waits: all others share what it leaves


def test_finish_time_fairness_is_the_root_of_a_sum_where_all_machines_are_alike():
    """Jobs of one GPU: rho is least where the sum of left / (rho D - waited) is what there is."""
    jobs = [PlainJob(f"j{k}", 600.0 * k, 1800.0 * (k + 1), 1) for k in range(6)]
    policy, seen = Gavel(objective="finish-time-fairness"), []
    share_out = policy._share_out

    def noting(view: Any) -> None:
        share_out(view)
        left = {job.index: view.remaining(job) for job in view.jobs()}
        ends = {k: spent + left[k] / part for k, (spent, _, part) in policy._isolated.items()}
        waited = {job.index: view.now - job.arrival for job in view.jobs()}
        seen.append((left, ends, waited, {job: x for (job, _), x in policy._shares.items()}))

    policy._share_out = noting
    replay(rigid_workload(jobs, servers=1, gpus_per_server=2), policy)
    crowded = [entry for entry in seen if len(entry[0]) > 2]
    assert len(crowded) > 3
    for left, ends, waited, shares in crowded:

        def over(rho: float, of: Any = (left, ends, waited)) -> float:
            return sum(min(1.0, of[0][k] / (rho * of[1][k] - of[2][k])) for k in of[0]) - 2.0

        low = max(waited[k] / ends[k] for k in left)
        rho = brentq(over, low * (1 + 1e-9) + 1e-9, low + 100.0)
        for k in left:
            assert shares[k] == pytest.approx(left[k] / (rho * ends[k] - waited[k]), rel=1e-4)


def test_in_strict_rounds_nothing_begins_before_the_round_ends():
    """Here b waits for 6, where a round ends; with X from before it waits until nothing runs."""

    def ends(*work: tuple[str, float, float], **options: Any) -> Any:
        jobs = [PlainJob(name, 60.0 * at, 60.0 * long, 1) for name, at, long in work]
        workload = rigid_workload(jobs, servers=1, gpus_per_server=4)
        outcome = replay(workload, Gavel(rounds="strict", **options))
        return pytest.approx([job.end / 60.0 for job in outcome.jobs if job.end])

    work = [("a", 0.0, 13.0), ("b", 1.0, 2.0), ("c", 14.0, 3.0), ("d", 14.5, 2.0)]
    quick = {"objective": "max-min-fairness", "reset_minutes": 0.0}
    assert ends(*work, **quick) == [13.0, 8.0, 17.0, 19.0]
    assert ends(*work) == [13.0, 15.0, 18.0, 17.0]
    # Nobody waited at 6; a round ends there all the same, and the next at 12.
    assert ends(("a", 0.0, 13.0), ("b", 8.0, 2.0), **quick) == [13.0, 14.0]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("objective", ["max-min-fairness", "makespan", "finish-time-fairness"])
@pytest.mark.parametrize("rounds", ["events", "strict"])
def test_every_job_ends_under_every_objective(objective, rounds, seed):
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(0, 12_000, 15)), draw.integers(1, 9_000, 15)
    rows = zip(*(each.astype(float).tolist() for each in times), strict=True)
    wide = draw.choice([1, 1, 2, 8], 15).tolist()
    jobs = [PlainJob(f"j{k}", *row, wide[k]) for k, row in enumerate(rows)]
    workload = rigid_workload(jobs, servers=2, gpus_per_server=4)
    outcome = replay(workload, Gavel(objective=objective, rounds=rounds))
    assert all(job.end is not None for job in outcome.jobs)
    assert sum(job.restarts for job in outcome.jobs) > 0


def test_jobs_of_very_unlike_lengths_have_a_makespan_too():
    """The rates that they need differ more than a solver can tell."""
    ends = of_objective("makespan", (5e6, 8), *[(60.0, 8)] * 3, gpus=8)
    assert max(ends) <= (5e6 + 3 * 60.0) * (1 + 1e-6)
