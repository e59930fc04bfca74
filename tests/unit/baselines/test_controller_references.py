"""Every decision of the controllers against references that share nothing with them."""

import importlib
import random
from collections import Counter
from dataclasses import replace

import pytest

from baselines.dragon import Dragon, LocalityAware
from baselines.kod2 import Kod2
from baselines.priority_queue import PriorityQueue
from baselines.specon import SpeCon
from oasis import Constant
from oasis.simulator import (
    ChangeCosts,
    Engine,
    Machine,
    Observation,
    Outage,
    PolicyJob,
    Site,
    TrainingCurve,
    Workload,
)
from tests.oracle import (
    reference_dragon,
    reference_kod2,
    reference_priority_queue,
    reference_specon,
)


def beside(module, name, *options):
    """A reading of a controller that is kept beside the figure which needs it."""
    pytest.importorskip("matplotlib", reason="needs the plot extra")
    return getattr(importlib.import_module(f"experiments.figures.{module}"), name)(*options)


STATES = 2_000
CORES = 4.0
CASES = {
    "locality-aware": (
        LocalityAware,
        lambda sizes: reference_dragon.Reference(sizes, 0, 0, scaling=False),
        (),
    ),
    "dragon": (
        lambda: Dragon(4.0, 2.0),
        lambda sizes: reference_dragon.Reference(sizes, 4.0, 2.0),
        ("urgent", "shrunk", "in vain", "given back", "grown"),
    ),
    "dragon-code": (
        lambda: beside("dragon_readings", "Coded", 4.0, 2.0),
        lambda sizes: reference_dragon.Coded(sizes, 4.0, 2.0),
        ("shrunk", "in vain", "given back", "grown", "no room for servers"),
    ),
    "dragon-release": (
        lambda: beside("dragon_readings", "Released", 4.0, 2.0),
        lambda sizes: reference_dragon.Released(sizes, 4.0, 2.0),
        ("shrunk", "in vain", "given back", "grown"),
    ),
    "kod2": (
        lambda: Kod2(6.0),
        lambda sizes: reference_kod2.Reference(sizes, 6.0),
        ("walk", "scale-in", "scale-in in vain", "grown", "starving"),
    ),
    "priority-queue": (
        PriorityQueue,
        reference_priority_queue.Reference,
        ("spread", "shrunk", "helped", "helped at last", "in vain", "grown"),
    ),
    "priority-queue-printed": (
        lambda: beside("priority_queue", "AsPrinted"),
        lambda sizes: reference_priority_queue.Reference(sizes, printed=True),
        ("spread", "shrunk", "helped", "helped at last", "in vain", "grown"),
    ),
    "specon-converged": (
        lambda: beside("specon", "OtherReading", 0.03, 1.0, "worker", "converged"),
        lambda sizes: reference_specon.Reference(sizes, 0.03, 1.0, CORES, always=False),
        (
            *("spread", "back", "stays slow", "asks", "moves", "stays", "ties"),
            *("idle filled", "evened out"),
        ),
    ),
    "specon-cluster": (
        lambda: beside("specon", "OtherReading", 0.03, 1.0, "cluster", "converged"),
        lambda sizes: reference_specon.Reference(sizes, 0.03, 1.0, CORES, "cluster", always=False),
        ("asks", "moves", "stays", "idle filled"),
    ),
    "specon": (
        lambda: SpeCon(0.03, 1.0),
        lambda sizes: reference_specon.Reference(sizes, 0.03, 1.0, CORES),
        ("asks", "moves", "idle filled", "evened out", "before all have converged"),
    ),
}


def world(rng, sizes, jobs, most, chance, machines=None, **options):
    """The workload on these machines, of which one is perhaps lost from some time until `most`."""
    made = [Machine(f"m{k}", tuple(map(float, row)), **options) for k, row in enumerate(sizes)]
    begin = float(rng.randint(1, most))
    which = rng.randrange(machines or len(sizes))
    lost = [Outage(which, begin, begin + 3.0)] if rng.random() < chance else []
    return sizes, Workload.of(Site(("gpu", "memory"), tuple(made)), jobs), lost


def draw_workload(rng):
    """A few machines, elastic jobs with few sizes, and perhaps a machine that is lost."""
    sizes = [[rng.randint(1, 5), rng.randint(3, 12)] for _ in range(rng.randint(1, 3))]
    jobs = []
    for k in range(rng.randint(3, 9)):
        least = rng.randint(1, 2)
        most = least + rng.randint(0, 3)
        jobs.append(
            PolicyJob(
                f"j{k}",
                float(rng.randint(0, 12)),
                rng.choice([2.0, 7.5, 20.3]),
                ((0, 1), (1, rng.choice([1, 1, 2]))),
                ((1, 1),),
                least,
                most,
                initial_workers=rng.randint(least, most),
                fixed_ps=rng.randint(0, 2),
            )
        )
    return world(rng, sizes, jobs, 15, 0.4)


def draw_valued(rng):
    """The same with utilities."""
    sizes, work, lost = draw_workload(rng)
    worth = [None, Constant(1.0), Constant(2.0)]
    jobs = [replace(job, utility=rng.choice(worth)) for job in work.jobs]
    return sizes, Workload.of(work.site, jobs), lost


def draw_uneven(rng):
    """More machines, and few that hold a job of much memory: not every victim makes room."""
    _, work, _ = draw_workload(rng)
    sizes = [[rng.randint(1, 4), 20 if k == 2 else 4] for k in range(rng.randint(3, 5))]
    large = {"worker": ((0, 1), (1, 6)), "initial_workers": 1, "min_workers": 1}
    jobs = [
        replace(job, **large) if k % 4 == 3 else replace(job, initial_workers=job.max_workers)
        for k, job in enumerate(work.jobs)
    ]
    return world(rng, sizes, jobs, 9, 0.4, 3)


def draw_containers(rng):
    """Many small jobs that share cores and slow down in their training, and perhaps a large one."""
    sizes = [[rng.randint(5, 14), rng.randint(8, 20)] for _ in range(rng.randint(3, 4))]
    jobs = []
    short = rng.randrange(8)  # the containers that begin on this worker end sooner
    for k in range(rng.randint(6, 30)):
        pace = rng.choice([3.0, 8.0, 20.0, 30.0, 30.0, 30.0])
        workers = rng.choice([1] * 28 + [2, 15])
        jobs.append(
            PolicyJob(
                f"j{k}",
                float(rng.randint(0, 2)),
                rng.choice([5.0, 8.5] if k % len(sizes) == short else [12.3, 35.0]) * workers,
                ((0, 1), (1, 1)),
                ((1, 1),),
                workers,
                workers,
                fixed_ps=rng.choice([0, 0, 0, 1]),
                worker_cpu=rng.choice([0.0, 0.5, 1.0]),
                curve=TrainingCurve.exponential(1.0, 0.1, pace),
            )
        )
    return world(rng, sizes, jobs, 15, 0.3, cpu_cores=CORES)


DRAWS = {"dragon": draw_uneven, "specon": draw_containers, "priority-queue": draw_valued}


def plain(job, policy):
    """A job as the references take it; `n` is what the policy's book says that it asks for."""
    return {
        "k": job.index,
        "n": policy._book.counts[job.index][0],
        "least": job.min_workers,
        "most": job.max_workers,
        "p": job.ps_needed(job.min_workers),
        "memory": job.worker[1][1],
        "cpu": job.worker_cpu,
        "worth": job.utility.value if job.has_utility else 0.0,
    }


class Twin:
    """Asks the policy and the reference, and compares what they say."""

    told_remaining = slotted = False

    def __init__(self, policy, reference):
        self.policy, self.reference = policy, reference
        self.name, self.parameters, self.states = policy.name, {}, 0

    def reset(self, site):
        self.policy.reset(site)

    def decide(self, view):
        free = view.free()
        seen = {job.index: list(view.observed(job) or ()) for job in view.jobs()}
        plan = self.policy.decide(view)
        came = [plain(job, self.policy) for job in view.arrived if job.index not in plan.rejected]
        gone = [{"k": job.index} for job in view.finished]
        evicted = [plain(job, self.policy) for job in view.evicted]
        self.reference.values = seen
        self.reference.up = [any(row) for row in view.capacity()]
        said = self.reference.decide(view.now, free, came, gone, evicted)
        held = {
            index: sorted(
                (kind, machine)
                for kind, tasks in (("worker", allocation.workers), ("ps", allocation.ps))
                for machine, count in tasks
                for _ in range(count)
            )
            for index, allocation in plan.changes.items()
        }
        expected = {k: sorted(pods) for k, pods in said.items()}
        before = {
            job.index: view.allocation(job) for job in view.jobs() if job.index in plan.changes
        }
        same = [k for k in held if plan.changes[k] == before[k]]  # taken and given back at once
        assert {k: pods for k, pods in held.items() if k not in same or k in expected} == expected
        self.states += 1
        return plan


@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_reference(case):
    how, make, branches = CASES[case]
    policy, rng, states, seen = how(), random.Random(7), 0, Counter()
    while states < STATES:
        sizes, work, lost = DRAWS.get(policy.name, draw_workload)(rng)
        twin = Twin(policy, make(sizes))
        costs = rng.choice([None, ChangeCosts(start=0.5, resize=1.0)])
        look = Observation(1.0, 0.02 * (states % 3 == 0), seed=states)
        Engine(work, twin, costs=costs, outages=lost, observation=look).run()
        states += twin.states
        seen.update(twin.reference.seen)
    assert all(seen[branch] >= 3 for branch in branches), seen  # none is missing by chance
