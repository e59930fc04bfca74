"""Measure times by size of the instance: writes the table of docs/how-long.

    nice -n 10 python -m tests.benchmarks.sizes docs/benchmarks/sizes.csv

Each measurement has a process of its own, so that its peak memory is its own. Times are seconds of
processor time, which other work on the machine disturbs less than the clock; a solve that uses both
cores counts both. Every run is verified, and a solve is ended by its work limit.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from functools import partial
from multiprocessing import get_context
from time import process_time

import oasis
from baselines.registry import make
from oasis.simulator import PlainJob, replay, rigid_workload
from offline import configuration_bound, solve
from tests.benchmarks.streams import calibrated
from tests.benchmarks.table import main

WORK = 20.0  # units for each solve, about as many seconds
# slots, servers of each group, jobs; all of the preset "calibrated"
RUNS = ((20, 10, 20), (100, 20, 50), (300, 50, 100), (300, 50, 400), (300, 200, 1000))
SOLVES = ((10, 4, 8), (20, 10, 20), (20, 20, 40), (50, 20, 50))
REPLAYS = (1_000, 10_000)
POLICIES = ("oasis", "recourse", "fifo", "drf", "rrh", "srtf", "las")
MOST = {"recourse": 100}  # jobs; it plans all live jobs again at each event


@dataclass(frozen=True)
class Row:
    """One measurement.

    `seconds` is processor time, `memory` the peak of the process in MB, and `gap` what a solve left
    open, in percent of what its schedule is worth.
    """

    what: str
    who: str
    slots: int | None
    servers: int | None
    jobs: int
    seconds: float
    memory: float
    gap: float | None = None


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(who: str, size: tuple[int, int, int]) -> Row:
    instance = calibrated(*size, seed=1)
    begin = process_time()
    if who == "oasis":
        done = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    else:
        done = oasis.simulate(instance, oasis.Recourse() if who == "recourse" else make(who))
    seconds = process_time() - begin
    oasis.verify(instance, done)
    return Row("run", who, *size, seconds, peak())


def offline_solve(who: str, size: tuple[int, int, int]) -> Row:
    instance = calibrated(*size, seed=1)
    begin = process_time()
    if who == "bound":
        configuration_bound(instance, work_limit=WORK)
        return Row("solve", who, *size, process_time() - begin, peak())
    done = solve(instance, time_limit=None, work_limit=WORK)
    return Row("solve", who, *size, process_time() - begin, peak(), gap=100 * done.gap)


def replay_trace(who: str, jobs: int) -> Row:
    trace = [
        PlainJob(f"j{k}", 60.0 * k, 600.0 + 7200.0 * (k % 5), 2 ** (k % 4)) for k in range(jobs)
    ]
    workload = rigid_workload(trace, servers=16, gpus_per_server=8)
    begin = process_time()
    replay(workload, make(who))
    return Row("replay", who, None, 16, jobs, process_time() - begin, peak())


def measurements() -> Iterator[Callable[[], Row]]:
    for size in RUNS:
        for who in POLICIES:
            if size[-1] <= MOST.get(who, size[-1]):
                yield partial(run, who, size)
    for size in SOLVES:
        for who in ("bound", "auto"):
            yield partial(offline_solve, who, size)
    for jobs in REPLAYS:
        for who in ("fifo", "srtf", "las"):
            yield partial(replay_trace, who, jobs)


def rows() -> Iterator[list[object]]:
    context = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        for row in pool.map(_call, measurements()):
            yield [_shown(value) for value in astuple(row)]


def _call(measure: Callable[[], Row]) -> Row:
    return measure()


def _shown(value: object) -> object:
    """Three digits: more would be noise."""
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main([field.name for field in fields(Row)], rows, __doc__)
