"""``oasis whatif``: which scheduler would serve the jobs of a trace best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.replay import (
    READING,
    MaxGpus,
    MaxJobs,
    Placement,
    Skip,
    TraceFile,
    TraceFormat,
    VirtualCluster,
    how_it_was_read,
    read_jobs,
    say_how_it_was_read,
)
from experiments.cli.commands.sweep import engine_of, quiet
from experiments.cli.exit_codes import DONE, FAILED_CELLS, LIMIT
from experiments.cli.files import DIRECTORY, PAGE, PAGE_OR_JSON, READ
from experiments.cli.options import (
    AsJson,
    DaskScheduler,
    Engine,
    PolicyLine,
    Processes,
    Set,
    Style,
    choose_options,
    is_given,
    known,
    known_policies,
    naming_flags,
    with_options,
)
from experiments.cli.results import deliver, write_page
from experiments.cli.whatif_report import (
    CSV_FILES,
    WhatIfProgress,
    again,
    csv_files,
    show,
    write_csv,
)
from experiments.evaluation import whatif_tables as tables
from experiments.evaluation.comparison import PLAIN
from experiments.evaluation.policies import LINE, entry_of
from experiments.evaluation.provenance import file_reference
from experiments.evaluation.whatif import (
    CHOSEN,
    RECORDED,
    JobColumns,
    machine_list,
    recorded_figures,
    smallest_machines,
)
from experiments.evaluation.whatif_result import Setting, WhatIf
from oasis.model.errors import InputError, located_at
from oasis.traces.plain import EXPECTED, FORMATS
from oasis.traces.table import read_trace, source_of

if TYPE_CHECKING:
    from experiments.sweep import Cell, CellResult, Executor
    from experiments.sweep.whatif import Scenario

SIZE = 8  # GPUs of a machine, unless the user says otherwise
LOADS = (0.8, 1.2, 1.5)
MANY_RUNS = 200_000  # jobs times policies, from which other loads are run only if asked for
QUICK = 20_000  # jobs times runs that take less time than to start processes
GIVEN, DRAWN, NONE = UTILITIES = ("given", "drawn", "none")
DRAWN_TEXT = (
    "drawn with seed {seed} as `oasis import` does: priority / (1 + exp(decay (d - target))) of "
    "the time d from submission to end, in units of 30 min; priority 1 to 100, decay 0 (10 % of "
    "the jobs), 0.01 to 1 (55 %) or 4 to 6 (35 %), target 1.5 x duration, at least 1"
)
TITLE = "Which scheduler would serve these jobs best?"


@with_options(READING, "reading", only_given=True)
def command(
    context: typer.Context,
    file: TraceFile,
    format: TraceFormat = None,
    machines: Annotated[
        str | None,
        typer.Option(
            metavar="16x8|FILE",
            help="Machines and GPUs of each, such as 16x8 or 16x8,4x4; or a CSV with a column "
            f"gpus and a row per machine. [default: the fewest of {SIZE} GPUs that hold the "
            "busiest moment]",
            show_default=False,
        ),
        READ,
    ] = None,
    placement: Placement = "pooled",
    policies: Annotated[
        str, typer.Option(help=f"Separated by commas, of: {', '.join(PLAIN)}.")
    ] = ",".join(CHOSEN),
    line: PolicyLine = None,
    assignments: Set = None,
    loads: Annotated[
        str | None,
        typer.Option(
            help="Also at these loads: at 1.5, the times between submissions are divided by 1.5. "
            "[default: 0.8,1,1.2,1.5; 1 if there are many jobs]",
            show_default=False,
        ),
    ] = None,
    utilities: Annotated[
        str | None,
        typer.Option(
            help=f"What jobs are worth: {', '.join(UTILITIES)}. given: by the columns worth and "
            "deadline of a table (--map); drawn: the sigmoids that `oasis import` draws. [default: "
            "given, where the table has such a column]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --utilities drawn.", min=0)] = 0,
    fewer: Annotated[
        str | None,
        typer.Option(
            help="Also with this many machines fewer, such as 1,2; the last of the list are "
            "removed. "
            "[default: none]",
            show_default=False,
        ),
    ] = None,
    virtual_cluster: VirtualCluster = "",
    reading: Any = None,
    max_gpus: MaxGpus = None,
    skip: Skip = 0,
    max_jobs: MaxJobs = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Also write a page (.html), or the JSON result to another file; -: print it "
            "instead, as --json does.",
        ),
        PAGE_OR_JSON,
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="PREFIX",
            help="Also write PREFIX-jobs.csv and PREFIX-owners.csv; in a directory, jobs.csv and "
            "owners.csv.",
        ),
        CSV_FILES,
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--records",
            metavar="DIR",
            help="Keep each finished run here; the same command then continues after an "
            "interruption.",
        ),
        DIRECTORY,
    ] = None,
    processes: Processes = None,
    engine: Engine = "local",
    scheduler: DaskScheduler = None,
    style: Style = None,
    as_json: AsJson = False,
) -> int:
    """Say which scheduler would serve the jobs of a trace best, and how much any could gain.

    Each policy runs the same jobs on the same machines; where TRACE says when jobs started, what
    really happened stands beside them. A lower bound on the mean holds for every scheduler. TRACE
    is what `oasis replay` reads. Preemption costs nothing here, and each job takes as long as it
    really did.

    Ctrl-C keeps the runs that are done, and says which are missing; the exit code is 3. Exit code
    4: a policy failed.

    Example: oasis whatif jobs.csv --machines 16x8 --loads 0.8,1.2,1.5 -o page.html
    """
    from experiments.sweep.whatif import cells_of  # noqa: PLC0415 (needs an extra)

    names = known_policies(policies, "--policies", PLAIN)
    chosen = choose_options(names, assignments, shared={LINE: line})
    placement = known(placement, ("pooled", "whole"), "--placement")
    if format is not None:
        format = known(format, FORMATS, "--format")
    if utilities is not None:
        utilities = known(utilities, UTILITIES, "--utilities")
    if is_given(context, "seed") and utilities != DRAWN:
        raise InputError("--seed", "expected --utilities drawn beside it")
    if style is not None and not _is_page(output):
        raise InputError("--style", "expected -o PAGE.html beside it")
    more = _numbers(loads, "--loads"), _numbers(fewer, "--fewer", whole=True)
    files = csv_files(table)
    executor = engine_of(engine, scheduler, processes)
    with located_at(source=file):
        source = source_of(file, read_trace(file))
    given = {"virtual_cluster": virtual_cluster, **reading}
    limits = {"max_gpus": max_gpus, "first": skip, "jobs": max_jobs}
    trace = read_jobs(source, format, given, expected=EXPECTED, **limits)
    jobs, worth = _valued(JobColumns.of(trace.jobs), utilities, seed)
    sizes, how = _sizes(jobs, machines, placement)
    about = {
        "jobs": len(jobs),
        "format": trace.format,
        "kept": trace.kept,
        "notes": [*how_it_was_read(trace), *how],
        "placement": placement,
        "utilities": worth,
        "trace": file_reference(file),
        "command": again(context),
        "version": oasis.__version__,
    }
    scenarios = _scenarios(jobs, sizes, placement, *more, many=len(names))
    say_how_it_was_read(trace, is_guessed=format is None)
    if worth:
        console.note(f"utility: {worth}")
    if policies == ",".join(CHOSEN):
        console.note(tables.left_out_note(names))
    rows = cells_of(jobs, scenarios, chosen, each=bool(files))
    records = _run(
        rows, len(jobs), executor, into, is_alone=engine == "local" and processes is None
    )
    found = _found(jobs, scenarios, rows, records, about)
    write_csv(files, jobs, found, rows[0], records)
    if output is not None and _is_page(output):
        _write_page(found, output, style)
    rest = None if _is_page(output) else output
    deliver(found.to_dict, lambda: show(found), as_json=as_json, output=rest)
    return _exit_code(found)


def _valued(jobs: JobColumns, utilities: str | None, seed: int) -> tuple[JobColumns, str | None]:
    """The jobs with what they are worth, and in words how that is known."""
    if utilities == DRAWN:
        return jobs.with_drawn_worth(seed), DRAWN_TEXT.format(seed=seed)
    if utilities == NONE:
        return replace(jobs, worth=None), None
    if jobs.worth is None:
        if utilities == GIVEN:
            raise InputError("--utilities", "expected a table with a column worth or deadline")
        return jobs, None
    return jobs, "what the table says each job is worth, if it ends by its deadline"


def _is_page(output: Path | None) -> bool:
    return output is not None and output.suffix.lower() in PAGE


def _numbers(text: str | None, option: str, *, whole: bool = False) -> list[float] | None:
    """Positive numbers with commas between; None if nothing was given."""
    if text is None:
        return None
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf or (whole and not value.is_integer()):
            kind = "whole numbers" if whole else "numbers"
            raise InputError(option, f"expected {kind} above 0 with commas between", text)
        found.append(value)
    return found


def _sizes(
    jobs: JobColumns, machines: str | None, placement: str
) -> tuple[tuple[int, ...], list[str]]:
    """GPUs of each machine, and a note on them if they are not given."""
    if machines is not None:
        with naming_flags(("machines",)), located_at("machines"):
            return machine_list(machines), []
    sizes = smallest_machines(jobs, SIZE, placement)
    how = "what really happened" if jobs.is_recorded else "runs that begin at submission"
    note = f"machines: {tables.machines_text(sizes)}, the fewest that hold the busiest moment of "
    note += f"{how} (--machines)"
    console.note(note)
    return sizes, [note]


def _scenarios(
    jobs: JobColumns,
    sizes: tuple[int, ...],
    placement: str,
    loads: list[float] | None,
    fewer: list[float] | None,
    *,
    many: int,
) -> list[Scenario]:
    """The jobs as they came on all machines; then the other loads, then fewer machines."""
    from experiments.sweep.whatif import Scenario  # noqa: PLC0415 (needs an extra)

    if loads is None:
        loads = list(LOADS)
        if len(jobs) * many > MANY_RUNS:
            loads = []
            console.note(f"only at the load of the trace: {len(jobs):,} jobs (--loads)")
    made = [Scenario(sizes, placement)]
    made += [Scenario(sizes, placement, load) for load in dict.fromkeys(loads) if load != 1.0]
    for count in dict.fromkeys(fewer or ()):
        if count >= len(sizes):
            raise InputError("--fewer", f"expected fewer than the {_machines(sizes)}", int(count))
        made.append(Scenario(sizes[: len(sizes) - int(count)], placement))
    widest = int(jobs.gpus.max())
    for scenario in made:
        most = sum(scenario.machines) if placement == "pooled" else max(scenario.machines)
        if widest > most:
            hint = f"{_machines(scenario.machines)}; --max-gpus {most} leaves larger jobs out"
            where = "--machines" if scenario is made[0] else "--fewer"
            raise InputError(
                where, f"expected room for the largest job, {widest} GPUs, got {most} with {hint}"
            )
    return made


def _machines(sizes: Sequence[int]) -> str:
    return f"{len(sizes)} machine{'' if len(sizes) == 1 else 's'}"


def _run(
    rows: Sequence[Sequence[Cell]],
    jobs: int,
    executor: Executor,
    into: Path | None,
    *,
    is_alone: bool,
) -> dict[str, CellResult]:
    """Run the cells, those of the first scenario first."""
    from experiments.sweep import ResultStore  # noqa: PLC0415 (needs an extra)
    from experiments.sweep.executors import Here  # noqa: PLC0415
    from experiments.sweep.whatif import run_until_interrupted  # noqa: PLC0415

    cells = [cell for row in rows for cell in row]
    if is_alone and jobs * len(cells) <= QUICK:
        executor = Here()
    store = None if into is None else ResultStore(into)
    with quiet(), WhatIfProgress(cells, jobs, executor) as progress, naming_flags(("scheduler",)):
        return run_until_interrupted(cells, executor, store, progress.done, console.note)


def _found(
    jobs: JobColumns,
    scenarios: Sequence[Scenario],
    rows: Sequence[Sequence[Cell]],
    records: Mapping[str, CellResult],
    about: dict[str, Any],
) -> WhatIf:
    """What the records say, and what really happened; which runs are missing, and why."""
    from experiments.sweep import FAILED  # noqa: PLC0415 (needs an extra)
    from experiments.sweep.task import MEASURED  # noqa: PLC0415

    settings, missing, failed = [], [], []
    for scenario, (bound, *runs) in zip(scenarios, rows, strict=True):
        figures: dict[str, Any] = {}
        if scenario is scenarios[0] and jobs.is_recorded:
            figures[RECORDED] = recorded_figures(jobs, sum(scenario.machines))
        least = records.get(bound.key)
        value = least.figures["mean_completion"] if least and least.status != FAILED else None
        most = least.figures["utility"] if least and least.status != FAILED else None
        setting = Setting(scenario.load, scenario.machines, value, figures, most)
        settings.append(setting)
        for cell in runs:
            record = records.get(cell.key)
            assert cell.policy is not None
            where = (
                f"{cell.policy} ({tables.setting_text(WhatIf(tuple(settings), (), {}), setting)})"
            )
            if record is None:
                missing.append(where)
            elif record.status == FAILED:
                failed.append(f"{where}: {record.error}")
            else:
                row = {
                    name: part
                    for name, part in record.figures.items()
                    if name != "each" and not name.startswith(MEASURED)
                }
                given = cell.policy_options
                figures[cell.policy] = row | entry_of(cell.policy).recorded(
                    given, row["parameters"]
                )
    return WhatIf(tuple(settings), jobs.owners, about | {"missing": missing, "failed": failed})


def _write_page(found: WhatIf, output: Path, style: str | None) -> None:
    from experiments.plotting import drawing_style  # noqa: PLC0415 (needs an extra)
    from experiments.report import report_page, section_of  # noqa: PLC0415 (needs an extra)

    with drawing_style(style):
        section = section_of(output.name, found.to_dict(), None)
    write_page(report_page([section], TITLE), output)
    console.note(f"wrote {output}")


def _exit_code(found: WhatIf) -> int:
    for failure in found.about["failed"]:
        console.note(f"failed: {failure}")
    if found.missing:
        console.note(f"interrupted: without {', '.join(found.missing)}")
        return LIMIT
    return FAILED_CELLS if found.about["failed"] else DONE
