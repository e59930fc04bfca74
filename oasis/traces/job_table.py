"""Traces whose rows are jobs with GPUs, a submission and a duration: one importer for all."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oasis.model.instance import Instance
from oasis.traces.machine_options import MachineOptions
from oasis.traces.mapping import build
from oasis.traces.plain_job import PlainJob
from oasis.traces.source import Source, read_source
from oasis.traces.table import Table, real
from oasis.traces.times import window_start
from oasis.traces.window import Window, check_choice, select


@dataclass(frozen=True, slots=True)
class TraceRow:
    """A job as a trace records it.

    Parameters
    ----------
    job : PlainJob
        Its GPUs and times; submitted in seconds after a moment that the whole trace shares.
    labels : mapping of str to str
        Such as its user or its queue, by the name of the option that selects by it.
    """

    job: PlainJob
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobTrace:
    """A kind of trace.

    Parameters
    ----------
    name : str
        Of the kind, such as ``slurm``.
    read : callable
        Makes a `Table` of `TraceRow` of a `Source` and the options.
    start : callable
        Reads a submission time, as the option ``start`` gives it; raises `MalformedError`.
    example : str
        Such a time.
    show : callable
        The inverse of `start`.
    about : mapping of str to str
        What the metadata of the instance say of it.
    """

    name: str
    read: Callable[[Source, MachineOptions], Table[TraceRow]]
    start: Callable[[str], float]
    example: str
    show: Callable[[float], str]
    about: Mapping[str, str]

    def window(
        self, path: str | os.PathLike[str], options: MachineOptions
    ) -> tuple[Window, dict[str, Any]]:
        """The jobs that the options choose, and what reading the file reports.

        Raises
        ------
        InstanceError
            Naming the row, the column or the option; also if no job is left.
        ValueError
            If ``options.start`` is no time of such a trace.
        OSError
            If the file cannot be read.
        """
        start = window_start(options.start, self.start, self.example)
        source = read_source(path)
        table = self.read(source, options)
        chosen = select([options.record(job) for job in _chosen(table, options)], options, start)
        found = {
            **self.about,
            "files": {"jobs": source.name},
            "rows": {"jobs": len(table.rows)},
            "malformed": {"jobs": table.malformed} if table.malformed else {},
            "window_start": self.show(chosen.start),
        }
        return chosen, found

    def instance(self, path: str | os.PathLike[str], options: MachineOptions) -> Instance:
        """The instance of those jobs; the errors are those of `window`."""
        window, found = self.window(path, options)
        return build(self.name, window, options.cluster(), options, found)


def _chosen(table: Table[TraceRow], options: MachineOptions) -> list[PlainJob]:
    """Jobs with the labels that the options name; a label that nobody has is refused."""
    names = table.rows[0].labels if table.rows else {}
    wanted = {name: getattr(options, name) for name in names if getattr(options, name)}
    for name, label in wanted.items():
        check_choice(name, label, (row.labels[name] for row in table.rows))
    return [
        row.job
        for row in table.rows
        if all(row.labels[name] == label for name, label in wanted.items())
    ]


def seconds(text: str) -> float:
    """A time in seconds after any fixed moment."""
    return real(text, "start", minimum=-math.inf)


def show_seconds(value: float) -> str:
    """The inverse of `seconds`."""
    return f"{value:.17g}"
