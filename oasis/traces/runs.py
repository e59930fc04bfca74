"""Several rows of one job: runs that were preempted, requeued or lost, joined or apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oasis.traces.table import EARLIER_RUN, NEVER_RAN, NOT_ENDED, Faults, Frame, pd

WIDTHS = "read with the most of them, for as long as their work needs"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job in a line of the file.

    `has_ended`: whether its duration is known. Two clusters give the same numbers to their jobs.
    `end` is the recorded one, or when the last of several runs ended, which are read as this one.
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
    is_share: bool = False

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
    """One run of `gpus` GPUs, or of none, with the work of `runs`, from the first to the last."""
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
        is_share=any(run.is_share for run in runs),
    )


def jobs_of_runs(
    groups: Iterable[Sequence[JobRun]], rule: str, faults: Faults
) -> tuple[Frame, list[str]]:
    """The jobs of these runs in the order of the file, and notes on joined runs.

    The first run of each job comes first. The rule makes one job with the work of all its runs and
    its first submission (joined); the last run alone; or each run a job named ``7``, ``7#2``.
    """
    found: list[tuple[JobRun, str]] = []
    names: Counter[str] = Counter()
    several: list[Sequence[JobRun]] = []
    for group in groups:
        if len(group) > 1 and (rule == "each" or group[-1].has_ended):  # else no job is read
            several.append(group)
        for run in _read_by(rule, group, faults):
            names[run.id] += 1
            if not run.has_ended:
                faults.add(NOT_ENDED, run.line)
            elif run.duration == 0:
                faults.add(NEVER_RAN, run.line)
            elif run.started is not None and run.started < run.submitted:
                faults.add("started before it was submitted", run.line)
            else:
                count = names[run.id]
                found.append((run, run.id if count == 1 else f"{run.id}#{count}"))
    found.sort(key=lambda pair: pair[0].line)
    runs = [run for run, _ in found]
    columns: dict[str, list[Any]] = {"id": [name for _, name in found]}
    for name in ("submitted", "duration", "gpus", "owner", "started", "ended", "state"):
        columns[name] = [getattr(run, name) for run in runs]
    columns |= {label: [run.labels[label] for run in runs] for label in (runs or [_NONE])[0].labels}
    columns["is_share"] = [run.is_share for run in runs]
    frame = pd.DataFrame(columns).assign(utility=None, model="")
    frame = frame.astype({"started": float, "ended": float})
    return frame.set_axis([run.line for run in runs]), _notes(rule, several)


_NONE = JobRun("", 0, 0.0, 0.0, 0, {})


def _read_by(rule: str, group: Sequence[JobRun], faults: Faults) -> Iterator[JobRun]:
    if rule == "each":
        yield from group
    elif rule == "last":
        yield group[-1]
    elif not group[-1].has_ended:
        # The job goes on, so its work is not known: its
        # earlier runs are left out with the last one.
        for run in group[:-1]:
            faults.add(EARLIER_RUN, run.line)
        yield group[-1]
    else:
        ended = [run for run in group if run.has_ended]
        for run in group:
            if not run.has_ended:  # an earlier one whose end was never recorded, of a lost node
                faults.add(EARLIER_RUN, run.line)
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
    """The values of each key, keys and values in the order in which they come."""
    found: dict[Hashable, list[Any]] = {}
    for key, value in runs:
        found.setdefault(key, []).append(value)
    yield from found.values()
