"""Reader of traces with one row per job: GPUs, submission and duration."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from oasis.model.errors import InstanceError
from oasis.model.file_kinds import TABLES, TRACES, looks_of, refuse_other
from oasis.model.instance import Instance
from oasis.traces.everything import fit_machines, widened
from oasis.traces.mapping import MachineOptions, build
from oasis.traces.options import TraceOptions
from oasis.traces.plain_job import PlainJob
from oasis.traces.table import TraceSource, TraceTable, read_source
from oasis.traces.times import TraceTimes
from oasis.traces.window import LABELS, Window, check_choice, select

SHARES = "jobs with a part of a GPU, which count with the next whole number"


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A job as a trace records it.

    Parameters
    ----------
    job : PlainJob
        Its GPUs and times; submitted in seconds after a moment that the whole trace shares.
    labels : mapping of str to str
        Such as its user or its queue, by the name of the option that selects by it.
    is_share : bool
        Whether it held a part of a GPU, which `job` counts as a whole one.
    """

    job: PlainJob
    labels: Mapping[str, str]
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class JobTrace:
    """A kind of trace.

    Parameters
    ----------
    name : str
        Of the kind, such as ``slurm``.
    read : callable
        Makes a `TraceTable` of `TraceRow` of a `TraceSource` and the options.
    about : mapping of str to str
        Entries about the trace in the metadata of the instance.
    options : type
        Class of its options.
    """

    name: str
    read: Callable[[TraceSource, Any], TraceTable[TraceRow]]
    about: Mapping[str, str]
    options: type[TraceOptions] = MachineOptions

    def table(self, source: TraceSource, options: TraceOptions) -> TraceTable[TraceRow]:
        """Read the jobs of `source`, before any option selects some of them.

        Raises
        ------
        InstanceError
            Naming the column, or the kind of file that it is and the command that takes it.
        """
        if self.name in TRACES:
            wanted = TABLES if getattr(options, "map", "") else (self.name,)
            refuse_other(source.kind(), (*wanted, "csv"), looks_of(self.name), source.path)
        table = self.read(source, options)
        if table.clock is not None:
            table.notes += table.clock.notes()
        return table

    def window(
        self,
        path: str | os.PathLike[str],
        options: MachineOptions,
        fixed: Collection[str] | None = None,
    ) -> tuple[Window, dict[str, Any], MachineOptions]:
        """The jobs that the options choose, what reading the file reports, and the options.

        Parameters
        ----------
        path : path
            The file; ``-``: standard input.
        options : MachineOptions
            The assumptions.
        fixed : collection of str, optional
            If given, all jobs are kept: every option that leaves out jobs, the number of machines
            and the horizon are chosen so that they fit, but for the options with these names.

        Raises
        ------
        InstanceError
            Naming the row, the column or the option, such as a ``start`` that is no time of the
            trace; also if no job is left.
        OSError
            If the file cannot be read.
        """
        source = read_source(path)
        table = self.table(source, options)
        rows, left_out = chosen_rows(table, options)
        records = [options.record(row.job) for row in rows]
        notes = list(table.notes)
        shares = sum(row.is_share for row in rows)
        if shares:
            notes.append(f"{SHARES}: {shares}")
        if any(row.job.utility is not None for row in rows):
            notes.append(f"utilities are drawn with seed {options.seed}, not those of the table")
        clock = table.clock or TraceTimes(options, is_dated=False)
        begin = clock.start(options.start)
        if fixed is not None:
            options = widened(options, records, fixed, begin)
        window = select(records, options, begin)
        if fixed is not None:
            options = fit_machines(options, window, fixed)
        window = Window(window.start, window.records, {**left_out, **window.left_out})
        found = {
            **self.about,
            "files": {"jobs": source.name},
            "rows": {"jobs": len(table.rows)},
            "malformed": {"jobs": table.malformed} if table.malformed else {},
            "notes": {"jobs": notes} if notes else {},
            "window_start": clock.show(window.start),
        }
        return window, found, options

    def instance(
        self,
        path: str | os.PathLike[str],
        options: MachineOptions,
        fixed: Collection[str] | None = None,
    ) -> Instance:
        """The instance of those jobs; parameters and errors are those of `window`."""
        window, found, options = self.window(path, options, fixed)
        return build(self.name, window, options.cluster(), options, found)


def chosen_rows(
    table: TraceTable[TraceRow], options: TraceOptions
) -> tuple[list[TraceRow], dict[str, int]]:
    """Rows with the labels that the options name, and how many each of these labels left out.

    Raises
    ------
    InstanceError
        For a label that no row has, or that the file does not tell.
    """
    rows, left_out = table.rows, {}
    for name in LABELS:
        label = getattr(options, name, "")
        if label and table.rows:
            if name not in table.rows[0].labels:
                raise InstanceError(name, "expected a file with a column of it", label)
            # A label that no row has is refused: it is a typo more often than a wish for no jobs.
            check_choice(name, label, (row.labels[name] for row in table.rows))
            kept = [row for row in rows if row.labels[name] == label]
            left_out[name] = len(rows) - len(kept)
            rows = kept
    return rows, left_out
