"""The jobs of a trace in a scenario under a policy: a frame with a row a job, and its groupings."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from experiments.evaluation import whatif_result as results
from experiments.machines import MOST_MACHINES, machines_text
from oasis.model.errors import InputError
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.summary import how_many
from oasis.model.utility import UtilityColumns
from oasis.scheduling.policy import Policy, wants
from oasis.scheduling.policy_check import parameters_of
from oasis.simulator import Workload, replay
from oasis.simulator.state import JobProgress
from oasis.simulator.workload import Held, rigid_workload_on
from oasis.traces.job_table import TraceOptions, busiest, drawn_utilities
from oasis.traces.plain_job import PlainJob

POINTS = 240  # of a series over time
NO_OWNER = "(none)"
DRAWN_TEXT = (
    "drawn with seed {seed} as `oasis import` does: priority / (1 + exp(decay (d - target))) of "
    "the time d from submission to end, in units of 30 min; priority 1 to 100, decay 0 (10 % of "
    "the jobs), 0.01 to 1 (55 %) or 4 to 6 (35 %), target 1.5 x duration, at least 1"
)
TIMES = ["started", "waiting", "completion"]  # of a job in a run
WORTH = ["priority", "decay", "target"]  # columns of `UtilityColumns`


@dataclass(frozen=True)
class Scenario:
    """Jobs of a trace on machines with these numbers of GPUs; a source of inputs of sweep cells."""

    trace: pd.DataFrame = field(repr=False, compare=False)
    machines: tuple[int, ...]
    placement: str = "pooled"
    load: float = 1.0  # by which the times between submissions are divided
    sha256: str = ""  # of the trace
    held: Held = ()  # by other jobs
    draws: ClassVar[bool] = False

    @classmethod
    def of(cls, jobs: pd.DataFrame, machines: tuple[int, ...], placement: str) -> Scenario:
        """Make the scenario of the jobs with their own times of submission, load 1."""
        rows = pd.util.hash_pandas_object(jobs, index=False).to_numpy()
        sha256 = hashlib.sha256(" ".join(jobs).encode() + rows.tobytes()).hexdigest()
        return cls(jobs, machines, placement, sha256=sha256)

    @property
    def identity(self) -> dict[str, Any]:
        """Plain data that identify the jobs and the machines."""
        how = {"placement": self.placement, "load": self.load, "sha256": self.sha256}
        how |= {"held": self.held} if self.held else {}
        return {"kind": "trace", "machines": list(self.machines), **how}

    labels = identity

    def make(self, seed: int) -> Scenario:
        """Return the scenario itself: nothing is drawn, whatever the seed."""
        return self

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return sum(self.machines)

    @property
    def widest(self) -> int:
        """Most GPUs that a job may want in order to run at all."""
        return self.gpus if self.placement == "pooled" else max(self.machines)

    def at(self, count: int) -> Scenario:
        """Return the scenario on `count` machines; further machines are like the last one."""
        more = self.machines[-1:] * (count - len(self.machines))
        return replace(self, machines=(*self.machines, *more)[:count])

    @property
    def jobs(self) -> pd.DataFrame:
        """Jobs with submission times divided by the load; recorded starts only at a load of 1."""
        if self.load == 1.0:
            return self.trace
        submitted = self.trace.submitted / self.load
        return self.trace.assign(submitted=submitted, started=math.nan, ended=math.nan)

    @property
    def workload(self) -> Workload:
        """Machines and jobs for a simulation, without the recorded starts and ends."""
        jobs, worth = self.jobs, worth_of(self.jobs)
        names = ("job", "submitted", "duration", "gpus", "owner")
        columns = (jobs[name].tolist() for name in names)
        nothing = (repeat(None), repeat(None), repeat(""))  # of what really happened
        plain = map(PlainJob, *columns, *nothing, worth.rows() if worth else repeat(None))
        workload = rigid_workload_on(plain, self.machines, self.placement, self.others)
        # A million jobs of the trace need not be kept beside those of the simulation.
        return replace(workload, recorded=())

    @property
    def others(self) -> Held:
        """GPUs that jobs outside the trace hold, with times divided by the load."""
        return tuple((begin / self.load, end / self.load, n) for begin, end, n in self.held)

    @property
    def offered(self) -> tuple[float, float]:
        """GPU-hours that the jobs want, and GPU-hours available from first to last submission."""
        submitted, demand = self.jobs.submitted, (self.trace.gpus * self.trace.duration).sum()
        first, last = float(submitted.iloc[0]), float(submitted.iloc[-1])
        others = _held_between(self.others, first, last)
        capacity = max(0.0, self.gpus * (last - first) - others)
        return float(demand) / 3600.0, capacity / 3600.0

    @property
    def bounds(self) -> dict[str, Any]:
        """Bounds for every scheduler: least mean completion time; most utility, None if unknown."""
        from offline.rigid_bound import rigid_mean_bound  # noqa: PLC0415 (needs an extra)
        from offline.rigid_utility import rigid_utility_bound  # noqa: PLC0415

        jobs, worth = self.jobs, worth_of(self.jobs)
        names, gpus = ("submitted", "duration", "gpus"), self.gpus
        submitted, lasts, wide = (jobs[name].to_numpy() for name in names)
        return {
            "mean_completion": rigid_mean_bound(submitted, lasts, wide, gpus),
            "utility": worth and rigid_utility_bound(submitted, lasts, wide, worth, gpus),
        }


def jobs_frame(trace: pd.DataFrame) -> pd.DataFrame:
    """Data frame of a trace's jobs in order of submission; unrecorded times are NaN."""
    rows = trace.sort_values("submitted", kind="stable", ignore_index=True)
    owners = rows.owner.mask(rows.owner == "", NO_OWNER)
    frame = pd.DataFrame({"job": rows.id, "owner": pd.Categorical(owners), "gpus": rows.gpus})
    for name in ("submitted", "duration", "started", "ended"):
        frame[name] = rows[name].astype(float)
    # With a pause, a job ended later than its start and its duration say.
    frame["ended"] = np.fmax(frame.ended, frame.started + frame.duration)
    worth = rows.utility.dropna()
    return frame.assign(**asdict(UtilityColumns.of(worth))) if len(worth) == len(rows) else frame


def valued(jobs: pd.DataFrame, utilities: str | None, seed: int) -> tuple[pd.DataFrame, str | None]:
    """Return jobs with columns of drawn or given utilities, and a text on their origin or None."""
    if utilities == results.DRAWN:
        options = TraceOptions(seed=seed)
        slot = options.slot_seconds
        worth = drawn_utilities(jobs.duration.to_numpy() / slot, options)
        columns = (worth.priority, worth.decay / slot, worth.target * slot)
        return jobs.assign(**dict(zip(WORTH, columns, strict=True))), DRAWN_TEXT.format(seed=seed)
    if utilities == results.NONE:
        return jobs.drop(columns=WORTH, errors="ignore"), None
    if worth_of(jobs) is not None:
        return jobs, "what the table says each job is worth, if it ends by its deadline"
    if utilities == results.GIVEN:
        raise InputError("utilities", "expected a table with a column worth or deadline")
    return jobs, None


def worth_of(jobs: pd.DataFrame) -> UtilityColumns | None:
    """Utility functions of the jobs; None without columns of utilities."""
    if WORTH[0] not in jobs:
        return None
    return UtilityColumns(*(jobs[name].to_numpy() for name in WORTH))


def is_recorded(jobs: pd.DataFrame) -> bool:
    """Whether the trace records the start of any job."""
    return bool(jobs.started.notna().any())


def busiest_moment(jobs: pd.DataFrame, held: Held = ()) -> int:
    """Most GPUs in use at once by recorded times; jobs without a start count from submission."""
    rows = [{"started": begin, "duration": end - begin, "gpus": n} for begin, end, n in held]
    every = pd.concat([jobs, pd.DataFrame(rows)]) if held else jobs
    return int(busiest(every, every.gpus))


def smallest_machines(
    jobs: pd.DataFrame, size: int, placement: str, held: Held = ()
) -> tuple[tuple[int, ...], str]:
    """Fewest machines of `size` GPUs that fit the peak and every job; and a note on them."""
    if placement == "whole":
        size = max(size, int(jobs.gpus.max()))
    count = -(-busiest_moment(jobs, held) // size)
    if count > MOST_MACHINES:
        expected = f"expected at most {MOST_MACHINES:,} of {size} GPUs"
        raise InputError("machines", f"{expected}, the busiest moment takes {count:,}")
    machines = (size,) * count
    how = "what really happened" if is_recorded(jobs) else "runs that begin at submission"
    text = f"machines: {machines_text(machines)}, the fewest that hold the busiest moment of {how}"
    return machines, f"{text} (--machines)"


def scenarios(
    first: Scenario, loads: Iterable[float], fewer: Iterable[int], more: Iterable[int]
) -> list[Scenario]:
    """Scenarios: `first`; then with other loads, `fewer` machines, and `more` machines (counts)."""
    machines, widest, counts = len(first.machines), int(first.jobs.gpus.max()), list(fewer)
    if max(counts, default=0) >= machines:
        raise InputError(
            "fewer", f"expected fewer than the {how_many(machines, 'machine')}", max(counts)
        )
    settings = [first, *(replace(first, load=load) for load in loads if load != 1.0)]
    settings += [first.at(machines + count) for count in (*(-count for count in counts), *more)]
    for one in settings:
        if widest > one.widest:
            there_are = how_many(len(one.machines), "machine")
            hint = f"{there_are}; --max-gpus {one.widest} leaves larger jobs out"
            room = f"expected room for the largest job, {widest} GPUs, got {one.widest} with {hint}"
            raise InputError("machines" if one is first else "fewer", room)
    return settings


Levels = tuple[FloatArray, FloatArray]  # times, and what there is from each of them on


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """A simulated or recorded run: jobs with their times, queue and GPUs in use over time."""

    # With ``waiting``; ``completion``, NaN of a job that did not finish; and ``started``, NaN of
    # one that never had GPUs.
    jobs: pd.DataFrame
    queue: Levels
    in_use: Levels
    until: float
    moves: int = 0
    preemptions: int = 0
    held: float = 0.0  # GPU-seconds of other jobs


def _waits(progress: JobProgress) -> Iterator[float]:
    """Yield (time, +1) when a settled job begins to wait, (time, -1) when it stops waiting."""
    settled = progress.since if progress.end is None else progress.end
    # It waits from its arrival on; what it holds there, it holds from the same time on.
    waits = True
    yield from (progress.job.arrival, 1)
    for time, allocation in progress.history:
        if time >= settled:
            break  # it holds nothing any more, and waits for nothing
        if waits != (not allocation.workers):
            waits = not waits
            yield from (time, 1 if waits else -1)
    if waits:
        yield from (settled, -1)


def _levels(times: FloatArray, changes: FloatArray | IntArray) -> Levels:
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(changes[order], dtype=float)


def run(scenario: Scenario, policy: Policy) -> Ran:
    """Replay the jobs of a scenario under `policy`, and return the run."""
    workload, queue = scenario.workload, array("d")
    outcome = replay(workload, policy, on_settled=lambda job: queue.extend(_waits(job)))
    for job in outcome.jobs:
        if job.end is None and job.refusal is None:  # it waits for ever, and nothing settles it
            queue.extend((job.arrival, 1) if job.start is None else (job.arrival, 1, job.start, -1))
    names = ("start", "end", "waiting", "arrival")
    started, ended, waiting, submitted = (
        np.array([getattr(job, name) for job in outcome.jobs], dtype=float) for name in names
    )
    in_use = np.array([(time, sum(used)) for time, used in outcome.timeline], dtype=float)
    return Ran(
        scenario.jobs.assign(started=started, waiting=waiting, completion=ended - submitted),
        _levels(*np.array(queue).reshape(-1, 2).T),
        (in_use[:, 0], in_use[:, 1] / workload.site.grid),
        outcome.until,
        sum(job.migrations for job in outcome.jobs),
        sum(job.restarts for job in outcome.jobs),
        outcome.held / workload.site.grid,
    )


def _held_between(held: Held, begin: float, end: float) -> float:
    """GPU-seconds that jobs outside the trace hold from `begin` to `end`."""
    return sum(n * max(0.0, min(until, end) - max(since, begin)) for since, until, n in held)


def really_happened(jobs: pd.DataFrame, held: Held = ()) -> Ran:
    """The recorded run of jobs with a start; waiting is time to completion less duration."""
    jobs = jobs[jobs.started.notna()]
    completion = np.maximum(jobs.ended - jobs.submitted, jobs.duration)
    ones, wide = np.ones(len(jobs)), jobs.gpus.to_numpy()
    begins, ends = jobs.started.to_numpy(), jobs.ended.to_numpy()
    return Ran(
        jobs.assign(waiting=completion - jobs.duration, completion=completion),
        _levels(np.concatenate([begins, jobs.submitted]), np.concatenate([-ones, ones])),
        _levels(np.concatenate([ends, begins]), np.concatenate([-wide, wide])),
        float(ends.max()),
        preemptions=int((ends - begins > jobs.duration * (1 + 1e-9)).sum()),
        held=_held_between(held, float(jobs.submitted.iloc[0]), float(ends.max())),
    )


def figures(ran: Ran, gpus: int) -> dict[str, Any]:
    """Compute a run's figures; times in seconds, completion and slowdown of finished jobs."""
    jobs = with_measures(ran.jobs)
    begin = float(jobs.submitted.iloc[0])
    # What others hold cannot be in use; if they hold all, there is no share.
    free = gpus - (ran.held / (ran.until - begin) if ran.held else 0.0)
    unfinished = int(jobs.completion.isna().sum())
    row: dict[str, Any] = {
        "finished": len(jobs) - unfinished,
        "unfinished": unfinished,
        **{name: _summary(jobs[name].dropna()) for name in ("completion", "waiting", "slowdown")},
        # One part: the mean over the whole run.
        "gpu_utilisation": (
            float(_means(ran.in_use, begin, ran.until, 1)[0]) / free if free > 0 else None
        ),
        "preemptions": ran.preemptions,
        "moves": ran.moves,
        "by_size": _by(jobs.drop(columns="utility", errors="ignore"), "size"),
        "by_owner": _by(jobs, "owner"),
        "waiting_at": [_quantile(jobs.waiting, share / 100) for share in results.SHARES],
        "series": {
            "begin": begin,
            "end": ran.until,
            **{
                # Means of six digits: what is drawn needs no more.
                name: [float(f"{mean:.6g}") for mean in _means(levels, begin, ran.until, POINTS)]
                for name, levels in (("waiting", ran.queue), ("in_use", ran.in_use))
            },
        },
    }
    return row | ({"utility": math.fsum(jobs.utility)} if "utility" in jobs else {})


def with_measures(jobs: pd.DataFrame) -> pd.DataFrame:
    """Add columns to a run's jobs: size, GPU-hours, slowdown, and utility if it is known."""
    # Slowdown: durations below 10 s count as 10 s, so that short jobs do not decide (Feitelson and
    # Rudolph, JSSPP 1998).
    size = np.searchsorted([least for least, _, _ in results.SIZES], jobs.gpus, side="right") - 1
    frame = jobs.assign(
        size=pd.Categorical.from_codes(size, [text for _, _, text in results.SIZES]),
        gpu_hours=jobs.gpus * jobs.duration / 3600.0,
        slowdown=np.maximum(1.0, jobs.completion / np.maximum(jobs.duration, results.SHORTEST)),
    )
    worth = worth_of(jobs)
    if worth is not None:
        earned = worth(jobs.completion.fillna(0.0).to_numpy())
        frame["utility"] = np.where(jobs.completion.notna(), earned, 0.0)
    return frame


def _quantile(values: Any, share: float) -> float:
    """Least value that at least `share` of `values` do not exceed; the median for 0.5; or NaN."""
    if not len(values):
        return math.nan
    if share == 0.5:
        return float(np.median(values))
    # A share in binary may be a little too large.
    return float(np.quantile(values, max(0.0, share - 1e-12), method="inverted_cdf"))


def _summary(values: pd.Series) -> dict[str, float | None]:
    """Mean and percentiles of `values` by name; None without values."""
    mean = math.fsum(np.sort(values)) / len(values) if len(values) else math.nan
    columns = {"mean": mean, **{f"p{k}": _quantile(values, k / 100) for k in results.KEPT}}
    return dict(zip(columns, or_none(pd.Series(columns)), strict=True))


def _by(jobs: pd.DataFrame, key: str) -> dict[str, list[Any]]:
    """Figures of the jobs grouped by column `key`, a list per figure; None without values."""
    parts = jobs.groupby(key, observed=False)
    counts, means = parts.size(), parts[["waiting", "completion", "slowdown"]].mean()
    columns = {
        **{"jobs": counts, "gpu_hours": parts.gpu_hours.sum()},
        "p95_waiting": parts.waiting.agg(lambda waits: _quantile(waits, 0.95)),
        **{f"mean_{name}": means[name] for name in means},
        "unfinished": counts - parts.completion.count(),
    }
    if "utility" in jobs:
        columns["utility"] = parts.utility.sum()
    return {name: or_none(column) for name, column in columns.items()}


def or_none(column: pd.Series) -> list[Any]:
    """The values as a list, with None in place of NaN, which JSON does not have."""
    return [None if math.isnan(value) else value for value in column.tolist()]


def _means(levels: Levels, begin: float, end: float, parts: int) -> FloatArray:
    """Means of the step function `levels` over `parts` equal parts of `begin` to `end`."""
    times, values = levels
    if end <= begin or not len(times):
        return np.zeros(parts)
    edges = np.linspace(begin, end, parts + 1)
    until = np.append(times, max(end, times[-1]))
    # What has added up by each change; in between it grows in proportion.
    added = np.concatenate([[0.0], np.cumsum(values * np.diff(until))])
    return np.asarray(np.diff(np.interp(edges, until, added)) / np.diff(edges))


def recorded_figures(jobs: pd.DataFrame, gpus: int, held: Held = ()) -> dict[str, Any]:
    """Figures of the recorded run; `peak` is the most GPUs in use at once, with `held` ones."""
    ran = really_happened(jobs, held)
    times, in_use = ran.in_use
    begins, ends, wide = np.array(held, dtype=float).reshape(-1, 3).T
    _, level = _levels(
        np.concatenate([ends, times, begins]),
        np.concatenate([-wide, np.diff(in_use, prepend=0.0), wide]),
    )
    peak = int(level.max())
    return {**figures(ran, gpus), "peak": peak, "told": False, "parameters": {}}


def policy_figures(scenario: Scenario, policy: Policy) -> tuple[dict[str, Any], pd.DataFrame]:
    """Run `policy`; return figures, among them `told` (if it knows durations), and the jobs."""
    ran = run(scenario, policy)
    about = {"told": wants(policy, "told_remaining"), "parameters": parameters_of(policy)}
    return figures(ran, scenario.gpus) | about, ran.jobs


def csv_tables(
    result: results.WhatIf, jobs: pd.DataFrame, runs: dict[str, dict[str, list[float]]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of jobs by policy, with their times in `runs`, and of owners by policy and setting."""
    each = {name: jobs.assign(**times) for name, times in runs.items()}
    if is_recorded(jobs):
        each = {results.RECORDED: really_happened(jobs).jobs, **each}
    rows = with_measures(pd.concat(each, names=["policy"]).reset_index(level=0))
    parts = [
        pd.DataFrame(row["by_owner"])
        .assign(policy=name, load=one.load, gpus=one.gpus)
        .assign(machines=len(one.machines), owner=result.owners)
        for one in result.settings
        for name, row in one.policies.items()
    ]
    worth = ["utility"] if "utility" in rows else []
    columns = ["policy", "job", "owner", "gpus", "submitted", "duration", *TIMES, *worth]
    owners = ["load", "machines", "gpus", "policy", "owner", *results.PARTS, *worth]
    return rows[columns], pd.concat(parts)[owners]
