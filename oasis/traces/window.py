"""Choosing the jobs of a trace that make an instance, and counting what each rule leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.traces.options import TraceOptions
from oasis.traces.table import NEVER_SCHEDULED, NO_JOBS

STREAM = "jobs"
LABELS = ("virtual_cluster", "user", "partition", "queue", "qos")


def kept_sentence(kept: int, left_out: Iterable[tuple[int, str]]) -> str:
    """One line about the jobs of a trace."""
    rules = [(count, rule) for count, rule in left_out if count]
    total = kept + sum(count for count, _ in rules)
    if not rules:
        return f"kept all {total} jobs" if total != 1 else "kept the only job"
    reasons = ", ".join(f"{count} {rule}" for count, rule in rules)
    return f"kept {kept} of {total} job{'s' if total != 1 else ''}: {reasons}"


def malformed_counts(malformed: Mapping[str, Mapping[str, int]]) -> list[tuple[int, str]]:
    """Number of jobs lost to each kind of malformed row, and the kind up to its first colon."""
    counts: Counter[str] = Counter()
    for kind, found in malformed.items():
        if kind not in NO_JOBS:
            counts[kind.partition(":")[0]] += found["count"]
    return [(count, kind) for kind, count in counts.items()]


def kept_line(instance: Instance) -> str | None:
    """The line about the jobs of the trace that `instance` was imported from."""
    metadata = instance.metadata
    left_out, options = metadata.get("left_out"), metadata.get("options")
    if not isinstance(left_out, Mapping) or not isinstance(options, Mapping):
        return None
    if not all(type(count) is int for count in left_out.values()):
        return None
    return kept_sentence(len(instance.jobs), _rules(metadata, left_out, options))


def _rules(
    metadata: Mapping[str, Any], left_out: Mapping[str, int], options: Mapping[str, Any]
) -> Iterable[tuple[int, str]]:
    for stream, kinds in metadata.get("malformed", {}).items():
        if stream in (STREAM, "pods"):
            yield from malformed_counts(kinds)
    yield metadata.get("never_scheduled", 0), NEVER_SCHEDULED
    for rule, count in left_out.items():
        yield count, rule_text(rule, options, str(metadata.get("window_start", "")))


def rule_text(rule: str, options: Mapping[str, Any], start: str = "") -> str:
    """A rule that leaves out jobs, with its values."""
    if rule == "cpu_jobs":
        return "without GPUs"
    if rule == "gpus":
        return f"by GPUs ({_range(options, 'gpus')})"
    if rule == "duration":
        return f"by duration ({_range(options, 'duration')} s)"
    if rule == "window":
        since = f" from {start}" if start else ""
        return f"outside the window ({options.get('arrival_slots')} slots{since})"
    if rule == "max_jobs":
        return f"by max_jobs ({options.get('max_jobs')}, {options.get('keep')})"
    return f"by {rule} ({options.get(rule)})"


def _range(options: Mapping[str, Any], what: str) -> str:
    ends = (options.get(f"min_{what}"), options.get(f"max_{what}"))
    return "..".join("" if end is None else f"{end:.10g}" for end in ends)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as a trace records it."""

    id: str
    submitted: float
    duration: float
    gpus: int
    workers: int
    demand: Mapping[str, float]
    started: float | None = None
    requires: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """Worker-seconds it took."""
        return self.workers * self.duration


@dataclass(frozen=True, slots=True)
class Window:
    """The chosen jobs in order of submission, from time `start` on."""

    start: float
    records: tuple[JobRecord, ...]
    left_out: Mapping[str, int]


MOST_NAMED = 12  # choices in an error message


def check_choice(option: str, wanted: str, there: Iterable[str]) -> None:
    """Check that the `wanted` value of an option occurs in the trace; empty: all are wanted."""
    names = sorted({name for name in there if name})
    if wanted and wanted not in names:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        choices = (
            f"one of {', '.join(names[:MOST_NAMED])}{more}" if names else "none: there is none"
        )
        raise InstanceError(option, f"expected {choices}", wanted)


def select(records: Sequence[JobRecord], options: TraceOptions, start: float | None) -> Window:
    """Choose the jobs of the instance."""
    left_out: dict[str, int] = {}

    def narrow(rule: str, kept: list[JobRecord], before: int) -> list[JobRecord]:
        left_out[rule] = before - len(kept)
        return kept

    # Each rule counts what the ones before it have left. Size and duration come before the window,
    # so that the busiest window is that of jobs which can be taken.
    jobs = sorted(records, key=lambda record: record.submitted)
    low, high = options.min_gpus, options.max_gpus
    keeps = options.cpu_jobs  # those without GPUs, whatever the rule of GPUs is
    fitting = [r for r in jobs if low <= r.gpus <= high or (keeps and not r.gpus)]
    jobs = narrow("gpus", fitting, len(jobs))
    shortest, longest = options.min_duration, options.max_duration
    jobs = narrow("duration", [r for r in jobs if shortest <= r.duration <= longest], len(jobs))
    begin = _start(jobs, options) if start is None else start
    end = begin + _length(options)
    jobs = narrow("window", [r for r in jobs if begin <= r.submitted < end], len(jobs))
    jobs = narrow("stride", jobs[:: options.stride], len(jobs))
    jobs = narrow("max_jobs", _keep(jobs, options), len(jobs))
    if not records:
        raise InstanceError("", "expected a job, got none")
    if not jobs:
        given = {entry.name: getattr(options, entry.name) for entry in fields(options)}
        rules = [(count, rule_text(rule, given)) for rule, count in left_out.items()]
        raise InstanceError(
            "", f"expected a job, the options leave none: {kept_sentence(0, rules)}"
        )
    return Window(begin, tuple(jobs), left_out)


def _keep(jobs: list[JobRecord], options: TraceOptions) -> list[JobRecord]:
    """At most `max_jobs` of `jobs`, in order of submission."""
    count = min(len(jobs), options.max_jobs)
    if options.keep == "largest":
        # The sort is stable: of jobs of one size, those that came first are kept.
        order = sorted(range(len(jobs)), key=lambda k: -jobs[k].size)
        return [jobs[k] for k in sorted(order[:count])]
    if options.keep == "spread":
        return [jobs[k * len(jobs) // count] for k in range(count)]
    return jobs[:count]


def _length(options: TraceOptions) -> float:
    return options.arrival_slots * options.slot_seconds


def _start(jobs: Sequence[JobRecord], options: TraceOptions) -> float:
    """Submission of the first job, or of the one that opens the window with the most work."""
    if options.start == "first" or not jobs:
        return jobs[0].submitted if jobs else 0.0
    submitted = np.array([record.submitted for record in jobs])
    work = np.concatenate([[0.0], np.cumsum([record.size for record in jobs])])
    ends = np.searchsorted(submitted, submitted + _length(options))
    # All jobs of the instant at which a window opens are
    # in it; of equal windows, `argmax` takes the first.
    begins = np.searchsorted(submitted, submitted)
    return float(submitted[np.argmax(work[ends] - work[begins])])
