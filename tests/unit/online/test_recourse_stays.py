"""No task moves that could stay: every relabelling of equal servers is tried by hand."""

import itertools
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from oasis.online.recourse import policy as module
from oasis.scheduling.view import View
from tests.strategies import BANDWIDTH, fewer

Held = Mapping[int, Mapping[int, int]]  # by job, tasks by machine


def cluster_of_equals(seed):
    """Few servers, most of them equal; gangs and elastic jobs that arrive while others run."""
    rng = random.Random(seed)
    sizes = [rng.choice((1.0, 1.0, 2.0, 4.0))] * rng.randint(2, 4) + [3.0] * rng.randint(0, 1)
    amounts = {"gpu": 2.0, BANDWIDTH: 4.0}
    workers = tuple(oasis.Server(f"w{k}", amounts | {"gpu": size}) for k, size in enumerate(sizes))
    hosts = tuple(oasis.Server(f"p{k}", amounts) for k in range(rng.randint(1, 3)))
    jobs = []
    for k in range(rng.randint(4, 9)):
        most = rng.randint(1, 4)
        jobs.append(
            oasis.Job(
                id=f"j{k}",
                arrival=rng.randint(0, 7),
                utility=oasis.Sigmoid(rng.uniform(1, 50), rng.choice((0.0, 0.5, 2.0)), 4.0),
                epochs=rng.randint(1, 4),
                chunks=most,
                minibatches=1,
                minibatch_time=1.0,
                gradient_mb=0.0,
                worker={"gpu": 1.0, BANDWIDTH: rng.choice((0.0, 0.5))},
                ps={"gpu": rng.choice((0.0, 1.0)), BANDWIDTH: rng.choice((0.5, 1.0))},
                min_workers=rng.choice((1, 1, most)),
            )
        )
    jobs.sort(key=lambda job: job.arrival)
    return oasis.Instance(16, oasis.Cluster(("gpu", BANDWIDTH), workers, hosts, 1.0), tuple(jobs))


def tasks_of(allocation):
    """Tasks by machine; the two kinds have different ones."""
    return dict((*allocation.workers, *allocation.ps))


def kept(before, after, number):
    """Tasks that stay if the plan's machines are given these numbers."""
    return sum(
        min(count, before[job].get(number[machine], 0))
        for job, tasks in after.items()
        if job in before
        for machine, count in tasks.items()
    )


class Watched(oasis.Recourse):
    """Looks at everything that it decides."""

    moves = stays = 0

    def decide(self, view):
        before = {job.index: tasks_of(view.allocation(job)) for job in view.running()}
        plan = super().decide(view)
        assert isinstance(view, View)
        after = {
            job.index: tasks_of(plan.changes.get(job.index, view.allocation(job)))
            for job in view.jobs()
            if job.index not in plan.rejected
        }
        self.look(before, after)
        return plan

    def look(self, before, after):
        machines = self._site.machines
        own = {k: k for k in range(len(machines))}
        stays = kept(before, after, own)
        kinds: dict[Any, list[int]] = {}
        for k, machine in enumerate(machines):
            kinds.setdefault((machine.hosts, machine.capacity), []).append(k)
        orders = [list(itertools.permutations(kind)) for kind in kinds.values()]
        for chosen in itertools.product(*orders):
            number = dict(own)
            for kind, order in zip(kinds.values(), chosen, strict=True):
                number |= dict(zip(kind, order, strict=True))
            assert kept(before, after, number) <= stays, (before, after, number)
        jobs = {live.key: live.job for live in self._planner.plan.live.values()}

        def demand(job, machine):
            return jobs[job].worker if "worker" in machines[machine].hosts else jobs[job].ps

        for job, tasks in after.items():
            old = before.get(job, {})
            for group in ("worker", "ps"):
                mine = [k for k in own if group in machines[k].hosts]
                if not old or all(tasks.get(k, 0) <= old.get(k, 0) for k in mine):
                    continue  # it begins, or no task of it comes anywhere
                type(self).moves += 1
                for k in mine:
                    free = {
                        name: machines[k].amounts[r]
                        - sum(
                            demand(each, k).get(name, 0.0) * there.get(k, 0)
                            for each, there in after.items()
                        )
                        for r, name in enumerate(self._site.resources)
                    }
                    has_room = all(free[name] >= each for name, each in demand(job, k).items())
                    assert not (tasks.get(k, 0) < old.get(k, 0) and has_room), (before, after, k)
        type(self).stays += stays


@fewer(2)
@given(st.integers(0, 10**6), st.sampled_from(("none", "none", "start", "arrival")))
def test_no_task_moves_that_could_stay(seed, commitment):
    instance = cluster_of_equals(seed)
    known: list[tuple[Any, Any]] = []

    def watched(plan, kinds):
        def worth():
            return plan.standing, {
                key: (live.schedule.completion, live.schedule.worker_slots)
                for key, live in plan.live.items()
                if live.schedule is not None
            }

        before = worth()
        stay(plan, kinds)
        known.append((before, worth()))

    stay = module.stay
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "stay", watched)
        result = oasis.simulate(instance, Watched(commitment))
    oasis.verify(instance, result)
    assert known
    assert all(before == after for before, after in known)


def test_equal_machines_are_told_apart_by_who_is_there():
    """An arrival that is worth more takes the free machine, not the one that is in use."""
    Watched.moves = Watched.stays = 0
    for seed in range(8):
        oasis.simulate(cluster_of_equals(seed), Watched())
    assert Watched.stays > 30  # otherwise nothing was looked at
