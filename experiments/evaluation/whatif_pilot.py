"""How long runs of ``oasis whatif`` will take: short runs of each policy, and the queue ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from time import perf_counter

import numpy as np

from experiments.evaluation.whatif import Scenario, run
from oasis.scheduling.policy import Policy

FIRST, MOST = 64, 4096  # jobs of a short run
BOUND_SECONDS = 5e-6  # of a job, for the bound
PATIENCE = 0.2  # seconds, after which no longer one follows
NOISE = 1.15  # by which the seconds of a job differ between two short runs and are called the same


def queue_ahead(scenario: Scenario) -> float:
    """Jobs that wait at each submission, added up, if all GPUs together serve one after another."""
    jobs = scenario.jobs
    came = jobs.submitted.to_numpy()
    work = (jobs.gpus * jobs.duration / scenario.gpus).to_numpy()
    added = np.cumsum(work)
    ends = added + np.maximum.accumulate(came - (added - work))
    return float((np.arange(len(jobs)) - np.searchsorted(ends, came, side="right")).clip(0).sum())


def seconds_a_job(scenario: Scenario, make: Callable[[], Policy]) -> tuple[float, float]:
    """Seconds that a job takes a policy to replay, and those more for each job that waits then.

    Measured where some of the jobs come all at once, so that half of them wait on average; then
    with twice as many, up to `MOST`.
    """
    jobs = scenario.jobs
    count, found = min(FIRST, len(jobs)), []
    while True:
        places = np.linspace(0, len(jobs) - 1, count).astype(int)
        some = replace(scenario, trace=jobs.iloc[places].assign(submitted=0.0), load=1.0)
        begin = perf_counter()
        try:
            run(some, make())
        except Exception:  # noqa: BLE001 - the run itself says what is wrong with the policy
            return 0.0, 0.0
        took = perf_counter() - begin
        found.append(took / count)
        if took > PATIENCE or 2 * count > min(MOST, len(jobs)):
            break
        count *= 2
    before, last = found[-2:] if len(found) > 1 else (found[0], found[0])
    slope = (last - before) / (count / 4) if last > NOISE * before else 0.0
    return max(0.0, last - slope * count / 2), slope


def expected_seconds(runs: Iterable[tuple[Scenario, str | None, Callable[[], Policy]]]) -> float:
    """About how long runs take: each of a scenario, the name of a policy and what makes it.

    Without a policy, it is the bound that is computed.
    """
    paces: dict[str, tuple[float, float]] = {}
    expected = 0.0
    for scenario, name, make in runs:
        if name is None:
            expected += BOUND_SECONDS * len(scenario.trace)
            continue
        if name not in paces:
            paces[name] = seconds_a_job(scenario, make)
        alone, beside = paces[name]
        expected += alone * len(scenario.trace) + (beside and beside * queue_ahead(scenario))
    return expected
