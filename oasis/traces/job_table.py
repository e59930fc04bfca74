"""Traces as frames of jobs: the choice of jobs, and jobs of the model with machines for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, make_dataclass, replace
from functools import cached_property
from itertools import repeat
from math import ceil, floor
from typing import Any, TypeVar

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InputError, InstanceError
from oasis.model.instance import Instance
from oasis.model.job import GBIT_PER_MB, Job
from oasis.model.records import Flag, Number, Text, Whole, check
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.summary import Facts, Summarised, how_many
from oasis.model.utility import UtilityColumns
from oasis.model.validation import LARGEST_COUNT
from oasis.traces.plain_job import FACTS, PlainJob
from oasis.traces.table import EARLIER_RUN, NEVER_RAN, NO_JOBS, NOT_ENDED, Frame, Mask, Rows, pd
from oasis.traces.times import UNITS, TraceTimes
from oasis.workloads.presets import DECAY
from oasis.workloads.work import shares

# --- assumptions about jobs, machines and time ----------------------------------------------------

RANGES = (("min_gpus", "max_gpus"), ("min_duration", "max_duration"), ("arrival_slots", "horizon"))
# Constraint (7) has no solution where a worker sends more than a parameter server takes.
BANDWIDTHS = ("worker_bandwidth_gbps", "ps_bandwidth_gbps")


def options_of_toml(name: str, *bases: type) -> Any:
    """Return the options class that formats.toml defines under `name`; it inherits from `bases`."""
    doc, *facts = FACTS["options"][name].items()
    entries: list[Any] = []
    for key, fact in facts:
        default, least = fact["default"], fact.get("minimum", 0)
        choices, above = tuple(fact.get("choices", ())), fact.get("above", False)
        text, amount = Text(choices, empty=True), Number(least, above)
        kinds = {bool: Flag(), str: text, int: Whole(least), float: amount}
        metadata = {"kind": kinds[type(default)], "absent": MISSING, "help": fact["doc"]}
        metadata["reading"] = fact.get("reading", True)
        entries.append((key, type(default).__name__, field(default=default, metadata=metadata)))
    space = {"__doc__": doc[1].strip(), "__module__": "oasis.traces"}
    return make_dataclass(name, entries, bases=bases, namespace=space, frozen=True, slots=True)


_Fields: Any = options_of_toml("TraceOptions")


@dataclass(frozen=True)
class TraceOptions(_Fields):  # type: ignore[misc]
    """Assumptions shared by the importers; docs/traces gives the formula behind each."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in ("time_unit", "duration_unit"):
            value = getattr(self, name)
            object.__setattr__(self, name, UNITS.get(str(value).lower(), value))
        check(self)
        if self.insensitive + self.critical > 1:
            raise InputError("critical", "expected insensitive + critical <= 1")
        for low, high in (*RANGES, ("min_priority", "max_priority"), BANDWIDTHS):
            if getattr(self, low) > getattr(self, high):
                raise InputError(low, f"expected at most {high} ({getattr(self, high):g})")


Options = TypeVar("Options", bound=TraceOptions)
LABELS = ("virtual_cluster", "user", "partition", "queue", "qos")
MOST_NAMED = 12  # choices in an error message
# Limits with which no option that is given clashes, before they are chosen to fit all jobs.
LOOSE: dict[str, Any] = {low: int(low == "arrival_slots") for low, _ in RANGES}
LOOSE |= {high: LARGEST_COUNT for _, high in RANGES}
LOOSE |= {"start": "first", "stride": 1, "max_jobs": LARGEST_COUNT, "keep": "first"}
FIELDS: Mapping[str, Any] = {  # columns of a frame of jobs -> their values where a trace has none
    **{"id": "", "submitted": np.nan, "duration": np.nan, "gpus": 0, "owner": ""},
    **{"started": np.nan, "ended": np.nan, "state": "", "utility": None, "model": ""},
    **{"is_share": False},
}


@dataclass(repr=False)
class PlainTrace(Summarised):
    """The jobs of a trace, and notes on how they were read and selected.

    Parameters
    ----------
    frame : DataFrame
        A row for each job: the fields of `PlainJob`, ``is_share``, and the labels that jobs are
        chosen by. Times are in seconds; NaN is unknown. `read_plain` puts them in order of
        submission, those of one instant as in the file, in seconds after the first of them.
    malformed : mapping
        Rows that could not be used: kind of fault -> ``{"count": n, "first_row": line}``.
    notes : sequence of str
        Notes on how the rows were read, which affect what the numbers mean.
    clock : TraceTimes, optional
        The form of its times.
    format : str
        How the file was read: a key of `oasis.traces.plain.FORMATS`.
    left_out, rules : dict of str
        How many of the other jobs each rule has left out, and the rules with their values in words.
    running : DataFrame
        Jobs that had begun and not ended; they are taken to end with the trace.

    Examples
    --------
    >>> import pandas as pd
    >>> from oasis.traces import PlainTrace
    >>> trace = PlainTrace(pd.DataFrame({"id": ["a", "b"], "gpus": [4, 8]}), {})
    >>> trace.keep("gpus", trace.frame["gpus"] > 4, "by GPUs (5..)")
    >>> len(trace.frame), trace.kept
    (1, 'kept 1 of 2 jobs: 1 by GPUs (5..)')
    """

    frame: Frame
    malformed: Mapping[str, Mapping[str, int]]
    notes: Sequence[str] = ()
    clock: TraceTimes | None = None
    format: str = ""
    left_out: dict[str, int] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    window_start: str = field(default="", init=False)  # as the trace writes times; there, 0 s is
    running: Frame = field(default_factory=lambda: pd.DataFrame(FIELDS, index=[]))

    @cached_property
    def jobs(self) -> tuple[PlainJob, ...]:
        """The rows of `frame` as records; cached, so read it only after jobs were selected."""
        columns = (self.frame[name].astype(object) for name in FIELDS if name != "is_share")
        cells = (column.where(column.notna(), None).tolist() for column in columns)
        return tuple(map(PlainJob, *cells))

    @property
    def held(self) -> tuple[tuple[float, float, int], ...]:
        """(start, end, GPUs) of each job that still ran when the trace ended, in seconds."""
        return tuple(self.running[["started", "ended", "gpus"]].itertuples(index=False, name=None))

    @property
    def shares(self) -> int:
        """Number of jobs that used a part of a GPU; each of them counts as using a whole GPU."""
        return int(self.frame["is_share"].sum())

    @property
    def _lost(self) -> Counter[str]:
        """Number of left-out jobs for each kind of malformed row and each selection rule."""
        counts: Counter[str] = Counter()
        for kind, row in self.malformed.items():
            if kind not in NO_JOBS:
                counts[kind.partition(":")[0]] += row["count"]
        counts.update({self.rules[rule]: count for rule, count in self.left_out.items()})
        return +counts

    @property
    def is_whole(self) -> bool:
        """Whether no job was left out."""
        return not self._lost

    @property
    def kept(self) -> str:
        """A sentence: how many jobs were selected, and how many each rule or fault removed."""
        lost, kept = self._lost, len(self.frame)
        if not lost:
            return f"kept all {kept} jobs" if kept != 1 else "kept the only job"
        total = kept + lost.total()
        losses = ", ".join(f"{count} {rule}" for rule, count in lost.items())
        return f"kept {kept} of {total} job{'s' if total != 1 else ''}: {losses}"

    @property
    def gpu_notes(self) -> list[str]:
        """Return notes on how many jobs use parts of GPUs, and how many name a GPU model."""
        model = "jobs that ask for a model of GPU, which is not respected: all GPUs count alike"
        part = "jobs with a part of a GPU, which count with the next whole number"
        counts = {model: (self.frame["model"] != "").sum(), part: self.shares}
        return [f"{text}: {count}" for text, count in counts.items() if count]

    def summary(self) -> tuple[str, Facts]:
        """Return the class name, and the format and the numbers of jobs and malformed rows."""
        unusable = str(sum(row["count"] for row in self.malformed.values()))
        counts = [("jobs", str(len(self.frame))), ("malformed rows", unusable)]
        return "PlainTrace", [("format", self.format), *counts]

    def keep(self, rule: str, kept: Any, words: str) -> None:
        """Keep only the rows in the mask or slice `kept`; count the removed rows under `rule`."""
        before, self.frame = len(self.frame), self.frame[kept]
        self.left_out[rule], self.rules[rule] = before - len(self.frame), words

    def choose(self, options: TraceOptions) -> None:
        """Drop jobs without the labels in `options`, and those on parts of GPUs as `parts` says."""
        every = self.frame
        for name in LABELS:
            if (label := getattr(options, name, "")) and len(every):
                if name not in every:
                    raise InstanceError(name, "expected a file with a column of it", label)
                check_choice(name, label, every[name].unique())
                self.keep(name, self.frame[name] == label, f"by {name} ({label})")
                self.running = self.running[self.running[name] == label]
        if held := len(self.running):
            on = f"{held}, on {how_many(int(self.running['gpus'].sum()), 'GPU')}"
            note = f"jobs that had begun and not ended: {on}, held to the end of the trace"
            self.notes = [*self.notes, note]
        if options.parts != "whole" and self.shares:
            self.keep("parts", ~self.frame["is_share"], f"by parts ({options.parts})")

    def window(self, options: Options, fixed: Collection[str] | None = None) -> Options:
        """Drop jobs that the options exclude, widened but for `fixed`; count time from there."""
        clock = self.clock or TraceTimes(options, is_dated=False)
        begin = clock.start(options.start)
        if fixed is not None and len(self.frame):
            options = _widened(options, self.frame, fixed, begin)
        # Each rule counts what the ones before it have left. Size and duration come before the
        # window, so that the busiest window is that of jobs which can be taken.
        self.frame = self.frame.sort_values("submitted", kind="stable")
        low, high = options.min_gpus, options.max_gpus
        fits = self.frame["gpus"].between(low, high)
        # Those without GPUs that are kept are so whatever the rule of GPUs is.
        fits |= options.cpu_jobs & (self.frame["gpus"] == 0)
        self.keep("gpus", fits, f"by GPUs ({low}..{high})")
        short, long = options.min_duration, options.max_duration
        fits = self.frame["duration"].between(short, long)
        self.keep("duration", fits, f"by duration ({short:.10g}..{long:.10g} s)")
        length = options.arrival_slots * options.slot_seconds
        begin = _start(self.frame, options, length) if begin is None else begin
        self.window_start = clock.show(begin)
        since = f"{options.arrival_slots} slots from {self.window_start}"
        inside = self.frame["submitted"].between(begin, begin + length, inclusive="left")
        self.keep("window", inside, f"outside the window ({since})")
        self.keep("stride", slice(None, None, options.stride), f"by stride ({options.stride})")
        words = f"by max_jobs ({options.max_jobs}, {options.keep})"
        self.keep("max_jobs", _most(self.frame, options), words)
        if not len(self.frame):
            is_rule = any(self.left_out.values())
            none = f"the options leave none: {self.kept}" if is_rule else "got none"
            raise InstanceError("", f"expected a job, {none}")
        self.count_from(begin)
        return options

    def count_from(self, begin: float) -> None:
        """Subtract `begin` (seconds) from all times, also from those of running jobs."""
        names = ("submitted", "started", "ended")
        self.frame, self.running = (
            jobs.assign(**{name: jobs[name] - begin for name in names})
            for jobs in (self.frame, self.running)
        )


def check_choice(option: str, wanted: str, existing: Iterable[str]) -> None:
    """Raise `InstanceError` unless `wanted`, the value of `option`, is empty or exists."""
    names = sorted({*existing} - {""})
    if wanted and wanted not in names:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        some = f"one of {', '.join(names[:MOST_NAMED])}{more}" if names else "none: there is none"
        raise InstanceError(option, f"expected {some}", wanted)


def kept_line(instance: Instance) -> str | None:
    """Return how many jobs of its trace `instance` has, as a sentence; None if not recorded."""
    return kept if isinstance(kept := instance.metadata.get("kept"), str) else None


# --- the window -----------------------------------------------------------------------------------


def _widened(options: Options, jobs: Frame, fixed: Collection[str], begin: float | None) -> Options:
    """Return `options` with limits that include all `jobs`, except for the options in `fixed`."""
    submitted = jobs["submitted"]
    first = submitted.min() if begin is None else begin
    slots = max(1, floor((submitted.max() - first) / options.slot_seconds) + 1)
    return chosen(
        options,
        fixed,
        min_gpus=0 if options.cpu_jobs else 1,
        # A limit that is given may be above all that there is.
        max_gpus=max(int(jobs["gpus"].max()), options.min_gpus),
        max_duration=max(float(jobs["duration"].max()), options.min_duration),
        arrival_slots=min(slots, options.horizon),
        max_jobs=len(jobs),
    )


def _start(jobs: Frame, options: TraceOptions, length: float) -> float:
    """Return the window's begin: the first submission, or that of the most work in `length`."""
    submitted = jobs["submitted"].to_numpy()
    if options.start == "first" or not len(jobs):
        return float(submitted[0]) if len(jobs) else 0.0
    work = np.concatenate([[0.0], np.cumsum(jobs["workers"] * jobs["duration"])])
    ends = np.searchsorted(submitted, submitted + length)
    # All jobs of the instant at which a window opens are
    # in it; of equal windows, `argmax` takes the first.
    begins = np.searchsorted(submitted, submitted)
    return float(submitted[np.argmax(work[ends] - work[begins])])


def _most(jobs: Frame, options: TraceOptions) -> Mask:
    """Return a mask of at most `max_jobs` jobs, by the rule `keep`; `jobs` are by submission."""
    chosen = jobs.iloc[: options.max_jobs]
    if options.keep == "largest":
        # The sort is stable: of jobs of one size, those that came first are kept.
        sizes = jobs["workers"] * jobs["duration"]
        chosen = sizes.sort_values(ascending=False, kind="stable").iloc[: options.max_jobs]
    elif options.keep == "spread":
        chosen = spread(jobs, len(chosen))
    return np.asarray(jobs.index.isin(chosen.index), dtype=bool)


def spread(rows: Frame, count: int) -> Frame:
    """Return `count` rows at equal distances, so that the sample is mixed like the whole table."""
    return rows.iloc[np.arange(count) * len(rows) // max(count, 1)]


# --- several runs of one job ---------------------------------------------------------------------


def combined(runs: Frame, by: list[str], gpus: str) -> Frame:
    """Return one run for each group: work is added, GPUs are aggregated by `gpus` (sum or max)."""
    worked = runs.assign(line=runs.index, work=runs["gpus"] * runs["duration"])
    worked["ended"] = worked["ended"].fillna(np.inf)  # unknown: so is that of its group
    groups = worked.groupby(by, sort=False, dropna=False)
    whole = groups.agg(
        {"line": "min", "submitted": "min", "state": "last", "has_ended": "all", "is_share": "any"}
        | {"ended": "max", "gpus": gpus, "work": "sum"}
    )
    jobs = groups.head(1).set_index(by, drop=False).assign(**whole)
    jobs["ended"] = jobs["ended"].replace(np.inf, np.nan)
    widths = groups["gpus"].agg(["min", "max"])
    alike = (widths["min"] == widths["max"]) & (widths["max"] == whole["gpus"])
    total = groups["duration"].agg("sum" if gpus == "max" else "max")
    by_work = whole["work"] / whole["gpus"].where(whole["gpus"] > 0)
    # Added where none is alone and all are alike: a detour by GPU-seconds would round.
    jobs["duration"] = total.where(alike | by_work.isna(), by_work)
    return jobs.set_index("line").drop(columns=["work"])


def jobs_of_runs(runs: Frame, rule: str, rows: Rows, late: str) -> Frame:
    """Return the jobs of the runs with one `key`, by `rule`; other runs are counted in `rows`."""
    last = ~runs.duplicated("key", keep="last")
    ended = runs.groupby("key")["has_ended"].transform("last").astype(bool)
    several = runs[runs.duplicated("key", keep=False) & (ended | (rule == "each"))]
    mixed = several[several["duration"] > 0].groupby("key")["gpus"].nunique() > 1
    if len(several):
        repeated = f"{several['key'].nunique()} in {len(several)} rows; {FACTS['runs'][rule]}"
        rows.notes.append(f"jobs with several runs: {repeated} (--runs {rule})")
    if rule == "last":
        runs = runs[last]
    elif rule == "joined":
        remark = f"{mixed.sum()}, read with the most of them, for as long as their work needs"
        rows.note("jobs whose runs had different numbers of GPUs", remark if mixed.any() else "")
        # A job that goes on has no known work: its earlier runs are left out with the last one. So
        # is an earlier one whose end was never recorded, of a lost node.
        lost = np.where(ended, ~runs["has_ended"], ~last).astype(bool)
        rows.count(runs.index[lost], EARLIER_RUN)
        runs = runs[~lost]
        is_one = ~runs["key"].duplicated(keep=False)
        if not is_one.all():
            runs = pd.concat([runs[is_one], combined(runs[~is_one], ["key"], "max")])
    count = runs.groupby("id").cumcount() + 1
    runs = runs.assign(id=runs["id"].where(count == 1, runs["id"] + "#" + count.astype(str)))
    fault = np.select(
        [~runs["has_ended"], runs["duration"] == 0, runs["started"] < runs["submitted"]],
        [NOT_ENDED, NEVER_RAN, late],
        default="",
    )
    for kind in (NOT_ENDED, NEVER_RAN, late):
        rows.count(runs.index[fault == kind], kind)
    return runs[fault == ""].sort_index(kind="stable")


# --- jobs of the model, and machines for them (docs/traces: the formulas) -----------------------

RESOURCES = ("gpu", "cpu", "memory_gb", BANDWIDTH)
_BANDWIDTH = {BANDWIDTH: "server_bandwidth_gbps"}
WORKERS = {**dict.fromkeys(("gpu", "cpu", "memory_gb"), "gpus_per_server"), **_BANDWIDTH}
PS = {"cpu": "ps_server_cpus", "memory_gb": "ps_server_memory_gb", **_BANDWIDTH}


def jobs_of(frame: Frame, options: TraceOptions) -> tuple[Job, ...]:
    """Return a `Job` for each row: worker-seconds become epochs, chunks and mini-batches."""
    slot = options.slot_seconds
    workers, duration = frame["workers"].to_numpy(), frame["duration"].to_numpy()
    size = workers * duration  # worker-seconds
    # kappa = tau + 2 e / b: gradients go to the parameter servers, and parameters come back.
    exchange = 2 * options.gradient_mb * GBIT_PER_MB / options.worker_bandwidth_gbps  # seconds
    nominal = options.minibatch_seconds + exchange
    most = np.floor(size / nominal)  # every chunk gets a mini-batch of nominal length
    chunks = np.fmax(1, np.fmin(most, np.rint(options.elasticity * workers)))
    steps = np.fmax(1, np.floor(size / (chunks * nominal)))  # mini-batches of a chunk, all epochs
    epochs = np.fmin(options.epochs, steps)
    minibatches = steps // epochs
    # The rest of the division lengthens the mini-batches, so that W_i is as recorded. A record
    # shorter than one exchange of gradients leaves no time to train; its job gets longer.
    seconds = np.fmax(0.0, size / (chunks * epochs * minibatches) - exchange)
    gradients: dict[str, Any] = {"gradient_mb": options.gradient_mb, "ps": {}}
    bandwidth: dict[str, float] = {}
    if options.gradient_mb:  # else no bandwidth is reserved, and (6) asks for no parameter server
        bandwidth = {BANDWIDTH: options.worker_bandwidth_gbps}
        gradients["ps"] = {
            "cpu": options.ps_cpus,
            "memory_gb": options.ps_memory_gb,
            BANDWIDTH: options.ps_bandwidth_gbps,
        }
    columns = {
        "id": frame["id"].tolist(),
        "arrival": map(int, (frame["submitted"] // slot).tolist()),
        "epochs": map(int, epochs.tolist()),
        "chunks": map(int, chunks.tolist()),
        "minibatches": map(int, minibatches.tolist()),
        "minibatch_time": (seconds / slot).tolist(),
        "worker": (row | bandwidth for row in frame[[*RESOURCES[:3]]].to_dict("records")),
        "utility": drawn_utilities(duration / slot, options).rows(),
        "requires": frame["requires"] if "requires" in frame else repeat({}, len(frame)),
        "owner": (name or None for name in frame["owner"]),
    }
    rows = zip(*columns.values(), strict=True)
    return tuple(Job(**gradients, **dict(zip(columns, row, strict=True))) for row in rows)


def drawn_utilities(durations: FloatArray, options: TraceOptions) -> UtilityColumns:
    """Draw a sigmoid utility for each job (section V); `durations` (jobs,) are in slots."""
    rng = np.random.default_rng(options.seed)
    size = len(durations)
    mix = (options.insensitive, 1 - options.insensitive - options.critical, options.critical)
    # The shares are exact and only their order is drawn: by chance, twenty jobs would miss the mix.
    kind = rng.permutation(np.repeat(np.arange(len(DECAY)), shares(mix, size)))
    lowest, highest = np.array(DECAY).T
    decay = rng.uniform(lowest[kind], highest[kind])
    priority = rng.uniform(options.min_priority, options.max_priority, size=size)
    target = np.maximum(1.0, options.target_factor * durations)
    return UtilityColumns(priority, decay, target)


_Checked: Any = options_of_toml("MachineOptions", TraceOptions)


class MachineOptions(_Checked):  # type: ignore[misc]
    """Assumptions about a trace that records neither machines nor CPUs nor memory.

    Examples
    --------
    >>> from oasis.traces import MachineOptions
    >>> options = MachineOptions(min_gpus=4, worker_servers=16, gpus_per_server=8)
    >>> options.cluster().worker_ids[-1]
    'w#15'
    """

    __slots__ = ()

    def sized(self, frame: Frame) -> Frame:
        """Return `frame` with columns of workers and demands; a job without GPUs has one worker."""
        per_worker, gpus = self.gpus_per_worker, frame["gpus"]
        return frame.assign(
            # Rounded up, because the last worker may use fewer GPUs than the others.
            workers=np.maximum(1, -(-gpus // per_worker)),
            gpu=np.where(gpus > 0, float(per_worker), 0.0),
            cpu=per_worker * self.cpus_per_gpu,
            memory_gb=per_worker * self.memory_gb_per_gpu,
        )

    def cluster(self) -> Cluster:
        """Return the machines; workers' servers have CPUs and memory in proportion to GPUs."""
        gpus = self.gpus_per_server
        shape = (gpus, gpus * self.cpus_per_gpu, gpus * self.memory_gb_per_gpu)
        capacity = dict(zip(RESOURCES, (*shape, self.server_bandwidth_gbps), strict=True))
        ps_capacity = {name: getattr(self, option) for name, option in PS.items()}
        workers = (Server("w", capacity, self.worker_servers),)
        ps = (Server("p", ps_capacity, self.ps_servers),)
        return Cluster(RESOURCES, workers, ps, self.slot_seconds)


# Those of openb come with a list of nodes.
OPTIONS: Mapping[str, Any] = {
    name: options_of_toml(name, TraceOptions if name == "OpenbOptions" else MachineOptions)
    for name in FACTS["options"]
    if name not in ("TraceOptions", "MachineOptions")
}

# --- machines that hold all jobs ------------------------------------------------------------------


def fit_machines(
    options: MachineOptions, frame: Frame, jobs: Sequence[Job], fixed: Collection[str]
) -> MachineOptions:
    """Return `options` with enough servers and slots for all jobs; `fixed` options stay."""
    per_server = max(options.gpus_per_server, options.gpus_per_worker)
    options = chosen(options, fixed, gpus_per_server=per_server)
    shape = options.cluster()
    # The largest worker counts for all of them: whatever mix runs, this number fits on each server.
    worker = {**frame[[*RESOURCES[:3]]].max(), BANDWIDTH: options.worker_bandwidth_gbps}
    per_server = _fitting_tasks(worker, shape.worker_servers[0].capacity, WORKERS)
    ps_per_server = _fitting_tasks(jobs[0].ps, shape.ps_servers[0].capacity, PS)
    return chosen(
        options,
        fixed,
        worker_servers=max(1, ceil(busiest(frame, frame["workers"]) / per_server)),
        ps_servers=max(1, ceil(busiest(frame, ps_counts(frame, jobs)) / ps_per_server)),
        horizon=max(options.arrival_slots, last_slot(frame, jobs, options)),
    )


def without(cluster: Cluster, gpus: float) -> Cluster:
    """Return `cluster` less `gpus` GPUs of its last machines, with their CPUs and memory."""
    remaining: list[Server] = []
    missing = gpus
    for group in reversed(cluster.worker_servers):
        size = group.capacity[RESOURCES[0]]
        lost = min(missing, size * group.count)
        missing -= lost
        whole, part = divmod(size * group.count - lost, size) if size else (group.count, 0.0)
        if part:
            free = {name: amount * part / size for name, amount in group.capacity.items()}
            remaining.insert(0, replace(group, id=f"{group.id}-part", capacity=free, count=1))
        if whole:
            remaining.insert(0, replace(group, count=int(whole)))
    if not remaining:
        expected = f"expected machines with more than the {gpus:g} GPUs that running jobs hold"
        raise InstanceError("worker_servers", f"{expected}, got {gpus - missing:g}")
    return replace(cluster, worker_servers=tuple(remaining))


def chosen(options: Options, fixed: Collection[str], **values: Any) -> Options:
    """Return `options` with the given `values`, except for options whose names are in `fixed`."""
    return replace(options, **{name: one for name, one in values.items() if name not in fixed})


def ps_counts(frame: Frame, jobs: Sequence[Job]) -> IntArray:
    """Number of parameter servers of each job with its recorded workers; shape (jobs,)."""
    return jobs[0].ps_needed(_workers(frame, jobs))


def busiest(frame: Frame, amount: Any) -> float:
    """Return the largest sum of `amount` (jobs,) over the jobs that run at the same time."""
    begins, amount = frame["started"].fillna(frame["submitted"]), np.asarray(amount, dtype=float)
    times = np.concatenate([begins + frame["duration"], begins])
    changes = np.concatenate([-amount, amount])
    # At one time an end sorts before a beginning.
    order = np.lexsort([changes, np.repeat([0, 1], len(frame)), times])
    return max(0.0, float(np.cumsum(changes[order]).max()))


def last_slot(frame: Frame, jobs: Sequence[Job], options: TraceOptions) -> int:
    """Return the number of slots until every job has ended, with its recorded workers."""
    slot = options.slot_seconds
    work = np.array([job.work(slot) for job in jobs])
    # The floor of a negative quotient is a ceiling in whole numbers, without rounding of floats.
    completion = [job.arrival for job in jobs] - (-work // _workers(frame, jobs))
    recorded = np.ceil((frame["started"].fillna(frame["submitted"]) + frame["duration"]) / slot)
    return int(max(1, completion.max(), recorded.max()))


def _workers(frame: Frame, jobs: Sequence[Job]) -> IntArray:
    return np.asarray(np.minimum(frame["workers"].to_numpy(), [job.chunks for job in jobs]))


def _fitting_tasks(demand: Mapping[str, float], capacity: Mapping[str, float], sizes: Any) -> int:
    """Number of tasks of this demand that fit a server; `sizes` are options to name in errors."""
    # 0.3 / 0.1 is below 3 as a float, and yet three fit.
    counts = {name: capacity[name] / n * (1 + 1e-12) for name, n in demand.items() if n > 0}
    if not counts:
        return 1
    scarcest = min(counts, key=lambda name: floor(counts[name]))
    if counts[scarcest] < 1:
        expected = f"expected {scarcest} >= {demand[scarcest]:g}, which each of them needs"
        raise InstanceError(sizes[scarcest], f"{expected}, got {capacity[scarcest]:g}")
    return floor(counts[scarcest])
