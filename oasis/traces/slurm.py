"""Slurm's accounting, as ``sacct`` prints it (docs/traces)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from oasis.model.errors import InstanceError
from oasis.model.instance import Instance
from oasis.traces.gres import Resources, resources_of
from oasis.traces.job_table import JobTrace, TraceRow
from oasis.traces.machine_options import MachineOptions
from oasis.traces.options import RUNS, option
from oasis.traces.runs import Run, add_jobs, combined, grouped
from oasis.traces.sacct import CUT, is_json, json_rows, layout_of, one_of
from oasis.traces.source import Source
from oasis.traces.table import (
    COLUMN,
    REPEATED_ROW,
    STEP,
    MalformedError,
    Table,
    check_usable,
    parse_rows,
    read_table,
)
from oasis.traces.times import Clock, Durations

NAMES = ("JobID", "JobIDRaw")
DURATIONS = ("ElapsedRaw", "Elapsed")
RESOURCES = ("AllocTRES", "AllocGRES", "ReqTRES", "ReqGRES", "TresPerNode")  # preferred in order
PER_NODE = ("ReqGRES", "TresPerNode")
NODES = ("AllocNodes", "NNodes")
LABELS = {"user": "User", "partition": "Partition", "qos": "QOS"}  # option -> column
UNFINISHED = (  # sacct's states of jobs that have not ended, long and short
    *("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING"),
    *("STAGE_OUT", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"),
    *("PD", "R", "S", "CF", "CG", "ST", "SI", "SO", "RH", "RF", "RD", "SE"),
)
ENDED = (
    *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"),
    *("BOOT_FAIL", "DEADLINE", "REQUEUED", "REVOKED", "RESIZING"),
)
UNKNOWN = ("", "Unknown", "None", "N/A", "INVALID")  # times that there are not
HETEROGENEOUS = re.compile(r"(.+)\+(\d+)")  # 838+0 and 838+1 are components of 838


@dataclass(frozen=True, slots=True)
class SlurmOptions(MachineOptions):
    """Assumptions about the jobs of a Slurm cluster.

    Examples
    --------
    >>> from oasis.traces import SlurmOptions
    >>> SlurmOptions(partition="gpu", min_gpus=1).partition
    'gpu'
    """

    user: str = option("", "take the jobs of this user alone", reading=True)
    partition: str = option("", "take the jobs of this partition alone", reading=True)
    qos: str = option("", "take the jobs of this quality of service alone", reading=True)
    runs: str = option(
        "joined",
        "how several rows of one job are read: joined (one job, with the work of all its runs), "
        "last or each",
        reading=True,
        choices=RUNS,
    )
    columns: str = option(
        "", "names of the columns, with commas between, of a file without them", reading=True
    )
    delimiter: str = option(
        "", "what stands between columns, if the header does not show it", reading=True
    )


def read_slurm(path: str | os.PathLike[str], options: SlurmOptions | None = None) -> Instance:
    """Turn what ``sacct`` prints into an instance.

    Parameters
    ----------
    path : path
        What ``sacct`` printed with ``--parsable2``, ``--parsable``, ``--json``, another delimiter
        or columns of fixed width. Columns: ``JobID`` or ``JobIDRaw``; ``Submit``; ``ElapsedRaw``,
        ``Elapsed`` or ``Start`` and ``End``; one or more of ``AllocTRES``, ``AllocGRES``,
        ``ReqTRES``, ``ReqGRES`` and ``TresPerNode``, of which each row's first that names GPUs
        counts; perhaps ``State``, ``User``, ``Partition``, ``QOS`` and ``NNodes``. Rows of steps
        are part of their jobs.
    options : SlurmOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Raises
    ------
    InstanceError
        If a column is missing, more than half of the rows cannot be used or no job is left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import SlurmOptions, read_slurm
    >>> rows = '''JobID|User|Submit|ElapsedRaw|State|AllocTRES
    ... 17|ann|2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... 17.batch||2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.txt")
    ...     _ = path.write_text(rows)
    ...     instance = read_slurm(path, SlurmOptions(start="first"))
    >>> [(job.id, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('17', 16)]
    """
    return SLURM.instance(path, SlurmOptions() if options is None else options)


def _read(source: Source, options: SlurmOptions) -> Table[TraceRow]:
    if is_json(source):
        found: Table[Run] = Table()
        rows = json_rows(source)
        reader = _Reader(list(rows[0][1]) if rows else [*NAMES], options)
        parse_rows(found, rows, reader.run, clock=reader.clock, time="Submit")
    else:
        layout = layout_of(source, options.columns, options.delimiter)
        _check_columns(layout.header, source.name)
        reader = _Reader(layout.header, options)
        found = read_table(
            source,
            (),
            reader.run,
            layout=layout,
            clock=reader.clock,
            time="Submit",
            allow_malformed=True,
        )
    ended: Table[Run] = Table([run for run in found.rows if run.has_ended], found.malformed)
    if ended.rows:
        check_usable(ended, source.name, allow_malformed=options.allow_malformed)
    reader.durations.question()
    reader.check_gpus(found, source.name)
    table: Table[TraceRow] = Table([], found.malformed, reader.notes(found), reader.clock)
    if found.rows:
        table.malformed.pop(STEP, None)
    add_jobs(table, _jobs(found.rows), options.runs)
    check_usable(table, source.name, allow_malformed=True)
    return table


def _check_columns(header: Sequence[str], file: str) -> None:
    one_of(NAMES, header, file)
    one_of(("Submit",), header, file)
    if not {"Start", "End"} <= set(header):
        one_of(DURATIONS, header, file, also="Start and End")
    one_of(RESOURCES, header, file)


@dataclass(slots=True)
class _Reader:
    """Makes runs of rows, and notes what was found on the way."""

    header: Sequence[str]
    options: SlurmOptions
    clock: Clock = field(init=False)
    durations: Durations = field(init=False)
    others: Counter[str] = field(default_factory=Counter)  # generic resources that are no GPUs
    one_node: int = 0  # rows whose GPUs are those of one node, of how many it is not known
    seen: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = Clock(self.options, is_dated=True)
        self.durations = Durations(self.options.duration_unit)

    @property
    def id_column(self) -> str:
        """The column that names jobs."""
        return next(name for name in NAMES if name in self.header)

    def run(self, line: int, row: Mapping[str, str]) -> Run:
        """The run that a row describes."""
        job = row[self.id_column]
        if "." in job:
            raise MalformedError(STEP)
        if not job:
            raise MalformedError(f"no {self.id_column}")
        if job.endswith(CUT):
            raise _cut(self.id_column)
        if self.seen.setdefault(tuple(row.values()), line) != line:
            raise MalformedError(REPEATED_ROW)
        has_ended = not _is_unfinished(row)
        return Run(
            job,
            line,
            self._time(row, "Submit"),
            self._duration(row) if has_ended else 0.0,
            self._gpus(row) if has_ended else 0,
            {name: row[column] for name, column in LABELS.items() if column in row},
            self._time(row, "Start") if row.get("Start", "") not in UNKNOWN else None,
            has_ended,
        )

    def _time(self, row: Mapping[str, str], column: str) -> float:
        text = row[column]
        if text.endswith(CUT):
            raise _cut(column)
        return self.clock.read(text, column)

    def _duration(self, row: Mapping[str, str]) -> float:
        for column in DURATIONS:
            text = row.get(column, "")
            if text.endswith(CUT):
                raise _cut(column)
            if text not in UNKNOWN:
                return self.durations.read(text, column)
        if "Start" in row and row["Start"] in UNKNOWN:
            return 0.0  # it never began
        if any(row.get(name, "") in UNKNOWN for name in ("Start", "End")):
            raise MalformedError("no duration")
        took = self._time(row, "End") - self._time(row, "Start")
        if took < 0:
            raise MalformedError("End is before Start")
        return took

    def _gpus(self, row: Mapping[str, str]) -> int:
        """GPUs by the first column that names any."""
        found: dict[str, Resources] = {}
        for column in RESOURCES:
            text = row.get(column, "")
            if text.endswith(CUT):
                raise _cut(column)
            found[column] = resources_of(text)
            gpus = found[column].gpus
            if gpus and column in PER_NODE:
                return gpus * self._nodes(row, found)
            if gpus:
                return gpus
        self.others.update({name for each in found.values() for name in each.others})
        return 0

    def _nodes(self, row: Mapping[str, str], found: Mapping[str, Resources]) -> int:
        for column in NODES:
            if re.fullmatch(r"[1-9]\d*", row.get(column, "")):
                return int(row[column])
        for resources in found.values():
            if resources.nodes:
                return resources.nodes
        self.one_node += 1
        return 1

    def check_gpus(self, found: Table[Run], file: str) -> None:
        """Refuse a file in which no row names a GPU, if jobs with GPUs are wanted."""
        ran = [run for run in found.rows if run.has_ended and run.duration]
        if ran and self.options.min_gpus and not any(run.gpus for run in ran):
            there = [column for column in RESOURCES if column in self.header]
            others = f"; they name {', '.join(sorted(self.others))}" if self.others else ""
            expected = f"expected gres/gpu in some row of {file}, got none in {', '.join(there)}"
            raise InstanceError(f"{COLUMN}{there[0]}", f"{expected}{others}")

    def notes(self, found: Table[Run]) -> list[str]:
        """What whoever reads the numbers must know."""
        notes = []
        without = sum(run.duration > 0 and not run.gpus for run in found.rows)
        if without:
            notes.append(f"rows of jobs without GPUs: {without}")
        notes += [
            f"{name} is not read as GPUs (rows that name it and no GPU: {count})"
            for name, count in sorted(self.others.items())
        ]
        if self.one_node:
            columns = " and ".join(column for column in PER_NODE if column in self.header)
            notes.append(
                f"{columns} names the GPUs of one node; rows without a number of nodes (NNodes), "
                f"read as one node: {self.one_node}"
            )
        return notes


def _cut(column: str) -> MalformedError:
    return MalformedError(
        f"{column} is cut off (+): print it with sacct --parsable2, or wider: {column}%80"
    )


def _is_unfinished(row: Mapping[str, str]) -> bool:
    """Whether the run of a row goes on, or has not begun; one that was preempted has ended."""
    words = row.get("State", "").split()
    state = words[0] if words else ""
    if state.endswith(CUT):  # a narrow column
        goes_on = any(name.startswith(state[:-1]) for name in UNFINISHED)
        if goes_on and any(name.startswith(state[:-1]) for name in ENDED):
            raise _cut("State")
        return goes_on
    if state in UNFINISHED:
        return True
    return "End" in row and row["End"] in UNKNOWN and row.get("Start", "") not in UNKNOWN


def _jobs(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """The runs of each job in order; the components of a heterogeneous one are put together."""
    users: dict[str, str] = {}  # job -> its last user: numbers are given again after some years
    keyed = []
    for run in runs:
        found = HETEROGENEOUS.fullmatch(run.id)
        job, component = (found[1], int(found[2])) if found else (run.id, 0)
        user = users[job] = run.labels.get("user") or users.get(job, "")
        keyed.append(((job, user), (component, replace(run, id=job))))
    for parts in grouped(keyed):
        components = [
            sorted(component, key=lambda run: (run.submitted, run.started or 0.0, run.line))
            for component in grouped(parts)
        ]
        if len(components) == 1:
            yield components[0]
            continue
        count = max(map(len, components))
        yield [
            _together([component[k] for component in components if k < len(component)])
            for k in range(count)
        ]


def _together(components: Sequence[Run]) -> Run:
    """One run of the components of a heterogeneous job, which run at the same time."""
    gpus = sum(run.gpus for run in components)
    if gpus:
        return combined(components, gpus)
    longest = max(run.duration for run in components)
    return replace(components[0], duration=longest, has_ended=all(r.has_ended for r in components))


SLURM = JobTrace("slurm", _read, {"trace": "Slurm accounting (sacct)"}, SlurmOptions)
