"""``oasis replay``: policies on a plain trace, jobs with GPUs and a duration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import oasis
from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.progress import counter
from experiments.cli.results import Delivery, deliver_comparison
from experiments.evaluation.comparison import PLAIN, replay_each
from experiments.evaluation.policies import LINE
from experiments.evaluation.provenance import file_reference
from experiments.machines import MOST_MACHINES, machine_list, machines_text
from experiments.options import Option, options_of
from oasis.model.choices import choice
from oasis.model.errors import located_at
from oasis.model.file_kinds import ELASTIC, read_content
from oasis.model.instance_file import parse_json
from oasis.model.summary import how_many
from oasis.simulator import Workload
from oasis.simulator.elastic import FORMAT, elastic_from_dict
from oasis.simulator.workload import rigid_workload_on
from oasis.traces import PlainTrace, malformed_sentences, read_plain
from oasis.traces.plain import EXPECTED, FORMATS, format_of
from oasis.traces.plain_instance import is_table_of_records
from oasis.traces.table import TraceSource, read_source

WANTED = f"{EXPECTED} or a workload of elastic jobs"
VIRTUAL_CLUSTER = {"virtual_cluster": "--virtual-cluster"}
TRACE_OPTIONS = (
    *("machines", "servers", "gpus_per_server", "placement"),
    *("virtual_cluster", "max_gpus", "skip", "max_jobs"),
)


def reading_options() -> dict[str, Option]:
    """Return the options about reading of all formats, but for the virtual cluster."""
    options: dict[str, Option] = {}
    helps: dict[str, dict[str, list[str]]] = {}
    for trace in FORMATS.values():
        for name, option in options_of(trace.options).items():
            is_reading = trace.options.__dataclass_fields__[name].metadata["reading"]
            if is_reading and name != "virtual_cluster":
                options.setdefault(name, option)
                helps.setdefault(name, {}).setdefault(option.help, []).append(trace.name)
    for name, texts in helps.items():
        sentences = [  # what one format says of it need not hold for another
            f"{text} ({', '.join(formats)})" if len(formats) < len(FORMATS) else text
            for text, formats in texts.items()
        ]
        options[name] = replace(options[name], help="; ".join(sentences))
    return options


READING = reading_options()
# Flags that `oasis whatif` has too.
Reading = Annotated[dict[str, Any], flags.Flags(READING, flags.trace_panel)]
TraceFile = Annotated[
    Path,
    typer.Argument(metavar="TRACE", help="The jobs; -: standard input."),
]
TraceFormat = Annotated[
    str | None,
    f"How to read TRACE: {', '.join(FORMATS)}. [default: what it looks like]",
    {
        "autocompletion": flags.among(FORMATS),
        "callback": lambda name: name if name is None else choice(name, FORMATS, "--format"),
        "rich_help_panel": flags.READING_PANEL,
    },
]
Placement = Annotated[
    Literal["pooled", "whole"], "pooled: GPUs wherever they are; whole: all on one server."
]
Policies = Annotated[Any, f"Separated by commas, of: {', '.join(PLAIN)}.", flags.policies_of(PLAIN)]
MACHINES = "16x8|FILE"
MACHINES_HELP = (
    "Machines and GPUs of each, such as 16x8 or 16x8,4x4; or a CSV with a column gpus and a row "
    "per machine. [default: {}]"
)
JOBS = {"rich_help_panel": "Which jobs"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Flags that choose which jobs of a plain trace are taken."""

    virtual_cluster: Annotated[
        str,
        "Take the jobs of this virtual cluster alone (philly). [default: all]",
        JOBS,
    ] = ""
    max_gpus: Annotated[int | None, "Leave out jobs with more GPUs.", JOBS, {"min": 1}] = None
    skip: Annotated[int, "Number of jobs to leave out at the start.", JOBS, {"min": 0}] = 0
    max_jobs: Annotated[int | None, "Most jobs to take.", JOBS, {"min": 1}] = None

    def read(
        self, source: TraceSource, format: str | None, reading: Reading, expected: str = WANTED
    ) -> PlainTrace:
        """Read the chosen jobs of a plain trace; errors name the file and the flags."""
        with located_at(source=source.path), flags.naming_flags(READING, **VIRTUAL_CLUSTER):
            return read_plain(
                source,
                format=format or format_of(source, expected),
                options={"virtual_cluster": self.virtual_cluster, **reading},
                max_gpus=self.max_gpus,
                first=self.skip,
                jobs=self.max_jobs,
            )


def command(
    *,
    file: TraceFile,
    format: TraceFormat = None,
    machines: Annotated[str | None, MACHINES_HELP.format("8x8"), {"metavar": MACHINES}] = None,
    servers: Annotated[int, "Number of servers.", flags.COUNT | {"max": MOST_MACHINES}] = 8,
    gpus_per_server: Annotated[int, "GPUs of each server.", flags.COUNT] = 8,
    placement: Placement = "pooled",
    policies: Policies = "fifo,srtf,las",
    line: flags.PolicyLine = None,
    assignments: flags.Set = None,
    reading: Reading,
    selection: Selection,
    delivery: Delivery,
) -> int:
    """Replay a trace: each job holds its GPUs for its duration, or waits.

    TRACE is what `oasis import` reads: a table of jobs (CSV or Parquet; --map names its columns),
    Slurm's accounting, a log in the Standard Workload Format, or a public trace. Times are
    from submission; waiting is the mean time without GPUs. Standard error says how
    many jobs were left out, and why. Where jobs did not finish, completion times are those of the
    others alone and are marked (*), and a line below says how many.

    TRACE may also be a JSON file of elastic jobs and their machines (docs: simulator).

    Ctrl-C keeps the policies that are done, and says which are missing; the exit code is 3.

    Example: oasis replay jobs.csv --policies srsf,las --placement whole
    """
    chosen = flags.choose_options(policies, assignments, shared={LINE: line})
    with located_at(source=file):
        source = read_source(file)
        elastic = None if format else _elastic_workload(source)
    if elastic is not None:
        why = "is for plain traces, not for a file of elastic jobs"
        flags.refuse_given(
            delivery.context, (*TRACE_OPTIONS, *reading), why
        )  # it says all this itself
        workload, title = elastic, _elastic_title(elastic)
        about = {
            "format": FORMAT,
            "machines": len(elastic.site.machines),
            "trace": file_reference(file),
            "version": oasis.__version__,
        }
    else:
        trace = selection.read(source, format, reading)
        if machines is not None:
            flags.refuse_given(
                delivery.context, ("servers", "gpus_per_server"), "expected no --machines beside it"
            )
            sizes = read_machines(machines)
            cluster: dict[str, Any] = {"machines": list(sizes)}
        else:
            sizes = (gpus_per_server,) * servers
            cluster = {"servers": servers, "gpus": gpus_per_server}
        with located_at(source=file):
            workload = _workload(trace, sizes, placement)
        note_held(trace, sizes)
        say_how_it_was_read(trace, is_guessed=format is None)
        about = (
            _about(trace)
            | cluster
            | {
                "placement": placement,
                "cluster": selection.virtual_cluster or None,
                "max_gpus": selection.max_gpus,
                "first": selection.skip,
                "max_jobs": selection.max_jobs,
                "reading": reading | ({"format": format} if format else {}),
                "trace": file_reference(file),
                "version": oasis.__version__,
            }
        )
        some = "1 job" if len(trace.jobs) == 1 else f"{len(trace.jobs):,} jobs"
        title = f"{some} on {machines_text(sizes)}, {placement}"
    with counter("replaying", len(workload.jobs) * len(chosen)) as advance:
        comparison = replay_each(workload, chosen, about, on_settled=advance)
    return deliver_comparison(comparison, comparison.to_dict(), title, delivery)


def read_machines(text: str) -> tuple[int, ...]:
    """Return the GPUs of each machine, from a text such as ``16x8``; errors name the flag."""
    with flags.naming_flags(("machines",)), located_at("machines"):
        return machine_list(text)


def note_held(trace: PlainTrace, sizes: tuple[int, ...]) -> None:
    """Add a note if jobs that still run hold more GPUs than the machines of these sizes have."""
    # They all hold them to the end of the trace.
    held, total = sum(n for begin, end, n in trace.held if max(begin, 0.0) < end), sum(sizes)
    if held > total:
        what = f"warning: jobs that had begun and not ended hold {held:,} GPUs, but there are"
        when = "once all have begun, no other job starts before the trace ends"
        trace.notes = (*trace.notes, f"{what} {total:,}: {when}")


def say_how_it_was_read(trace: PlainTrace, *, is_guessed: bool) -> list[str]:
    """Say, and return, what of a trace was left out, guessed or rounded; first a guessed format."""
    if is_guessed:
        console.note(f"read as {trace.format} (--format)")
    left_out = malformed_sentences({"jobs": trace.malformed})
    said = [*(f"left out: {sentence}" for sentence in left_out), *trace.notes]
    for sentence in said:
        console.note(sentence)
    if not trace.is_whole:
        console.note(trace.kept)
    return said


def _about(trace: PlainTrace) -> dict[str, Any]:
    return {
        "jobs": len(trace.jobs),
        "format": trace.format,
        "malformed": {kind: dict(counts) for kind, counts in trace.malformed.items()},
        "left_out": dict(trace.left_out),
        "kept": trace.kept,
        "shares": trace.shares,
        "notes": list(trace.notes),
    }


def _elastic_workload(source: TraceSource) -> Workload | None:
    """Return the elastic jobs of a JSON file; None if the file is a trace."""
    kind = source.kind()
    # sacct --json begins with a brace too, and is a trace.
    if (kind is not None and kind.name in FORMATS) or is_table_of_records(source):
        return None
    if not source.header.lstrip().startswith("{"):
        return None
    content = read_content(source.path)
    return elastic_from_dict(parse_json(content, (ELASTIC,), WANTED))


def _elastic_title(workload: Workload) -> str:
    site = workload.site
    totals = dict(zip(site.resources, site.totals("worker"), strict=True))
    gpus = f" with {totals['gpu']:g} GPUs" if "gpu" in totals else ""
    jobs, machines = len(workload.jobs), how_many(len(site.machines), "machine")
    return f"{how_many(jobs, 'elastic job')} on {machines}{gpus}"


def _workload(trace: PlainTrace, sizes: tuple[int, ...], placement: str) -> Workload:
    try:
        return rigid_workload_on(trace.jobs, sizes, placement, trace.held)
    except oasis.InstanceError as error:
        if error.field.endswith(".gpus"):
            most = max(sizes) if placement == "whole" else sum(sizes)
            error.hint = f"; --max-gpus {most} leaves such jobs out"
        raise
