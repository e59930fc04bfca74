"""Choosing the jobs of a trace that make an instance, and counting what each rule leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from oasis.model.errors import InstanceError
from oasis.traces.account import kept_sentence, rule_text
from oasis.traces.options import TraceOptions


@dataclass(frozen=True, slots=True)
class Record:
    """A job as a trace records it.

    Parameters
    ----------
    id : str
        Identifier in the instance.
    submitted : float
        Time of submission in seconds.
    duration : float
        Seconds it ran.
    gpus : int
        GPUs it ran on.
    workers : int
        Workers that the importer reads into it.
    demand : mapping
        Resources of one worker, apart from bandwidth.
    started : float or None
        When it began to run, seconds; None if the trace does not say.
    """

    id: str
    submitted: float
    duration: float
    gpus: int
    workers: int
    demand: Mapping[str, float]
    started: float | None = None

    @property
    def size(self) -> float:
        """Worker-seconds it took."""
        return self.workers * self.duration


@dataclass(frozen=True, slots=True)
class Window:
    """The chosen jobs in order of submission, from time `start` on."""

    start: float
    records: tuple[Record, ...]
    left_out: Mapping[str, int]


MOST_NAMED = 12  # choices in an error message


def check_choice(option: str, wanted: str, there: Iterable[str]) -> None:
    """Check that the `wanted` value of an option occurs in the trace; empty: all are wanted.

    Raises
    ------
    InstanceError
        Naming the option and what there is.
    """
    names = sorted({name for name in there if name})
    if wanted and wanted not in names:
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        choices = (
            f"one of {', '.join(names[:MOST_NAMED])}{more}" if names else "none: there is none"
        )
        raise InstanceError(option, f"expected {choices}, got {wanted!r}")


def select(records: Sequence[Record], options: TraceOptions, start: float | None) -> Window:
    """Choose the jobs of the instance.

    Parameters
    ----------
    start : float or None
        Where the window begins, seconds; None stands for ``options.start``, "busiest" or "first".

    Raises
    ------
    InstanceError
        If nothing is left.
    """
    left_out: dict[str, int] = {}

    def narrow(rule: str, kept: list[Record], before: int) -> list[Record]:
        left_out[rule] = before - len(kept)
        return kept

    jobs = sorted(records, key=lambda record: record.submitted)
    low, high = options.min_gpus, options.max_gpus
    jobs = narrow("gpus", [r for r in jobs if low <= r.gpus <= high], len(jobs))
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


def _keep(jobs: list[Record], options: TraceOptions) -> list[Record]:
    """At most `max_jobs` of `jobs`, in order of submission."""
    count = min(len(jobs), options.max_jobs)
    if options.keep == "largest":
        order = sorted(range(len(jobs)), key=lambda k: -jobs[k].size)
        return [jobs[k] for k in sorted(order[:count])]
    if options.keep == "spread":
        return [jobs[k * len(jobs) // count] for k in range(count)]
    return jobs[:count]


def _length(options: TraceOptions) -> float:
    return options.arrival_slots * options.slot_seconds


def _start(jobs: Sequence[Record], options: TraceOptions) -> float:
    """Submission of the first job, or of the one that opens the window with the most work."""
    if options.start == "first" or not jobs:
        return jobs[0].submitted if jobs else 0.0
    submitted = np.array([record.submitted for record in jobs])
    work = np.concatenate([[0.0], np.cumsum([record.size for record in jobs])])
    ends = np.searchsorted(submitted, submitted + _length(options))
    begins = np.searchsorted(submitted, submitted)
    return float(submitted[np.argmax(work[ends] - work[begins])])
