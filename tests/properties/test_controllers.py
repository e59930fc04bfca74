"""Nothing is lost: the controllers on fuzzed elastic jobs, whatever machines go down.

That their answers are legal, that they end and that no job is half placed is also part of the
contract of all policies; here more workloads are drawn, and what the controllers promise is added.
"""

import pytest
from hypothesis import given, settings

from baselines.dragon.locality_aware import LocalityAware
from baselines.dragon.policy import Dragon
from baselines.kod2.policy import Kod2
from oasis.scheduling import OneNode, Room
from tests.properties.test_policy_contract import run, worlds

CONTROLLERS = {
    "locality-aware": LocalityAware,
    "dragon": lambda: Dragon(3.0, 1.0),
    "dragon-code": lambda: Dragon(3.0, 1.0, reading="code"),
    "dragon-quiet": lambda: Dragon(3.0, 1.0, alarms=False),
    "kod2": lambda: Kod2(4.0),
    "kod2-difference": lambda: Kod2(4.0, form="difference"),
    "kod2-printed": lambda: Kod2(4.0, printed=True),
}
nightly = settings().max_examples > 100
many = settings(max_examples=10_000 if nightly else 200)


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
        room = Room(self.site, view.free())
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
        if isinstance(self.policy, LocalityAware):
            self.nobody_waits_who_fits(waiting, room)
        elif not self.policy.printed:
            running = self.policy._running
            launched = [job for job in view.jobs() if job.index in waited and job.index in running]
            self.nobody_passes_the_starving(view.now, waiting, launched, waited)
        return plan

    def nobody_waits_who_fits(self, waiting, room):
        for job in waiting:
            workers = self.policy._book.counts[job.index][0]
            assert OneNode().place(room, job, workers, job.ps_needed(workers)) is None

    def nobody_passes_the_starving(self, now, waiting, launched, waited):
        limit = self.policy.starve_limit / self.site.unit_seconds
        starving = [job.index for job in waiting if waited[job.index] + limit <= now]
        assert all(job.index < index for job in launched for index in starving)


@pytest.mark.parametrize("name", CONTROLLERS)
def test_nothing_is_lost_and_promises_are_kept(name):
    @many
    @given(world=worlds())
    def check(world):
        work, options = world
        engine = run(work, Watched(CONTROLLERS[name]()), options)
        if not work.site.slotted:
            assert not engine.state.jobs, "all machines come back: nobody waits for ever"
        assert len(engine.settled) + len(engine.state.jobs) == len(
            [job for job in work.jobs if job.arrival <= engine.state.now]
        )

    check()
