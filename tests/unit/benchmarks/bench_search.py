"""Targets of the latency of decisions beside a compiled textbook DP: ``make bench``.

Not part of the tests: pytest does not collect this file by itself. The tables of
docs/benchmarks/search come from ``python -m tests.unit.benchmarks.search``.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import streams
from tests.unit.benchmarks.replay import Replay, one_pass, replay
from tests.unit.benchmarks.search import ratios


def median_and_tail(runs: list[Replay], rival: str) -> tuple[float, float]:
    """Ratio of the medians, and of the 99th percentiles."""
    theirs, ours = (np.concatenate([run.of(side) for run in runs]) for side in (rival, "quote"))
    return ratios(theirs, ours)


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
