"""Decision latency beside a compiled textbook DP and HiGHS: ``make bench``.

Not part of the tests: pytest does not collect this file by itself. The tables of
docs/benchmarks/search come from ``python -m tests.benchmarks.search``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from oasis import Job, OASiS
from tests.benchmarks import milp, streams
from tests.benchmarks.replay import Replay, assert_equal, one_pass, replay
from tests.benchmarks.search import forms_beside_one
from tests.benchmarks.textbook import Textbook, TunedTextbook, compile_all

SIZES = (("calibrated", 100, 40), ("calibrated", 300, 50), ("long", 300, 50))
JOBS = 30


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: "-".join(map(str, size)))
def market(request: pytest.FixtureRequest) -> tuple[str, OASiS, list[Job]]:
    """A scheduler after 35 jobs of a stream of 100, and the 30 jobs that follow."""
    compile_all()
    kind, horizon, servers = request.param
    instance = streams.STREAMS[kind](horizon, servers, 100, 0)
    scheduler, rest = streams.loaded(instance, 0.35)
    return f"{kind}, T = {horizon}, {servers} + {servers} servers", scheduler, rest[:JOBS]


def timed(benchmark: Any, group: str, decide: Callable[[Job], Any], jobs: list[Job]) -> None:
    """One round a job, each job three times: the spread is that between the jobs."""
    benchmark.group = group
    supply = cycle(jobs)
    benchmark.pedantic(decide, setup=lambda: ((next(supply),), {}), rounds=3 * len(jobs))


def test_oasis(benchmark: Any, market: tuple[str, OASiS, list[Job]]) -> None:
    group, scheduler, jobs = market
    timed(benchmark, group, scheduler.quote, jobs)


@pytest.mark.parametrize("kind", [Textbook, TunedTextbook], ids=["plain", "tuned"])
def test_textbook(
    benchmark: Any, market: tuple[str, OASiS, list[Job]], kind: type[Textbook]
) -> None:
    group, scheduler, jobs = market
    rival = kind.beside(scheduler)
    for job in jobs:
        assert_equal(scheduler.quote(job).payoff, rival.decide(job).payoff, job)
    timed(benchmark, group, rival.decide, jobs)


def test_solver(benchmark: Any, market: tuple[str, OASiS, list[Job]]) -> None:
    group, scheduler, jobs = market
    if group.startswith("long"):
        pytest.skip("minutes a job")
    timed(benchmark, group, lambda job: milp.best_payoff(scheduler, job), jobs)


# -- the targets: ratios from one process, equal payoffs asserted in each replay -------------------


def median_and_tail(runs: list[Replay], rival: str) -> tuple[float, float]:
    """Ratio of the medians, and of the 99th percentiles."""
    theirs, ours = (np.concatenate([run.of(side) for run in runs]) for side in (rival, "quote"))
    tail = float(np.percentile(theirs, 99) / np.percentile(ours, 99))
    return float(np.median(theirs) / np.median(ours)), tail


def test_long_jobs_are_decided_4_and_10_times_faster() -> None:
    runs = [replay(streams.long_jobs(300, 50, 60, seed), ("textbook",)) for seed in (0, 1)]
    median, tail = median_and_tail(runs, "textbook")
    assert median >= 4
    assert tail >= 10


def test_calibrated_jobs_are_decided_twice_as_fast() -> None:
    runs = [replay(streams.calibrated(300, 50, 100, seed), ("textbook",)) for seed in (0, 1)]
    assert median_and_tail(runs, "textbook")[0] >= 2


@pytest.mark.parametrize("kind", ["calibrated", "long"])
def test_large_cluster_is_decided_within_one_pass(kind: str) -> None:
    instance = streams.STREAMS[kind](1000, 1000, 40, 0)
    assert np.median(replay(instance, ()).of("quote")) <= one_pass(instance)


@pytest.mark.parametrize("kind", ["calibrated", "long"])
def test_the_size_of_the_papers_footnote_takes_under_10_ms(kind: str) -> None:
    run = replay(streams.STREAMS[kind](100, 40, 200, 0), ())
    assert np.percentile(run.of("quote") + run.of("commit"), 99) < 10


@pytest.mark.parametrize("kind", ["calibrated", "long"])
def test_jobs_of_three_forms_take_at_most_four_times_as_long_as_of_one(kind: str) -> None:
    one, three = np.median(forms_beside_one(kind, 100, 0), axis=0)
    assert three <= 4 * one
