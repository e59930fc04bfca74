"""All formats, and traces read as plain jobs, to which no assumption is added (docs/simulator)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from oasis.model.errors import InstanceError
from oasis.model.file_kinds import FileKind, refuse_other
from oasis.model.instance import Instance
from oasis.traces import readers
from oasis.traces.job_table import PlainTrace, TraceOptions
from oasis.traces.plain_instance import PLAIN, JobTrace, is_table_of_records, known_trace
from oasis.traces.plain_job import FACTS
from oasis.traces.slurm import SLURM
from oasis.traces.table import TraceSource, csv_cells, read_source

# Those with readers of their own; the others are tables, of which formats.toml says everything.
OWN = {trace.name: trace for trace in (PLAIN, SLURM, *readers.OWN)}
FORMATS: Mapping[str, JobTrace] = {
    name: OWN.get(name) or known_trace(name) for name, facts in FACTS.items() if "looks" in facts
}
EXPECTED = f"a trace ({', '.join(FORMATS)})"


def read_plain(
    path: str | os.PathLike[str] | TraceSource,
    *,
    virtual_cluster: str = "",
    max_gpus: int | None = None,
    first: int = 0,
    jobs: int | None = None,
    format: str | None = None,
    options: Mapping[str, object] | None = None,
) -> PlainTrace:
    r"""Read plain jobs from a trace in any format of ``oasis import``, by the same rules.

    A row that cannot be used, or a job that ran for no time, is left out and counted; so is a job
    without GPUs. The page of traces has the columns that each format needs.

    Parameters
    ----------
    path : path or TraceSource
        The file, compressed or not; ``-``: standard input; or what was read of it.
    virtual_cluster : str
        Only the jobs of this virtual cluster; empty: all.
    max_gpus : int, optional
        Leave out jobs with more GPUs.
    first, jobs : int, optional
        Of the remaining jobs, the number to take (default: all) and the first one.
    format : str, optional
        How to read the file, a key of `oasis.traces.plain.FORMATS`; by default, what it looks like.
    options : mapping of str to object, optional
        Options of that format that are about reading, such as ``user`` or ``processors_per_gpu``.

    Raises
    ------
    InstanceError
        Naming the column or the option; or if no job is left, or the file is no trace.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import read_plain
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.csv")
    ...     _ = path.write_text("id,submitted,duration,gpus\na,100,60,4\nb,130,30,8")
    ...     trace = read_plain(path, max_gpus=4)
    >>> [(job.id, job.submitted) for job in trace.jobs], trace.kept
    ([('a', 0.0)], 'kept 1 of 2 jobs: 1 by GPUs (1..4)')
    """
    source = path if isinstance(path, TraceSource) else read_source(path)
    kind = FORMATS[format or format_of(source)]
    chosen = reading_options(kind, {"virtual_cluster": virtual_cluster, **(options or {})})
    trace = kind.table(source, chosen)
    trace.choose(chosen)
    if chosen.cpu_jobs:
        count = int((trace.frame["gpus"] == 0).sum())
        trace.frame = trace.frame.assign(gpus=trace.frame["gpus"].clip(lower=1))
        note = f"jobs without GPUs, which hold one each here: {count}"
        trace.notes = [*trace.notes, note] if count else trace.notes
    # A replay gives out GPUs, so a job without any has nothing to wait for.
    trace.keep("cpu_jobs", trace.frame["gpus"] > 0, "without GPUs")
    if max_gpus is not None:
        trace.keep("gpus", trace.frame["gpus"] <= max_gpus, f"by GPUs (1..{max_gpus})")
    # The sort is stable: jobs of one instant stay in the order of the file.
    trace.frame = trace.frame.sort_values("submitted", kind="stable")
    trace.keep("skip", slice(first, None), f"by skip ({first})")
    trace.keep("max_jobs", slice(None, jobs), f"by max_jobs ({jobs})")
    trace.left_out = {rule: count for rule, count in trace.left_out.items() if count}
    if not len(trace.frame):
        loss = "no rows" if trace.is_whole and not trace.malformed else trace.kept
        raise InstanceError(
            "jobs", f"expected at least one job, got none from {source.path}: {loss}"
        )
    trace.count_from(trace.frame["submitted"].iloc[0])
    trace.notes = (*trace.notes, *trace.gpu_notes)
    return trace


def format_of(source: TraceSource, expected: str = EXPECTED) -> str:
    """Return the format of `source`, a key of `FORMATS`; else raise an error with `expected`."""
    kind = source.kind()
    refuse_other(kind, FORMATS, expected)
    if kind is None and source.header.lstrip().startswith(("[", "{")):
        if is_table_of_records(source):
            return "plain"
        raise InstanceError("", f"expected {expected}, got JSON without jobs of a known format")
    return "plain" if kind is None else kind.name


def reading_options(trace: JobTrace, values: Mapping[str, object]) -> TraceOptions:
    """Return the format's options with these `values`; an empty value means the default."""
    wanted = {name: value for name, value in values.items() if value not in ("", None)}
    known = {entry.name for entry in fields(trace.options) if entry.metadata["reading"]}
    for name in (name for name in wanted if name not in known):
        having = [t.name for t in FORMATS.values() if name in t.options.__dataclass_fields__]
        expected = f"is an option of {' and '.join(having) or 'no format'}"
        raise InstanceError(name, f"{expected}, the file is read as {trace.name}")
    options: TraceOptions = trace.options(**wanted)
    return options


def read_instance(
    path: str | os.PathLike[str],
    options: TraceOptions | None = None,
    *,
    format: str | None = None,
    nodes: str | os.PathLike[str] | None = None,
) -> Instance:
    """Turn a trace into an instance.

    Parameters
    ----------
    path : path
        The file, compressed or not; ``-``: standard input.
    options : MachineOptions or OpenbOptions, optional
        The assumptions; all of them are recorded in the metadata. Those of a format, such as
        `SlurmOptions`, say that the file has it.
    format : str, optional
        How to read the file, a key of `oasis.traces.plain.FORMATS`; by default, what the options
        say, or else what it looks like.
    nodes : path, optional
        The node list of the openb trace, whose machines are those of the instance.

    Returns
    -------
    Instance
        ``metadata["malformed"]`` counts the rows that could not be used, by kind.

    Raises
    ------
    InstanceError
        If a column is missing, more than half of the rows cannot be used or no job is left; or if
        an option is out of its range, or too few nodes are left.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import SlurmOptions, read_instance
    >>> rows = '''JobID|User|Submit|ElapsedRaw|State|AllocTRES
    ... 17|ann|2024-03-01T08:00:00|7200|COMPLETED|cpu=16,mem=64G,node=1,gres/gpu=4
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "jobs.txt")
    ...     _ = path.write_text(rows)
    ...     instance = read_instance(path, SlurmOptions(start="first"))
    >>> [(job.id, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('17', 16)]
    """
    matching = (name for name, trace in FORMATS.items() if type(options) is trace.options)
    trace = FORMATS[format or next(matching, "") or format_of(read_source(path))]
    if (nodes is None) != (trace.nodes is None):
        expected = f"expected {readers.NODES_LOOK} beside its pods, and there alone"
        raise InstanceError("nodes", expected)
    options = options or trace.options()
    lacks = options.worker_servers != trace.options().worker_servers  # then they are the user's
    return trace.imported(path, options, None, nodes, lacks=lacks)[0]


def kind_of_trace(lines: list[str], document: Any) -> FileKind | None:
    """The kind of trace with these first lines, or this JSON document; None if it is no trace."""
    if document is None and set(readers.NODE_COLUMNS) <= set(csv_cells(lines[0])):
        return FileKind(readers.NODES, readers.NODES_LOOK)
    trace = next((one for one in FORMATS.values() if one.is_of(lines, document)), None)
    return None if trace is None else FileKind(trace.name, trace.looks, trace.is_table)
