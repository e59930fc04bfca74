"""Dorm against enumeration: every answer on tiny cases, and its limits recomputed from scratch."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines import DRF, Dorm
from baselines.dorm import IDLE
from baselines.fair_shares import Fairness, Portions, Shares, fair_shares
from oasis.simulator import (
    Engine,
    Machine,
    Outage,
    PlainJob,
    PolicyJob,
    Site,
    Workload,
    replay,
    rigid_workload,
)
from oasis.solvers import Solution, Status, highs

HINT = 1e-9
NO_ANSWER = "infeasible without a solution"
ANSWERED = ("optimal", "node_limit")


@st.composite
def tiny_workloads(draw):
    if draw(st.booleans()):  # some machine hosts both
        kinds = st.sampled_from([("worker",), ("ps",), ("worker", "ps")])
        machines = [Machine("m0", (3.0, 3.0), frozenset({"worker", "ps"}))]
    else:
        kinds = st.sampled_from([("worker",), ("ps",)])
        hosts = [("worker", (3.0, 3.0)), ("ps", (2.0, 3.0))]
        machines = [Machine(f"m{kind}", row, frozenset({kind})) for kind, row in hosts]
    for k in range(draw(st.integers(0, 3 - len(machines)))):
        amounts = (float(draw(st.integers(0, 4))), float(draw(st.integers(1, 4))))
        machines.append(Machine(f"m{k + 1}", amounts, frozenset(draw(kinds))))
    jobs = []
    for k in range(draw(st.integers(1, 4))):
        fewest, more = draw(st.integers(1, 2)), draw(st.integers(0, 2))
        jobs.append(
            PolicyJob(
                f"j{k}",
                float(draw(st.integers(0, 3))),
                draw(st.sampled_from([1.0, 3.0, 8.0])),
                draw(st.sampled_from([((0, 1),), ((0, 1), (1, 1)), ((0, 2), (1, 1)), ((1, 1),)])),
                draw(st.sampled_from([((1, 1),), ((0, 1), (1, 2))])),
                fewest,
                fewest + more,
                draw(st.sampled_from([0.0, 0.5, 1.0])),
            )
        )
    return Workload.of(Site(("gpu", "cpu"), tuple(machines)), jobs)


def spread(count, machines):
    """Every way to put `count` tasks on `machines`."""
    for places in itertools.combinations_with_replacement(machines, count):
        yield {machine: places.count(machine) for machine in set(places)}


def options(job, machines):
    """Every allocation of `job`: (workers by machine, parameter servers by machine)."""
    yield {}, {}
    for workers in range(job.min_workers, job.max_workers + 1):
        ps = math.ceil(workers * job.ps_per_worker)
        hosts = [[k for k, m in enumerate(machines) if g in m.hosts] for g in ("worker", "ps")]
        yield from itertools.product(spread(workers, hosts[0]), spread(ps, hosts[1]))


class Ledger:
    """Shares, losses and utilisation, worked out without the code under test."""

    def __init__(self, machines, up, jobs):
        self.machines, self.up, self.jobs = machines, up, jobs
        if any(len(m.hosts) == 2 for m in machines):  # who hosts both counts once
            self.pools = [machines, machines]
            self.names = ["all", "all"]
        else:
            self.pools = [[m for m in machines if group in m.hosts] for group in ("worker", "ps")]
            self.names = ["worker", "ps"]
        self.total = [[sum(m.amounts[r] for m in ms) for r in (0, 1)] for ms in self.pools]
        pairs = zip(self.names, self.total, strict=True)
        kinds = {(name, r) for name, row in pairs for r in (0, 1) if row[r] > 0}
        self.limit_factor = 2 * len(kinds)
        self.fair = self.fill()

    def portions(self, job):
        """Share of each resource that one worker, and one parameter server, takes."""
        rows = []
        for demand, totals in ((job.worker, self.total[0]), (job.ps, self.total[1])):
            amounts = dict(demand)
            rows.append([amounts.get(r, 0) / totals[r] if totals[r] else 0.0 for r in (0, 1)])
        return rows

    def per_worker(self, job):
        worker, ps = self.portions(job)
        part = [job.ps_per_worker * share for share in ps]
        if self.names[0] == self.names[1]:
            return [w + p for w, p in zip(worker, part, strict=True)] + [0.0, 0.0]
        return [*worker, *part]

    def fill(self):
        """Progressive filling in small steps is slow; go by bisection from freeze to freeze."""
        there = [
            sum(m.amounts[r] for m in pool if self.machines.index(m) in self.up)
            / (self.total[i][r] or 1.0)
            for i, pool in enumerate(self.pools)
            for r in (0, 1)
        ]
        vectors = {j.index: self.per_worker(j) for j in self.jobs}
        cap = {j.index: max(vectors[j.index]) * j.max_workers for j in self.jobs}
        frozen = {}
        while len(frozen) < len(vectors):

            def use(level, frozen=frozen):
                share = {i: frozen.get(i, min(level, cap[i])) for i in vectors}
                return [sum(share[i] * v[r] / max(v) for i, v in vectors.items()) for r in range(4)]

            low, high = 0.0, 2.0
            for _ in range(60):
                middle = (low + high) / 2
                if all(u <= t + 1e-12 for u, t in zip(use(middle), there, strict=True)):
                    low = middle
                else:
                    high = middle
            full = [t - u < 1e-9 for u, t in zip(use(low), there, strict=True)]
            stop = {
                i: min(low, cap[i])
                for i, v in vectors.items()
                if i not in frozen
                and (low >= cap[i] or any(full[r] and v[r] > 0 for r in range(4)))
            }
            frozen |= stop
        return frozen

    def loss(self, counts):
        return sum(
            abs(counts[j.index] * max(self.per_worker(j)) - self.fair[j.index]) for j in self.jobs
        )

    def value(self, held):
        """Jobs that run, and utilisation."""
        running = sum(1 for workers, _ in held.values() if workers)
        used = 0.0
        for job in self.jobs:
            for tasks, portion in zip(held[job.index], self.portions(job), strict=True):
                used += sum(tasks.values()) * sum(portion)
        return running, used

    def best(self, before, most_loss, most_changes):
        """The best answer of all, (-1, 0) if there is none."""
        choices = [list(options(job, self.machines)) for job in self.jobs]
        found = (-1, 0.0)
        free = [list(m.amounts) if k in self.up else [0, 0] for k, m in enumerate(self.machines)]

        def search(k, held, changes):
            nonlocal found
            if k == len(self.jobs):
                counts = {i: sum(workers.values()) for i, (workers, _) in held.items()}
                if self.loss(counts) <= most_loss + HINT:
                    found = max(found, self.value(held))
                return
            job = self.jobs[k]
            for option in choices[k]:
                was = before[job.index]
                changed = bool(was[0]) and option != was
                if (was[0] and not option[0]) or changes + changed > most_changes:
                    continue
                taken = [
                    (machine, resource, count * amount)
                    for tasks, demand in zip(option, (job.worker, job.ps), strict=True)
                    for machine, count in tasks.items()
                    for resource, amount in demand
                ]
                for machine, resource, amount in taken:
                    free[machine][resource] -= amount
                if min(min(row) for row in free) >= 0:
                    search(k + 1, held | {job.index: option}, changes + changed)
                for machine, resource, amount in taken:
                    free[machine][resource] += amount

        search(0, {}, 0)
        return found


def plain(allocation):
    return dict(allocation.workers), dict(allocation.ps)


class Watched(Dorm):
    """Dorm with every answer held against the limits and, where it may be, the best of all."""

    def decide(self, view):
        jobs = list(view.jobs())
        before = {job.index: view.allocation(job) for job in jobs}
        plan = super().decide(view)
        jobs = [job for job in jobs if job.index not in plan.rejected]
        if not jobs:
            return plan
        up = [k for k, row in enumerate(view.capacity()) if any(row)]
        ledger = Ledger(self._site.machines, up, jobs)
        running = sum(bool(before[job.index].workers) for job in jobs)
        limits = (
            math.ceil(Fraction(str(self.theta_1)) * ledger.limit_factor),
            math.ceil(Fraction(str(self.theta_2)) * running),
        )
        was = {job.index: plain(before[job.index]) for job in jobs}
        now = {j.index: plain(plan.changes.get(j.index, before[j.index])) for j in jobs}
        outcome = self.outcomes[-1]
        kept = [i for i in now if was[i][0] and now[i] == was[i]]
        if outcome in ANSWERED:
            counts = {i: sum(workers.values()) for i, (workers, _) in now.items()}
            assert ledger.loss(counts) <= limits[0] + 1e-6
            assert all(now[i][0] for i in now if was[i][0])
            assert sum(bool(was[i][0]) for i in was) - len(kept) <= limits[1]
        else:
            assert kept == [i for i in was if was[i][0]]
        if self.exact:
            best = ledger.best(was, *limits)
            self.compared += 1
            if outcome == "optimal":
                assert ledger.value(now) == pytest.approx(best, abs=1e-6)
            else:
                assert (outcome, best) in [(NO_ANSWER, (-1, 0.0)), (IDLE, (0, 0.0))]
        return plan

    exact, compared = True, 0


@given(
    work=tiny_workloads(),
    thetas=st.tuples(st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.sampled_from([0.0, 0.1, 0.5, 1.0])),
    lost=st.booleans(),
)
def test_every_answer_is_the_best_of_all_within_the_limits(work, thetas, lost):
    policy = Watched(*thetas, node_limit=10_000)
    outages = [Outage(len(work.site.machines) - 1, 2.0, 5.0)] if lost else []
    engine = Engine(work, policy, outages=outages)
    engine.run()
    assert policy.compared == policy.report["milps"]
    assert policy.report["node_limit"] == policy.report["restricted"] == 0
    assert not engine.state.jobs


@given(work=tiny_workloads(), places=st.integers(1, 6), nodes=st.integers(1, 3))
def test_limits_hold_when_the_milp_is_cut_short_or_sees_only_some_jobs(work, places, nodes):
    policy = Watched(0.1, 0.1, node_limit=nodes, places=places)
    policy.exact = False
    engine = Engine(work, policy)
    engine.run()
    assert not engine.state.jobs
    report = policy.report
    assert report["milps"] == report["optimal"] + report["node_limit"] + report["fell_back"]


@given(
    portions=st.lists(
        st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.3]), min_size=3, max_size=3).filter(any),
        min_size=1,
        max_size=5,
    ),
    data=st.data(),
)
def test_nobody_gains_in_fair_shares_but_from_somebody_poorer(portions, data):
    """A share is max-min fair if each job has its fill or is among the richest at a bottleneck."""
    vectors = dict(enumerate(map(np.array, portions)))
    most = {k: data.draw(st.integers(1, 30)) for k in vectors}
    supply = np.array(data.draw(st.lists(st.sampled_from([1.0, 0.5]), min_size=3, max_size=3)))
    shares = fair_shares(vectors, most, supply)
    use = sum(shares[k] * vector / vector.max() for k, vector in vectors.items())
    assert (use <= supply + 1e-9).all()
    for k, vector in vectors.items():
        full = (use >= supply - 1e-9) & (vector > 0)
        richest = [
            max(shares[other] for other, each in vectors.items() if each[r] > 0)
            for r in np.flatnonzero(full)
        ]
        capped = shares[k] >= vector.max() * most[k] - 1e-9
        assert capped or any(shares[k] >= most_there - 1e-9 for most_there in richest)


def test_a_machine_that_hosts_both_counts_once():
    """Twelve cores; a: worker and parameter server of one core each, b: a worker of one core."""
    site = Site(("cpu",), (Machine("n0", (12.0,)),))
    a = PolicyJob("a", 0.0, 99.0, ((0, 1),), ((0, 1),), max_workers=12, ps_per_worker=1.0)
    b = PolicyJob("b", 0.0, 99.0, ((0, 1),), max_workers=12)
    work = Workload.of(site, [a, b])
    engine = Engine(work, DRF())
    engine.step()
    held = [progress.allocation for _, progress in sorted(engine.state.jobs.items())]
    assert [(each.worker_count, each.ps_count) for each in held] == [(3, 3), (6, 0)]
    fairness = Fairness.among(dict(enumerate(work.jobs)), Portions(site), [(12,)])
    assert fairness.fair == {0: pytest.approx(0.5), 1: pytest.approx(0.5)}
    assert fairness.loss(0, 3) == fairness.loss(1, 6) == pytest.approx(0.0)
    assert Shares(site).dominant(work.jobs[0], 3, 3) == 0.5


def test_an_answer_that_no_limit_allows_is_a_fallback_and_is_reported():
    """Two rigid jobs of 3 and 2 of 4 GPUs: no loss at all would take two halves of the server."""
    jobs = [PlainJob("a", 0.0, 5.0, 3), PlainJob("b", 1.0, 5.0, 2)]
    policy = Dorm(theta_1=0.0)
    outcome = replay(rigid_workload(jobs, 1, 4, "whole"), policy)
    assert [times.end for times in outcome.jobs] == [5.0, 10.0]
    assert policy.report["fell_back"] == 1
    assert policy.report["reasons"] == {NO_ANSWER: 1}


@pytest.mark.parametrize("places", [1, 600])
def test_nobody_waits_on_an_idle_cluster_because_that_would_be_fair(places):
    """Three jobs of 4 of 5 GPUs lose 1 while all wait and 1.27 while one runs; the limit is 1."""
    jobs = [PlainJob(name, 0.0, 5.0, 4) for name in "abc"]
    policy = Dorm(places=places)
    outcome = replay(rigid_workload(jobs, 1, 5), policy)
    assert [times.end for times in outcome.jobs] == [5.0, 10.0, 15.0]
    assert policy.report["reasons"][IDLE] == 1


def test_a_job_that_the_milp_does_not_see_is_started_only_within_the_limits():
    """Beside a, starting b would bring the loss from the limit of 1 to 1.27."""
    site = Site(("gpu", "cpu"), (Machine("m", (5.0, 5.0)),))
    jobs = [PolicyJob("a", 0.0, 5.0, ((1, 5),))]
    jobs += [PolicyJob(name, 0.0, 5.0, ((0, 4),)) for name in "bcd"]
    policy = Watched(0.0001, 1.0, places=1)
    policy.exact = False
    outcome = replay(Workload.of(site, jobs), policy)
    assert [times.start for times in outcome.jobs] == [0.0, 5.0, 10.0, 15.0]


def test_limits_are_rounded_as_the_numbers_are_meant_and_not_as_floats_have_it():
    """0.28 of 25 jobs is 7.000000000000001 in floats, and 8 only if that is believed."""
    jobs = [PolicyJob(f"j{k}", 0.0, 10.0, ((0, 1),), max_workers=8) for k in range(25)]
    jobs += [PolicyJob(f"k{k}", 1.0, 10.0, ((0, 8),)) for k in range(9)]
    site = Site(("gpu",), (Machine("m", (200.0,)),))
    engine = Engine(Workload.of(site, jobs), Dorm(1.0, 0.28))
    engine.step()
    before = {i: p.allocation for i, p in engine.state.jobs.items()}
    assert [allocation.worker_count for allocation in before.values()] == [8] * 25
    engine.step()
    changed = [i for i in before if engine.state.jobs[i].allocation != before[i]]
    assert len(changed) == 7


def test_ctrl_c_in_a_milp_ends_the_run(monkeypatch):
    stopped = Solution(Status.INTERRUPTED, None, math.inf, math.inf, {})
    monkeypatch.setattr(highs, "solve", lambda problem, **options: stopped)
    with pytest.raises(KeyboardInterrupt):
        replay(rigid_workload([PlainJob("a", 0.0, 1.0, 1)], 1, 1), Dorm())


def test_an_answer_that_does_not_fit_to_the_last_unit_is_not_used(monkeypatch):
    """As if the solver's tolerance had put three GPUs on a server of two."""
    solve = highs.solve

    def careless(problem, **options):
        found = solve(problem, **options)
        return replace(found, values={name: value + 1 for name, value in found.values.items()})

    monkeypatch.setattr(highs, "solve", careless)
    policy = Dorm()
    jobs = [PlainJob("a", 0.0, 1.0, 2)]
    assert replay(rigid_workload(jobs, 1, 2), policy).mean_completion == 1.0
    assert policy.report["reasons"] == {"a solution that rounding breaks": 1}
