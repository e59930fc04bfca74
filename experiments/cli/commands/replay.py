"""``oasis replay``: policies on a plain trace, jobs with GPUs and a duration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.delivery import with_delivery
from experiments.cli.options import known
from experiments.cli.policy_options import Chosen, PolicyLine, Set, choose_options, known_policies
from experiments.cli.reading import errors_name
from experiments.evaluation.comparison import MISSING, Comparison
from experiments.evaluation.policies import LINE
from experiments.evaluation.provenance import file_reference
from experiments.evaluation.replay import PLAIN, replay_each
from experiments.evaluation.tables import REPLAYED, replayed_rows, unfinished_notes
from oasis.simulator import ElasticWorkload, Workload, read_elastic, rigid_workload
from oasis.traces import PlainTrace, malformed_sentences, read_plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 200  # of the progress bar
TRACE_OPTIONS = (
    *("servers", "gpus_per_server", "placement"),
    *("virtual_cluster", "max_gpus", "skip", "max_jobs"),
)


@with_delivery
def command(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="TRACE.csv", help="The jobs.", show_default=False)
    ],
    servers: Annotated[int, typer.Option(help="Number of servers.", min=1)] = 8,
    gpus_per_server: Annotated[int, typer.Option(help="GPUs of each server.", min=1)] = 8,
    placement: Annotated[
        str, typer.Option(help="pooled: GPUs wherever they are; whole: all on one server.")
    ] = "pooled",
    policies: Annotated[
        str, typer.Option(help=f"Some of {', '.join(PLAIN)}, with commas between.")
    ] = "fifo,srtf,las",
    line: PolicyLine = None,
    assignments: Set = None,
    virtual_cluster: Annotated[
        str, typer.Option(help="Take the jobs of this virtual cluster alone. [default: all]")
    ] = "",
    max_gpus: Annotated[
        int | None, typer.Option(help="Leave out jobs with more GPUs.", min=1)
    ] = None,
    skip: Annotated[int, typer.Option(help="Leave out so many jobs at the start.", min=0)] = 0,
    max_jobs: Annotated[int | None, typer.Option(help="Most jobs to take.", min=1)] = None,
    delivery: Any = None,
) -> int:
    """Replay a plain trace: each job holds its GPUs for its duration, or waits.

    TRACE.csv has the columns id,submitted,duration,gpus (times in seconds), or those of the Philly
    trace, timestamp,duration,num_gpus,gpu_time,cluster. All times printed are seconds, from
    submission; waiting is the mean time without GPUs. Where jobs did not finish, completion times
    are those of the others alone and are marked (*), and a line below says how many.

    A JSON file holds elastic jobs and their machines instead (docs: simulator).

    Ctrl-C keeps the policies that are done, and says which are missing; the exit code is 3.

    Example: oasis replay jobs.csv --policies srsf,las --line fit --placement whole
    """
    names = known_policies(policies, "--policies", PLAIN)
    chosen = choose_options(names, assignments, shared={LINE: line})
    placement = known(placement, ("pooled", "whole"), "--placement")
    if is_elastic(file):
        _refuse_trace_options(context)
        with errors_name(file):
            made = read_elastic(file)
        found, title = _elastic(made, chosen, file), _elastic_title(made)
    else:
        with errors_name(file):
            trace = read_plain(
                file, virtual_cluster=virtual_cluster, max_gpus=max_gpus, first=skip, jobs=max_jobs
            )
        for sentence in malformed_sentences({"jobs": trace.malformed}):
            console.note(f"left out: {sentence}")
        with errors_name(file):
            workload = _workload(trace, servers, gpus_per_server, placement)
        about = _about(trace, servers, gpus_per_server, placement) | {
            "cluster": virtual_cluster or None,
            "max_gpus": max_gpus,
            "first": skip,
            "max_jobs": max_jobs,
            "trace": file_reference(file),
            "version": oasis.__version__,
        }
        found = Comparison("replay", _replayed(workload, chosen, None), about)
        title = (
            f"{len(trace.jobs)} jobs on {servers} x {gpus_per_server} GPUs, {placement}; seconds"
        )
    missing = [name for name in chosen if name not in found.policies]
    found = replace(found, about={**found.about, MISSING: missing}) if missing else found

    def show() -> None:
        console.print_rows(REPLAYED, replayed_rows(found), title=title)
        for note in unfinished_notes(found):
            console.print_text(note)

    def draw() -> Figure:
        from experiments.plotting import comparison_page  # noqa: PLC0415 (needs an extra)

        return comparison_page(found)

    delivery(found.to_dict, show, draw)
    return console.note_missing(found.missing)


def _about(trace: PlainTrace, servers: int, gpus: int, placement: str) -> dict[str, Any]:
    return {
        "jobs": len(trace.jobs),
        "format": trace.format,
        "malformed": {kind: dict(found) for kind, found in trace.malformed.items()},
        "servers": servers,
        "gpus": gpus,
        "placement": placement,
    }


def is_elastic(file: Path) -> bool:
    """Whether `file` is one of elastic jobs: named ``.json``, or beginning with a brace."""
    if file.suffix.lower() == ".json":
        return True
    if not file.is_file():
        return False
    with file.open("rb") as begin:
        return begin.read(200).lstrip().startswith(b"{")


def _refuse_trace_options(context: typer.Context) -> None:
    """A file of elastic jobs says all this itself."""
    for name in TRACE_OPTIONS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option}: is for plain traces, not for a file of elastic jobs")


def _elastic(made: ElasticWorkload, chosen: Chosen, file: Path) -> Comparison:
    about = {
        "jobs": len(made.workload.jobs),
        "format": made.document["format"],
        "machines": len(made.workload.site.machines),
        "trace": file_reference(file),
        "version": oasis.__version__,
    }
    return Comparison("replay", _replayed(made.workload, chosen, made.options), about)


def _elastic_title(made: ElasticWorkload) -> str:
    site = made.workload.site
    totals = dict(zip(site.resources, site.totals("worker"), strict=True))
    gpus = f" with {totals['gpu']:g} GPUs" if "gpu" in totals else ""
    return f"{len(made.workload.jobs)} elastic jobs on {len(site.machines)} machines{gpus}; seconds"


def _workload(trace: PlainTrace, servers: int, gpus: int, placement: str) -> Workload:
    try:
        return rigid_workload(trace.jobs, servers, gpus, placement)
    except oasis.InstanceError as error:
        if not error.path.endswith(".gpus"):
            raise
        most = gpus if placement == "whole" else servers * gpus
        hint = f"; --max-gpus {most} leaves such jobs out"
        raise oasis.InstanceError(error.path, f"{error.expected}{hint}") from None


def _replayed(
    workload: Workload, chosen: Chosen, options: dict[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Replay with a progress bar that moves only `STEPS` times: it must not cost what it shows."""
    total = len(workload.jobs) * len(chosen)
    each = max(1, total // STEPS)
    settled = 0
    with console.counter("replaying", total // each) as advance:

        def settle() -> None:
            nonlocal settled
            settled += 1
            if settled % each == 0:
                advance()

        return replay_each(
            workload, chosen, on_settled=settle, options=options, keep_interrupted=True
        )
