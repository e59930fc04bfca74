"""Nothing is lost: the controllers on fuzzed elastic jobs, whatever machines go down.

That their answers are legal, that they end and that no job is half placed is also part of the
contract of all policies; here more workloads are drawn, and what the controllers promise is added.
"""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baselines.dragon import Dragon, LocalityAware
from baselines.kod2 import Kod2
from baselines.priority_queue import PriorityQueue
from baselines.specon import REBALANCED, SpeCon
from oasis import Constant
from oasis.scheduling import OneNode, Room
from oasis.simulator import (
    Machine,
    Observation,
    Outage,
    PolicyJob,
    Site,
    TrainingCurve,
    Workload,
)
from oasis.testing.policy_contract import run_to_end as run
from oasis.testing.strategies import COSTS, CURVE, worlds

CONTROLLERS = {
    "locality-aware": LocalityAware,
    "dragon": lambda: Dragon(3.0, 1.0),
    "kod2": lambda: Kod2(4.0),
    "priority-queue": PriorityQueue,
    "specon": lambda: SpeCon(0.2, 0.5),
}
EARLY = TrainingCurve.exponential(1.0, 0.1, 40.0)
WORTH = (3.0, 1.0, None, 2.0, 2.0, 1.0)
nightly = settings().max_examples > 100
many = settings(max_examples=10_000 if nightly else 60)


class Watched:
    """A controller and, after each of its answers, what must hold of the site then."""

    told_remaining = slotted = False

    def __init__(self, policy):
        self.policy, self.name, self.parameters = policy, policy.name, {}

    def reset(self, site):
        self.site = site
        self.policy.reset(site)

    def decide(self, view):
        waited = {job.index: view.waiting_since(job) for job in view.waiting()}
        plan = self.policy.decide(view)
        down = {machine for machine, row in enumerate(view.capacity()) if not any(row)}
        room = Room(self.site, view.free(), down)
        held = {}
        for job in view.jobs():
            room.release(job, view.allocation(job))
        for job in view.jobs():
            if job.index in plan.rejected:
                continue
            held[job.index] = plan.changes.get(job.index, view.allocation(job))
            room.hold(job, held[job.index])
            runs = job.index in self.policy._running
            assert runs != (job.index in self.policy._queue), "forgotten, or there twice"
            assert runs == bool(held[job.index].workers)
            assert not runs or job.works_with(held[job.index]), "half placed"
        waiting = [job for job in view.jobs() if job.index in self.policy._queue]
        running = [job for job in view.jobs() if job.index in self.policy._running]
        launched = [job for job in running if job.index in waited]
        if isinstance(self.policy, LocalityAware | SpeCon):
            self.nobody_waits_who_fits(waiting, room)
        if isinstance(self.policy, SpeCon):
            self.nobody_moves_twice()
        elif isinstance(self.policy, Kod2):
            self.nobody_passes_the_starving(view.now, waiting, launched, waited)
        elif isinstance(self.policy, PriorityQueue):
            self.nobody_passes_who_is_worth_most(waiting, running, launched, room)
        return plan

    def nobody_waits_who_fits(self, waiting, room):
        for job in waiting:
            workers = self.policy._book.counts[job.index][0]
            assert OneNode().place(room, job, workers, job.ps_needed(workers)) is None

    def nobody_passes_the_starving(self, now, waiting, launched, waited):
        limit = self.policy.starve_limit / self.site.unit_seconds
        starving = [job.index for job in waiting if waited[job.index] + limit <= now]
        assert all(job.index < index for job in launched for index in starving)

    def nobody_passes_who_is_worth_most(self, waiting, running, launched, room):
        most = max(map(worth, running), default=-math.inf)
        if any(worth(job) > most for job in waiting):
            assert not launched
        else:
            self.nobody_waits_who_fits(waiting, room)

    def nobody_moves_twice(self):
        kinds = Counter((move.job, move.kind == REBALANCED) for move in self.policy.log)
        assert max(kinds.values(), default=1) == 1


def worth(job):
    return job.utility.value if job.has_utility else 0.0


def valued(work):
    """The same jobs, some of them with a utility."""
    worths = [WORTH[job.index % len(WORTH)] for job in work.jobs]
    utilities = [None if each is None else Constant(each) for each in worths]
    jobs = [replace(job, utility=u) for job, u in zip(work.jobs, utilities, strict=True)]
    return Workload.of(work.site, jobs)


@st.composite
def crowded(draw):
    """Containers that share workers and converge early, so that SpeCon has something to move."""
    kinds = st.sampled_from([("worker", "ps"), ("worker",)])
    machines = tuple(
        Machine(f"m{k}", (9.0, 12.0), frozenset(("worker", "ps") if k == 0 else draw(kinds)))
        for k in range(draw(st.integers(2, 3)))
    )
    jobs = [
        PolicyJob(
            f"j{k}",
            float(draw(st.integers(0, 1))),
            draw(st.sampled_from([2.0, 9.0, 20.0])),
            draw(st.sampled_from([(), ((0, 1),), ((0, 1), (1, 2))])),
            fixed_ps=draw(st.sampled_from([0, 0, 1])),
            worker_cpu=1.0,
            curve=draw(st.sampled_from([EARLY, CURVE])),
        )
        for k in range(draw(st.integers(5, 14)))
    ]
    lost = [Outage(0, 4.0, 7.0)] if draw(st.booleans()) else []
    options = {"costs": draw(st.sampled_from(COSTS)), "outages": lost}
    return (
        Workload.of(Site(("gpu", "cpu"), machines), jobs),
        {**options, "observation": Observation(0.5, draw(st.sampled_from([0.0, 0.02])), 3)},
    )


@pytest.mark.parametrize("name", CONTROLLERS)
def test_nothing_is_lost_and_promises_are_kept(name):
    moves = Counter()

    @many
    @given(world=worlds() | crowded() if name == "specon" else worlds())
    def check(world):
        work, options = valued(world[0]), world[1]
        policy = CONTROLLERS[name]()
        engine = run(work, Watched(policy), options)
        moves.update(move.kind for move in getattr(policy, "log", ()))
        if not work.site.slotted:
            assert not engine.state.jobs, "all machines come back: nobody waits for ever"
        assert len(engine.settled) + len(engine.state.jobs) == len(
            [job for job in work.jobs if job.arrival <= engine.state.now]
        )

    check()
    if name == "specon":
        assert len(moves) == 3, f"the workloads do not make it move in each way: {moves}"
