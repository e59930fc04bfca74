"""Several rows of one job: runs that were preempted, requeued or lost, joined or apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oasis.traces.job_table import TraceRow
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import EARLIER_RUN, NEVER_RAN, NOT_ENDED, TraceTable

WIDTHS = "read with the most of them, for as long as their work needs"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job.

    Parameters
    ----------
    id : str
        Name of the job.
    line : int
        Line of the file.
    submitted, duration : float
        Seconds.
    gpus : int
        GPUs it held.
    labels : mapping of str to str
        As in `TraceRow`.
    started : float or None
        Time of its start, if the file has it.
    has_ended : bool
        Whether its duration is known.
    cluster : str
        Where it ran; two clusters give the same numbers to their jobs.
    owner, state : str
        As in `PlainJob`.
    end : float or None
        When the last of several runs ended, which are read as this one.
    """

    id: str
    line: int
    submitted: float
    duration: float
    gpus: int
    labels: Mapping[str, str]
    started: float | None = None
    has_ended: bool = True
    cluster: str = ""
    owner: str = ""
    state: str = ""
    end: float | None = None

    @property
    def ended(self) -> float | None:
        """End of the run, if the file has its begin."""
        if self.end is None and self.started is not None:
            return self.started + self.duration
        return self.end

    @property
    def work(self) -> float:
        """GPU-seconds."""
        return self.gpus * self.duration


def combined(runs: Sequence[JobRun], gpus: int) -> JobRun:
    """One run of `gpus` GPUs, or of none, with the work of `runs`, from the first to the last.

    Examples
    --------
    >>> a = JobRun("7", 2, 0.0, 600.0, 2, {})
    >>> combined([a, JobRun("7", 3, 900.0, 300.0, 4, {})], gpus=4).duration  # 2400 GPU-seconds
    600.0
    """
    # Runs with the same GPUs are added as they are: a detour by GPU-seconds would round.
    alike = len({run.gpus for run in runs}) == 1 and gpus == runs[0].gpus
    total = sum(run.duration for run in runs)
    duration = sum(run.work for run in runs) / gpus if gpus and not alike else total
    ends = [run.ended for run in runs]
    known = [end for end in ends if end is not None]
    return replace(
        runs[0],
        line=min(run.line for run in runs),
        submitted=min(run.submitted for run in runs),
        duration=duration,
        gpus=gpus,
        has_ended=all(run.has_ended for run in runs),
        state=runs[-1].state,
        end=max(known) if len(known) == len(ends) else None,
    )


def add_jobs(table: TraceTable[TraceRow], groups: Iterable[Sequence[JobRun]], rule: str) -> None:
    """Add the jobs of these runs to `table`, with notes on joined runs.

    Parameters
    ----------
    table : TraceTable
        Gets the jobs in the order of the file.
    groups : iterable of sequence of JobRun
        The runs of each job, the first one first.
    rule : {"joined", "last", "each"}
        One job with the work of all its runs and its first submission; the last run alone; or
        each run as a job of its own, named ``7``, ``7#2``, ``7#3``.
    """
    found: list[tuple[int, TraceRow]] = []
    names: Counter[str] = Counter()
    several: list[Sequence[JobRun]] = []
    for group in groups:
        if len(group) > 1 and (rule == "each" or group[-1].has_ended):  # else no job is read
            several.append(group)
        for run in _read_by(rule, group, table):
            names[run.id] += 1
            name = run.id if names[run.id] == 1 else f"{run.id}#{names[run.id]}"
            if not run.has_ended:
                table.reject(NOT_ENDED, run.line)
            elif run.duration == 0:
                table.reject(NEVER_RAN, run.line)
            elif run.started is not None and run.started < run.submitted:
                table.reject("started before it was submitted", run.line)
            else:
                job = PlainJob(
                    *(name, run.submitted, run.duration, run.gpus),
                    *(run.owner, run.started, run.ended, run.state),
                )
                found.append((run.line, TraceRow(job, run.labels)))
    table.rows += [row for _, row in sorted(found, key=lambda entry: entry[0])]
    table.notes += _notes(rule, several)


def _read_by(rule: str, group: Sequence[JobRun], table: TraceTable[Any]) -> Iterator[JobRun]:
    if rule == "each":
        yield from group
    elif rule == "last":
        yield group[-1]
    elif not group[-1].has_ended:
        # The job goes on, so its work is not known: its
        # earlier runs are left out with the last one.
        for run in group[:-1]:
            table.reject(EARLIER_RUN, run.line)
        yield group[-1]
    else:
        ended = [run for run in group if run.has_ended]
        for run in group:
            if not run.has_ended:  # an earlier one whose end was never recorded, of a lost node
                table.reject(EARLIER_RUN, run.line)
        yield combined(ended, max(run.gpus for run in ended))


def _notes(rule: str, several: Sequence[Sequence[JobRun]]) -> list[str]:
    if not several:
        return []
    what = {
        "joined": "one job each, with the work of all its runs",
        "last": "the last run of each is read",
        "each": "each run is read as a job of its own",
    }[rule]
    count, rows = len(several), sum(map(len, several))
    found = [f"jobs with several runs: {count} in {rows} rows; {what} (--runs {rule})"]
    mixed = sum(len({run.gpus for run in group if run.duration}) > 1 for group in several)
    if rule == "joined" and mixed:
        found.append(f"jobs whose runs had different numbers of GPUs: {mixed}, {WIDTHS}")
    return found


def grouped(runs: Iterable[tuple[Hashable, Any]]) -> Iterator[list[Any]]:
    """The values of each key, keys and values in the order in which they come.

    Examples
    --------
    >>> list(grouped([("a", 1), ("b", 2), ("a", 3)]))
    [[1, 3], [2]]
    """
    found: dict[Hashable, list[Any]] = {}
    for key, value in runs:
        found.setdefault(key, []).append(value)
    yield from found.values()
