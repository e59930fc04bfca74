"""The jobs of a trace replayed under one policy: figures of all jobs, and of parts of them."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.evaluation.comparison import PLAIN
from oasis.model.errors import InputError, located_at
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import UtilityColumns
from oasis.scheduling.capabilities import wants
from oasis.scheduling.policy import Policy
from oasis.scheduling.policy_check import parameters_of
from oasis.simulator import Outcome, replay
from oasis.simulator.state import JobProgress
from oasis.simulator.workload import rigid_workload_on
from oasis.traces.mapping import drawn_utilities
from oasis.traces.options import TraceOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import read_source

RECORDED = "recorded"  # what really happened, beside the policies
PERCENTILES = (50, 95, 99)
SHORTEST = 10.0  # seconds: the slowdown of shorter jobs is that of jobs of this length
SIZES = ((1, 1, "1 GPU"), (2, 4, "2-4 GPUs"), (5, 8, "5-8 GPUs"), (9, None, "9 GPUs or more"))
POINTS = 240  # of a series over time
SHARES = (*range(0, 100, 5), 99, 99.9, 100)  # percent of the jobs, of the distribution of waiting
NO_OWNER = "(none)"

# What policies go by that a trace does not say; or why they take too long.
LEFT_OUT = {
    "rrh": "goes by what jobs are worth",
    "priority-queue": "goes by what jobs are worth",
    "kod2": "goes by weights of jobs",
    "specon": "goes by training curves",
    "optimus": "goes by training curves",
    "elasticflow": "goes by deadlines",
    "dragon": "changes numbers of workers",
    "kubernetes-default": "binds elastic jobs pod by pod",
    "gavel": "is slow with many jobs",
    "drf": "is slow with many jobs",
    "finish-time-fairness": "is slow with many jobs",
    "dorm": "is slow with many jobs",
}
CHOSEN = tuple(name for name in PLAIN if name not in LEFT_OUT)


COUNTED = re.compile(r"(\d+)\s*[xX*]\s*(\d+)")
MOST_MACHINES = 1_000_000
GPU_COLUMNS = ("gpus", "gpu", "num_gpus")  # in any letters; the first that there is
COUNT_COLUMNS = ("count", "machines")


@dataclass(frozen=True, slots=True, eq=False)
class JobColumns:
    """The jobs of a trace, column by column, in order of submission.

    Parameters
    ----------
    ids : tuple of str
        Their names.
    submitted, durations : (jobs,) float array
        Submission and duration of each job, in seconds.
    gpus : (jobs,) integer array
        GPUs that each holds while it runs.
    owners : tuple of str
        Names of those who submitted them.
    owner : (jobs,) integer array
        Whose each job is, as an index of `owners`.
    started, ended : (jobs,) float array
        When it really started and ended; NaN where the trace does not say.
    worth : UtilityColumns or None
        Utility of each job; None unless all are known.
    """

    ids: tuple[str, ...]
    submitted: FloatArray
    durations: FloatArray
    gpus: IntArray
    owners: tuple[str, ...]
    owner: IntArray
    started: FloatArray
    ended: FloatArray
    worth: UtilityColumns | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, jobs: Sequence[PlainJob]) -> JobColumns:
        """The columns of `jobs`.

        Examples
        --------
        >>> jobs = [PlainJob("a", 5.0, 60.0, 4, "ann"), PlainJob("b", 0.0, 30.0, 8, "bob")]
        >>> columns = JobColumns.of(jobs)
        >>> columns.ids, columns.owners, columns.owner.tolist()
        (('b', 'a'), ('ann', 'bob'), [1, 0])
        """
        rows = sorted(jobs, key=lambda job: job.submitted)
        # Numbers in place of names: parts are then counted by `bincount`, a million jobs at once.
        owners = sorted({job.owner or NO_OWNER for job in rows})
        place = {name: k for k, name in enumerate(owners)}
        started = np.array([math.nan if job.started is None else job.started for job in rows])
        durations = np.array([job.duration for job in rows], dtype=float)
        told = [math.nan if job.ended is None else job.ended for job in rows]
        worth = [job.utility for job in rows if job.utility is not None]
        return cls(
            ids=tuple(job.id for job in rows),
            submitted=np.array([job.submitted for job in rows], dtype=float),
            durations=durations,
            gpus=np.array([job.gpus for job in rows], dtype=np.int64),
            owners=tuple(owners),
            owner=np.array([place[job.owner or NO_OWNER] for job in rows], dtype=np.int64),
            started=started,
            # With a pause, a job ended later than its start and its duration say.
            ended=np.fmax(np.array(told), started + durations),
            worth=UtilityColumns.of(worth) if rows and len(worth) == len(rows) else None,
        )

    def with_drawn_worth(self, seed: int) -> JobColumns:
        """The same jobs with utilities drawn as ``oasis import`` draws them, with this seed.

        Examples
        --------
        >>> jobs = JobColumns.of([PlainJob("a", 0.0, 7200.0, 4)]).with_drawn_worth(0)
        >>> jobs.worth.target.tolist()  # seconds after the submission
        [10800.0]
        """
        options = TraceOptions(seed=seed)
        slot = options.slot_seconds
        drawn = drawn_utilities(self.durations / slot, options)
        columns = (drawn.priority, drawn.decay / slot, drawn.target * slot)
        return replace(self, worth=UtilityColumns(*columns))

    def at_load(self, load: float) -> JobColumns:
        """The same jobs submitted `load` times as fast, without records of real starts.

        Examples
        --------
        >>> jobs = JobColumns.of([PlainJob("a", 0.0, 60.0, 4), PlainJob("b", 90.0, 60.0, 4)])
        >>> jobs.at_load(1.5).submitted.tolist()
        [0.0, 60.0]
        """
        if load == 1.0:
            return self
        # At another load the jobs would not have started when they did.
        unknown = np.full(len(self), math.nan)
        return replace(self, submitted=self.submitted / load, started=unknown, ended=unknown)

    def rows(self) -> list[PlainJob]:
        """The jobs for a simulation, without anything that really happened to them."""
        times = (self.submitted.tolist(), self.durations.tolist())
        owners = map(self.owners.__getitem__, self.owner.tolist())
        rows = zip(self.ids, *times, self.gpus.tolist(), owners, strict=True)
        if self.worth is None:
            return [PlainJob(*row) for row in rows]
        worth = self.worth.rows()
        return [PlainJob(*row, utility=each) for row, each in zip(rows, worth, strict=True)]

    @property
    def digest(self) -> str:
        """SHA-256 of all columns."""
        found = hashlib.sha256("\0".join((*self.ids, "", *self.owners)).encode())
        columns = [self.submitted, self.durations, self.gpus, self.owner, self.started]
        if self.worth is not None:
            columns += [self.worth.priority, self.worth.decay, self.worth.target]
        for column in columns:
            found.update(column.tobytes())
        return found.hexdigest()

    @property
    def is_recorded(self) -> bool:
        """Whether the trace records the start of any job."""
        return bool(np.isfinite(self.started).any())


def busiest_moment(jobs: JobColumns) -> int:
    """Most GPUs in use at one time, as recorded; counted from submission where starts are unknown.

    A job that ends makes room for one that begins at the same time.

    Examples
    --------
    >>> rows = [("a", 0.0, 10.0, 4), ("b", 5.0, 10.0, 2), ("c", 10.0, 5.0, 8)]
    >>> busiest_moment(JobColumns.of([PlainJob(*row) for row in rows]))
    10
    """
    known = np.isfinite(jobs.started)
    begins = np.where(known, jobs.started, jobs.submitted)
    times = np.concatenate([begins + jobs.durations, begins])
    changes = np.concatenate([-jobs.gpus, jobs.gpus])
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max())


def smallest_machines(jobs: JobColumns, size: int, placement: str) -> tuple[int, ...]:
    """The fewest machines of `size` GPUs that together hold the busiest moment and each job.

    Where a job must be whole on one machine, they have at least the GPUs of the largest job.

    Examples
    --------
    >>> jobs = JobColumns.of([PlainJob("a", 0.0, 10.0, 12), PlainJob("b", 5.0, 10.0, 2)])
    >>> smallest_machines(jobs, 8, "pooled"), smallest_machines(jobs, 8, "whole")
    ((8, 8), (12, 12))
    """
    if placement == "whole":
        size = max(size, int(jobs.gpus.max()))
    return (size,) * -(-busiest_moment(jobs) // size)


def machine_list(text: str) -> tuple[int, ...]:
    """GPUs of each machine.

    Parameters
    ----------
    text : str
        ``16x8`` for 16 machines of 8 GPUs, several of these with commas between, or the name of a
        CSV file with one row per machine: a column ``gpus`` (or ``gpu``, ``num_gpus``), and perhaps
        ``count``, how many such machines there are. Machines without GPUs are passed over.

    Raises
    ------
    InputError
        If it is neither, or there is no machine with GPUs.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> machine_list("2x8,1x4")
    (8, 8, 4)
    """
    parts = [COUNTED.fullmatch(part.strip()) for part in text.split(",")]
    if all(parts):
        counts = [(int(part[1]), int(part[2])) for part in parts if part]
        return _listed(counts, text)
    if not Path(text).exists() and text != "-":
        raise InputError("", "expected such as 16x8, or a file with a column gpus", text)
    with located_at(source=text):
        return _listed(_counts(text), text)


def _listed(counts: list[tuple[int, int]], text: str) -> tuple[int, ...]:
    there = [(count, gpus) for count, gpus in counts if gpus]
    total = sum(count for count, _ in there)
    if not 1 <= total <= MOST_MACHINES:
        raise InputError("", f"expected 1..{MOST_MACHINES:,} machines with GPUs, got {total:,}")
    return tuple(gpus for count, gpus in there for _ in range(count))


def _counts(file: str) -> list[tuple[int, int]]:
    rows = csv.DictReader(read_source(file).lines)
    names = {name.strip().casefold(): name for name in rows.fieldnames or ()}
    column = next((names[name] for name in GPU_COLUMNS if name in names), None)
    if column is None:
        got = ", ".join(names) or "an empty file"
        raise InputError("", f"expected one of the columns {', '.join(GPU_COLUMNS)}, got {got}")
    many = next((names[name] for name in COUNT_COLUMNS if name in names), None)
    return [
        (1 if many is None else _whole(row, many, k), _whole(row, column, k))
        for k, row in enumerate(rows, start=2)
    ]


def _whole(row: dict[str, str | None], column: str, line: int) -> int:
    text = (row.get(column) or "").strip()
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0 or not value.is_integer():
        raise InputError(f"line {line}, {column}", "expected a whole number", text)
    return int(value)


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the jobs of a run, and its queue and use over time.

    Parameters
    ----------
    waiting, completion : (jobs,) float array
        Seconds without GPUs, and from submission to the end; a job that did not finish has no
        completion, which is NaN.
    started : (jobs,) float array
        Time at which each job first had GPUs; NaN if never.
    moves, preemptions : int
        How often jobs were moved, and resumed after they had been preempted.
    queue, in_use : tuple of (float array, float array)
        Times, and from each of them on how many jobs wait, or how many GPUs are in use.
    until : float
        End of the run.
    """

    waiting: FloatArray
    completion: FloatArray
    started: FloatArray
    moves: int
    preemptions: int
    queue: tuple[FloatArray, FloatArray]
    in_use: tuple[FloatArray, FloatArray]
    until: float


class _Queue:
    """Counts waiting jobs over time, from the times of each job that settles."""

    def __init__(self) -> None:
        self.times, self.changes = array("d"), array("b")

    def note(self, progress: JobProgress) -> None:
        # A job waits from its arrival on; what it holds there, it holds from the same time on.
        waits = True
        self._change(progress.job.arrival, 1)
        for time, held in progress.history:
            if progress.end is not None and time >= progress.end:
                break  # it holds nothing any more, and waits for nothing
            if waits != (not held.workers):
                waits = not held.workers
                self._change(time, 1 if waits else -1)
        if progress.refusal is not None and waits:
            self._change(progress.since, -1)
        elif progress.end is not None and not progress.history:
            self._change(progress.end, -1)

    def _change(self, time: float, change: int) -> None:
        self.times.append(time)
        self.changes.append(change)

    def levels(self) -> tuple[FloatArray, FloatArray]:
        return _levels(np.array(self.times), np.array(self.changes, dtype=float))


def _levels(times: FloatArray, changes: FloatArray) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(changes[order])


def run(jobs: JobColumns, machines: Sequence[int], placement: str, policy: Policy) -> Times:
    """Replay `jobs` under `policy` on machines of these GPUs.

    Examples
    --------
    >>> from baselines import FIFO
    >>> jobs = JobColumns.of([PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)])
    >>> times = run(jobs, (8,), "pooled", FIFO())
    >>> times.waiting.tolist(), times.completion.tolist()
    ([0.0, 55.0], [60.0, 85.0])
    """
    queue = _Queue()
    # A million jobs of the trace need not be kept beside those of the simulation.
    workload = replace(rigid_workload_on(jobs.rows(), machines, placement), recorded=())
    outcome = replay(workload, policy, on_settled=queue.note)
    nan = math.nan
    return Times(
        waiting=np.array([job.waiting for job in outcome.jobs]),
        completion=np.array(
            [nan if job.end is None else job.end - job.arrival for job in outcome.jobs]
        ),
        started=np.array([nan if job.start is None else job.start for job in outcome.jobs]),
        moves=sum(job.migrations for job in outcome.jobs),
        preemptions=sum(job.restarts for job in outcome.jobs),
        queue=_with_stuck(queue, outcome),
        in_use=(
            np.array([time for time, _ in outcome.timeline]),
            np.array([sum(used) for _, used in outcome.timeline], dtype=float) / workload.site.grid,
        ),
        until=outcome.until,
    )


def _with_stuck(queue: _Queue, outcome: Outcome) -> tuple[FloatArray, FloatArray]:
    """The queue with those jobs too that never finished and were not rejected."""
    for job in outcome.jobs:
        if job.end is None and job.refusal is None:
            queue.times.append(job.arrival)
            queue.changes.append(1)
            if job.start is not None:
                queue.times.append(job.start)
                queue.changes.append(-1)
    return queue.levels()


def really_happened(jobs: JobColumns) -> tuple[Times, IntArray]:
    """Return the recorded times of the jobs whose start is recorded, and which jobs these are.

    A job waits from its submission to its end, less its duration.

    Returns
    -------
    Times
        Of those jobs alone.
    (those,) integer array
        Their places among `jobs`.

    Examples
    --------
    >>> times, places = really_happened(
    ...     JobColumns.of([PlainJob("a", 0.0, 60.0, 8, started=0.0), PlainJob("b", 5.0, 30.0, 8)]))
    >>> times.completion.tolist(), places.tolist()
    ([60.0], [0])
    """
    places = np.flatnonzero(np.isfinite(jobs.started))
    came, begins = jobs.submitted[places], jobs.started[places]
    ends, wide = jobs.ended[places], jobs.gpus[places].astype(float)
    completion = np.maximum(ends - came, jobs.durations[places])
    ones = np.ones(len(places))
    times = Times(
        waiting=completion - jobs.durations[places],
        completion=completion,
        started=begins,
        moves=0,
        preemptions=int((ends - begins > jobs.durations[places] * (1 + 1e-9)).sum()),
        queue=_levels(np.concatenate([begins, came]), np.concatenate([-ones, ones])),
        in_use=_levels(np.concatenate([ends, begins]), np.concatenate([-wide, wide])),
        until=float(ends.max()),
    )
    return times, places


def figures(jobs: JobColumns, times: Times, gpus: int) -> dict[str, Any]:
    """The numbers of one run as plain data; times in seconds.

    Parameters
    ----------
    jobs : JobColumns
        The jobs that `times` are of.
    times : Times
        Their times in the run.
    gpus : int
        GPUs of all machines, of which shares in use are.

    Returns
    -------
    dict
        ``finished``, ``unfinished``, ``moves``, ``preemptions``, ``gpu_utilisation`` (mean share of
        the GPUs in use from the first submission to the end of the run); the mean and percentiles
        of ``completion``, ``waiting`` and ``slowdown`` (a percentile is the smallest value that at
        least so many percent of the jobs do not exceed); ``by_size`` in the order of `SIZES` and
        ``by_owner`` in that of ``jobs.owners``, each a mapping of figures to lists; the
        distribution of waiting at `SHARES`; and ``series``: means of the jobs that wait and of the
        GPUs in use over equal parts of the run. Completion and slowdown are those of the jobs that
        finished. ``utility`` is the sum over the jobs, and ``by_owner`` has that of each owner's,
        if it is known what jobs are worth.

    Examples
    --------
    >>> from baselines import FIFO
    >>> jobs = JobColumns.of([PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)])
    >>> found = figures(jobs, run(jobs, (8,), "pooled", FIFO()), 8)
    >>> found["completion"]["mean"], found["waiting"]["p95"], found["gpu_utilisation"]
    (72.5, 55.0, 1.0)
    """
    done = np.isfinite(times.completion)
    sizes = np.searchsorted([least for least, _, _ in SIZES], jobs.gpus, side="right") - 1
    begin = float(jobs.submitted[0])
    # One part: the mean over the whole run.
    held = float(_means(times.in_use, begin, times.until, 1)[0])
    found: dict[str, Any] = {
        "finished": int(done.sum()),
        "unfinished": int((~done).sum()),
        "completion": _summary(times.completion[done]),
        "waiting": _summary(times.waiting),
        "slowdown": _summary(slowdowns(times.completion[done], jobs.durations[done])),
        "gpu_utilisation": held / gpus,
        "preemptions": times.preemptions,
        "moves": times.moves,
        "by_size": _by_part(jobs, times, sizes, len(SIZES)),
        "by_owner": _by_part(jobs, times, jobs.owner, len(jobs.owners)),
        "waiting_at": [_quantile(np.sort(times.waiting), share / 100) for share in SHARES],
        "series": {
            "begin": begin,
            "end": times.until,
            "waiting": _rounded(_means(times.queue, begin, times.until, POINTS)),
            "in_use": _rounded(_means(times.in_use, begin, times.until, POINTS)),
        },
    }
    earned = earned_by(jobs, times.completion)
    if earned is not None:
        owned = np.bincount(jobs.owner, earned, minlength=len(jobs.owners))
        found["utility"] = math.fsum(earned)
        found["by_owner"]["utility"] = owned.tolist()
    return found


def earned_by(jobs: JobColumns, completion: FloatArray) -> FloatArray | None:
    """Utility of each job after these times, 0 if it did not finish; None if unknown."""
    if jobs.worth is None:
        return None
    done = np.isfinite(completion)
    return np.where(done, jobs.worth(np.where(done, completion, 0.0)), 0.0)


def slowdowns(completion: FloatArray, durations: FloatArray) -> FloatArray:
    """Bounded slowdown: the time to completion by the duration, at least 1.

    Durations below 10 s count as 10 s, so that short jobs do not decide (Feitelson and Rudolph,
    JSSPP 1998).

    Examples
    --------
    >>> slowdowns(np.array([120.0, 20.0, 1.0]), np.array([60.0, 1.0, 1.0])).tolist()
    [2.0, 2.0, 1.0]
    """
    return np.maximum(1.0, completion / np.maximum(durations, SHORTEST))


def _quantile(ordered: FloatArray, share: float) -> float | None:
    """The smallest value that at least `share` of all do not exceed."""
    if not len(ordered):
        return None
    return float(ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)])


def _summary(values: FloatArray) -> dict[str, float | None]:
    ordered = np.sort(values)
    mean = math.fsum(values) / len(values) if len(values) else None
    return {"mean": mean, **{f"p{k}": _quantile(ordered, k / 100) for k in PERCENTILES}}


def _by_part(
    jobs: JobColumns, times: Times, part: IntArray, parts: int
) -> dict[str, list[float | None]]:
    """Figures of each part of the jobs; None where a part has none."""
    done = np.isfinite(times.completion)
    counts, finished = np.bincount(part, minlength=parts), np.bincount(part[done], minlength=parts)
    slow = slowdowns(times.completion[done], jobs.durations[done])
    # Sorted once by part and waiting: a percentile is then one place in each part.
    order = np.lexsort((times.waiting, part))
    last = np.cumsum(counts)
    places = last - counts + np.maximum(np.ceil(0.95 * counts - 1e-9).astype(int), 1) - 1
    p95 = times.waiting[order][np.minimum(places, len(order) - 1)]

    def mean(values: FloatArray, of: IntArray, among: IntArray) -> list[float | None]:
        sums = np.bincount(of, values, minlength=parts)
        return [s / n if n else None for s, n in zip(sums.tolist(), among.tolist(), strict=True)]

    hours = jobs.gpus * jobs.durations / 3600.0
    return {
        "jobs": counts.tolist(),
        "gpu_hours": np.bincount(part, hours, minlength=parts).tolist(),
        "mean_waiting": mean(times.waiting, part, counts),
        "p95_waiting": [v if n else None for v, n in zip(p95.tolist(), counts, strict=True)],
        "mean_completion": mean(times.completion[done], part[done], finished),
        "mean_slowdown": mean(slow, part[done], finished),
        "unfinished": (counts - finished).tolist(),
    }


def _means(
    levels: tuple[FloatArray, FloatArray], begin: float, end: float, parts: int
) -> FloatArray:
    """Means of a step function over equal parts of the time from `begin` to `end`."""
    times, values = levels
    if end <= begin or not len(times):
        return np.zeros(parts)
    edges = np.linspace(begin, end, parts + 1)
    # What has added up by each change, and by each edge.
    added = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    places = np.searchsorted(times, edges, side="right") - 1
    known = np.maximum(places, 0)
    sums = np.where(places >= 0, added[known] + values[known] * (edges - times[known]), 0.0)
    return np.asarray(np.diff(sums) / np.diff(edges))


def _rounded(values: FloatArray) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


def chosen_part(jobs: JobColumns, places: IntArray) -> JobColumns:
    """Some of the jobs, by their places; all owners stay."""
    columns = ("submitted", "durations", "gpus", "owner", "started", "ended")
    ids = tuple(jobs.ids[k] for k in places.tolist())
    worth = None if jobs.worth is None else jobs.worth.part(places)
    chosen = {name: getattr(jobs, name)[places] for name in columns}
    return replace(jobs, ids=ids, worth=worth, **chosen)


def recorded_figures(jobs: JobColumns, gpus: int) -> dict[str, Any]:
    """Figures of the recorded run, and ``peak``, the most GPUs in use at once."""
    times, places = really_happened(jobs)
    return {
        **figures(chosen_part(jobs, places), times, gpus),
        "peak": int(times.in_use[1].max()),
        "told": False,
        "parameters": {},
    }


def policy_figures(
    jobs: JobColumns, machines: Sequence[int], placement: str, policy: Policy
) -> tuple[dict[str, Any], Times]:
    """The numbers of a run of `policy`, and its times job by job.

    Beside `figures`, ``told`` says whether the policy knows how long jobs will take.
    """
    times = run(jobs, machines, placement, policy)
    found = figures(jobs, times, sum(machines))
    told = wants(policy, "told_remaining")
    return found | {"told": told, "parameters": parameters_of(policy)}, times


def mean_bound(jobs: JobColumns, gpus: int) -> float:
    """A lower bound on the mean time to completion under any scheduler.

    Examples
    --------
    >>> mean_bound(JobColumns.of([PlainJob("a", 0.0, 60.0, 8)]), 8) <= 60.0
    True
    """
    from offline.rigid_bound import rigid_mean_bound  # noqa: PLC0415 (needs an extra)

    return rigid_mean_bound(jobs.submitted, jobs.durations, jobs.gpus, gpus)


def utility_bound(jobs: JobColumns, gpus: int) -> float | None:
    """An upper bound on the total utility of all jobs under any scheduler.

    Examples
    --------
    >>> from oasis.model.utility import Constant
    >>> jobs = JobColumns.of([PlainJob("a", 0.0, 60.0, 8, utility=Constant(5.0))])
    >>> round(utility_bound(jobs, 8), 6)
    5.0
    """
    from offline.rigid_utility import rigid_utility_bound  # noqa: PLC0415 (needs an extra)

    if jobs.worth is None:
        return None
    return rigid_utility_bound(jobs.submitted, jobs.durations, jobs.gpus, jobs.worth, gpus)
