"""A stream decided by OASiS, with other ways to the same answer timed on each job beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis import Decision, Instance, Job, OASiS
from oasis.model.rounding import FloatArray
from oasis.online.search import searches
from tests.unit.benchmarks.textbook import Textbook, TunedTextbook, compile_all

REPEATS = 3
SIDES = ("quote", "search", "commit", "textbook", "tuned")


@dataclass(frozen=True)
class Replay:
    """Milliseconds of each side for each job, the fastest of `REPEATS`, and what was decided.

    quote: `OASiS.quote`, with the explanation if the job is rejected; search: its schedule alone;
    commit: what `OASiS.submit` adds for an admitted job; textbook, tuned: the compiled DP.
    """

    jobs: Sequence[Job]
    milliseconds: dict[str, FloatArray]
    admitted: np.ndarray

    def of(self, side: str, group: str = "all") -> FloatArray:
        chosen = {"all": self.admitted | True, "admitted": self.admitted}
        return self.milliseconds[side][chosen.get(group, ~self.admitted)]


def fastest(function: Callable[[], Any], repeats: int = REPEATS) -> tuple[Any, float]:
    """Return the result of `function`, and the milliseconds of its fastest run."""
    best, result = np.inf, None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - begin)
    return result, 1e3 * best


def replay(instance: Instance, rivals: Sequence[str] = ("textbook", "tuned")) -> Replay:
    """Decide on all jobs; every rival must find the same payoff for every one of them."""
    compile_all()
    scheduler = OASiS.from_instance(instance)
    jobs = instance.jobs_by_arrival()
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for job in jobs:
        decision, quote = fastest(lambda job=job: _explained(scheduler, job))
        _, search = fastest(lambda job=job: _schedule(scheduler, job))
        times["quote"].append(quote)
        times["search"].append(search)
        for name, kind in (("textbook", Textbook), ("tuned", TunedTextbook)):
            if name not in rivals:
                times[name].append(np.nan)
                continue
            rival = kind.beside(scheduler)
            answer, taken = fastest(lambda rival=rival, job=job: rival.decide(job))
            times[name].append(taken)
            assert_equal(decision.payoff, answer.payoff, job)
        begin = time.perf_counter()
        if decision.schedule is not None:
            scheduler.ledger.commit(job, decision.schedule, scheduler.bounds)
        scheduler.record(decision, job.arrival)
        times["commit"].append(1e3 * (time.perf_counter() - begin))
    arrays = {side: np.array(values) for side, values in times.items()}
    return Replay(jobs, arrays, np.array([d.admitted for d in scheduler.decisions]))


def _explained(scheduler: OASiS, job: Job) -> Decision:
    decision = scheduler.quote(job)
    assert decision.admitted or decision.reason  # which is found out when it is asked for
    return decision


def _schedule(scheduler: OASiS, job: Job) -> object:
    fraction = scheduler.bounds.min_utility_fraction
    (search,) = searches(job, scheduler.ledger, scheduler.granularity, fraction)
    split = search.best()
    return None if split is None else search.schedule(split)


def assert_equal(payoff: float, other: float, job: Job) -> None:
    """The same payoff to 1e-9, relative to what the job is worth."""
    noise = 1e-9 * max(1.0, float(job.utility(0)))
    assert abs(payoff - other) <= noise, f"{job.id}: {payoff!r} against {other!r}"


def one_pass(instance: Instance, repeats: int = 9) -> float:
    """Milliseconds of ``np.floor((c - g) / w).min(-1)`` over both residual tensors, the median."""
    cluster, rng = instance.cluster, np.random.default_rng(0)
    w = np.ones(len(cluster.resources))
    used = [
        rng.random((instance.horizon, *capacity.shape))
        for capacity in (cluster.worker_capacity, cluster.ps_capacity)
    ]
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for c, g in zip((cluster.worker_capacity, cluster.ps_capacity), used, strict=True):
            np.floor((c - g) / w).min(-1)
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times))
