"""``oasis whatif``: which scheduler would serve the jobs of a trace best."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console
from experiments.cli.commands.replay import (
    MACHINES,
    MACHINES_HELP,
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
    read_machines,
    say_how_it_was_read,
)
from experiments.cli.commands.sweep import engine_of, quiet, sweep_progress
from experiments.cli.exit_codes import DONE, FAILED_CELLS, LIMIT
from experiments.cli.files import CSV, DIRECTORY, PAGE, PAGE_OR_JSON, READ, written
from experiments.cli.options import (
    AsJson,
    Chosen,
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
from experiments.cli.results import again, deliver, write_page
from experiments.evaluation import whatif_tables as texts
from experiments.evaluation.comparison import CHOSEN, PLAIN, left_out_note
from experiments.evaluation.machines import machines_text
from experiments.evaluation.policies import LINE, entry_of
from experiments.evaluation.provenance import file_reference
from experiments.evaluation.tables import duration_text
from experiments.evaluation.whatif_result import (
    GOAL,
    PARTS,
    RECORDED,
    Bisection,
    Goal,
    Setting,
    WhatIf,
)
from oasis.model.errors import InputError, located_at
from oasis.model.files import write_text
from oasis.traces.plain import EXPECTED, FORMATS
from oasis.traces.table import read_trace, source_of

if TYPE_CHECKING:
    import pandas as pd

    from experiments.evaluation.whatif import Scenario
    from experiments.sweep import Cell, CellResult, Executor
    from oasis.traces.plain_job import PlainJob

SIZE = 8  # GPUs of a machine, unless the user says otherwise
LOADS = (0.8, 1.2, 1.5)
MANY_RUNS = 200_000  # jobs times policies, from which other loads are run only if asked for
QUICK = 20_000  # jobs times runs that take less time than to start processes
LONG = 20.0  # seconds that are said beforehand
GIVEN, DRAWN, NONE = UTILITIES = ("given", "drawn", "none")
DRAWN_TEXT = (
    "drawn with seed {seed} as `oasis import` does: priority / (1 + exp(decay (d - target))) of "
    "the time d from submission to end, in units of 30 min; priority 1 to 100, decay 0 (10 % of "
    "the jobs), 0.01 to 1 (55 %) or 4 to 6 (35 %), target 1.5 x duration, at least 1"
)
TITLE = "Which scheduler would serve these jobs best?"
# Of no use to whoever wants the same result.
NOT_AGAIN = ("as_json", "into", "processes", "engine", "scheduler", "table")


def _csv_files(prefix: Path | None) -> tuple[Path, Path] | None:
    """The files of jobs and of owners."""
    if prefix is None:
        return None
    begin = "" if prefix.is_dir() else f"{prefix.name}-"
    folder = prefix if prefix.is_dir() else prefix.parent
    return folder / f"{begin}jobs.csv", folder / f"{begin}owners.csv"


CSV_FILES = written(CSV, lambda prefix, _: _csv_files(prefix) or ())


@with_options(READING, "reading", only_given=True)
def command(
    context: typer.Context,
    file: TraceFile,
    format: TraceFormat = None,
    machines: Annotated[
        str | None,
        typer.Option(
            metavar=MACHINES,
            help=MACHINES_HELP.format(f"the fewest of {SIZE} GPUs that hold the busiest moment"),
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
        ),
    ] = None,
    utilities: Annotated[
        str | None,
        typer.Option(
            help=f"What jobs are worth: {', '.join(UTILITIES)}. given: by the columns worth and "
            "deadline of a table (--map); drawn: the sigmoids that `oasis import` draws. [default: "
            "given, where the table has such a column]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --utilities drawn.", min=0)] = 0,
    fewer: Annotated[
        str | None,
        typer.Option(
            help="Also with this many machines fewer, such as 1,2; the last of the list are "
            "removed. [default: none]",
        ),
    ] = None,
    more: Annotated[
        str | None,
        typer.Option(
            help="Also with this many machines more, each like the last of the list. "
            "[default: none]",
        ),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL",
            help=f"Find the fewest machines for each policy: {GOAL.removeprefix('expected ')}. "
            "Wait: without GPUs; turnaround: from submission to end.",
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
    chosen = choose_options(
        known_policies(policies, "--policies", PLAIN), assignments, shared={LINE: line}
    )
    placement = known(placement, ("pooled", "whole"), "--placement")
    format = None if format is None else known(format, FORMATS, "--format")
    utilities = None if utilities is None else known(utilities, UTILITIES, "--utilities")
    if is_given(context, "seed") and utilities != DRAWN:
        raise InputError("--seed", "expected --utilities drawn beside it")
    is_page = output is not None and output.suffix.lower() in PAGE
    if style is not None and not is_page:
        raise InputError("--style", "expected -o PAGE.html beside it")
    with located_at("--goal"):
        wanted = None if goal is None else Goal.read(goal)
    numbers = [_numbers(loads, "--loads")]
    numbers += [_numbers(t, f"--{n}", whole=True) for n, t in (("fewer", fewer), ("more", more))]
    files = _csv_files(table)
    runner = Runner(
        engine_of(engine, scheduler, processes), into, processes is None and engine == "local"
    )
    with located_at(source=file):
        source = source_of(file, read_trace(file))
    given = {"virtual_cluster": virtual_cluster, **reading}
    limits = {"max_gpus": max_gpus, "first": skip, "jobs": max_jobs}
    trace = read_jobs(source, format, given, expected=EXPECTED, **limits)
    jobs, worth = _valued(trace.jobs, utilities, seed)
    sizes, how = _sizes(jobs, machines, placement)
    scenarios = _scenarios(jobs, sizes, placement, *numbers, many=len(chosen))
    say_how_it_was_read(trace, is_guessed=format is None)
    if worth:
        console.note(f"utility: {worth}")
    if policies == ",".join(CHOSEN):
        console.note(left_out_note(list(chosen)))
    about = {
        "format": trace.format,
        "kept": trace.kept,
        "notes": [*how_it_was_read(trace), *how],
        "placement": placement,
        "utilities": worth,
        "trace": file_reference(file),
        "command": again(context, "oasis whatif", NOT_AGAIN),
        "version": oasis.__version__,
    }
    found, each = _compared(scenarios, chosen, runner, keep_each=bool(files))
    if wanted is not None and not found.missing:
        found = _with_goal(found, wanted, scenarios[0], chosen, runner)
    found = replace(found, about={"jobs": len(jobs), **about, **found.about})
    _write_csv(files, jobs, found, each)
    if output is not None and is_page:
        _write_page(found, output, style)
    rest = None if is_page else output
    deliver(found.to_dict, lambda: show(found), as_json=as_json, output=rest)
    return _exit_code(found)


def _valued(
    plain: Sequence[PlainJob], utilities: str | None, seed: int
) -> tuple[pd.DataFrame, str | None]:
    """The jobs with what they are worth, and in words how that is known."""
    from experiments.evaluation import whatif  # noqa: PLC0415 (needs an extra)

    jobs = whatif.jobs_frame(plain)
    if utilities == DRAWN:
        return whatif.with_drawn_worth(jobs, seed), DRAWN_TEXT.format(seed=seed)
    if utilities == NONE:
        return jobs.drop(columns=whatif.WORTH, errors="ignore"), None
    if whatif.worth_of(jobs) is None:
        if utilities == GIVEN:
            raise InputError("--utilities", "expected a table with a column worth or deadline")
        return jobs, None
    return jobs, "what the table says each job is worth, if it ends by its deadline"


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
    return list(dict.fromkeys(found))


def _sizes(
    jobs: pd.DataFrame, machines: str | None, placement: str
) -> tuple[tuple[int, ...], list[str]]:
    """GPUs of each machine, and a note on them if they are not given."""
    from experiments.evaluation import whatif  # noqa: PLC0415 (needs an extra)

    if machines is not None:
        return read_machines(machines), []
    sizes = whatif.smallest_machines(jobs, SIZE, placement)
    how = "what really happened" if whatif.is_recorded(jobs) else "runs that begin at submission"
    note = f"machines: {machines_text(sizes)}, the fewest that hold the busiest moment of "
    note += f"{how} (--machines)"
    console.note(note)
    return sizes, [note]


def _scenarios(
    jobs: pd.DataFrame,
    sizes: tuple[int, ...],
    placement: str,
    loads: list[float] | None,
    fewer: list[float] | None,
    more: list[float] | None,
    *,
    many: int,
) -> list[Scenario]:
    """The jobs as they came on all machines; then other loads, then fewer machines, then more."""
    from experiments.evaluation.whatif import Scenario, digest  # noqa: PLC0415 (needs an extra)

    if loads is None:
        loads = list(LOADS)
        if len(jobs) * many > MANY_RUNS:
            loads = []
            console.note(f"only at the load of the trace: {len(jobs):,} jobs (--loads)")
    first, there = Scenario(jobs, sizes, placement, sha256=digest(jobs)), len(sizes)
    made = [first, *(replace(first, load=load) for load in loads if load != 1.0)]
    for count in fewer or ():
        if count >= there:
            raise InputError("--fewer", f"expected fewer than the {_machines(sizes)}", int(count))
    made += [first.at(there - int(count)) for count in fewer or ()]
    made += [first.at(there + int(count)) for count in more or ()]
    widest = int(jobs.gpus.max())
    for one in made:
        if widest > one.widest:
            hint = f"{_machines(one.machines)}; --max-gpus {one.widest} leaves larger jobs out"
            room = f"expected room for the largest job, {widest} GPUs, got {one.widest} with {hint}"
            raise InputError("--machines" if one is first else "--fewer", room)
    return made


def _machines(sizes: Sequence[int]) -> str:
    return f"{len(sizes)} machine{'' if len(sizes) == 1 else 's'}"


class Runner:
    """Runs cells, says how long they take, and keeps them in a folder if there is one.

    Few runs are quicker here than in other processes; `is_alone` allows that.
    """

    def __init__(self, executor: Executor, into: Path | None, is_alone: bool) -> None:
        self._executor, self._into, self._is_alone = executor, into, is_alone

    def run(self, cells: Sequence[Cell]) -> dict[str, CellResult]:
        """Records of the cells by key; after Ctrl-C of those that are done."""
        from experiments.sweep import ResultStore  # noqa: PLC0415 (needs an extra)
        from experiments.sweep.executors import Here  # noqa: PLC0415
        from experiments.sweep.run import run_until_interrupted  # noqa: PLC0415
        from experiments.sweep.whatif import scenario_of  # noqa: PLC0415

        executor = self._executor
        if len(scenario_of(cells[0]).trace) * len(cells) > QUICK:
            say_how_long(cells, getattr(executor, "jobs", 1))
        elif self._is_alone:
            executor = Here()
        store = None if self._into is None else ResultStore(self._into)
        with quiet(), sweep_progress() as show, naming_flags(("scheduler",)):
            return run_until_interrupted(cells, executor, store, show, console.note)


def say_how_long(cells: Sequence[Cell], workers: int) -> None:
    """Say about how long the cells take, if that is long."""
    from experiments.evaluation.whatif import expected_seconds  # noqa: PLC0415
    from experiments.sweep.cells import PolicyMaker  # noqa: PLC0415 (needs an extra)
    from experiments.sweep.whatif import scenario_of  # noqa: PLC0415

    expected = expected_seconds(
        (scenario_of(one), one.policy, PolicyMaker(one, None)) for one in cells
    )
    cores = os.cpu_count() or 1
    workers = cores if workers == -1 else max(1, min(workers, cores))
    if expected / workers > LONG:
        about = duration_text(round(expected / workers, -1))
        note = f"{len(cells)} runs, about {about} on {workers} core{'' if workers == 1 else 's'}"
        console.note(f"{note}: an estimate from short runs, and from the queue that jobs will meet")


def _row(cell: Cell, record: CellResult) -> dict[str, Any]:
    """The figures of a policy for the result, and how it is made again."""
    from experiments.sweep.task import MEASURED  # noqa: PLC0415 (needs an extra)

    row: dict[str, Any] = {
        name: part
        for name, part in record.figures.items()
        if name != "each" and not name.startswith(MEASURED)
    }
    return row | entry_of(str(cell.policy)).recorded(cell.policy_options, row["parameters"])


def _compared(
    scenarios: Sequence[Scenario], chosen: Chosen, runner: Runner, *, keep_each: bool
) -> tuple[WhatIf, dict[str, Any]]:
    """What all runs say, and what really happened; times of the jobs under each policy."""
    from experiments.evaluation.whatif import is_recorded, recorded_figures  # noqa: PLC0415
    from experiments.sweep import FAILED  # noqa: PLC0415 (needs an extra)
    from experiments.sweep.whatif import bound_cell, run_cell  # noqa: PLC0415

    first, *_ = scenarios
    bounds = [bound_cell(one) for one in scenarios]
    runs = [
        [run_cell(one, *policy, each=keep_each and one is first) for policy in chosen.items()]
        for one in scenarios
    ]
    cells = [cell for bound, row in zip(bounds, runs, strict=True) for cell in (bound, *row)]
    records = runner.run(cells)
    settings: list[Setting] = []
    lost: dict[str, list[str]] = {"missing": [], "failed": []}
    each: dict[str, Any] = {}
    for one, bound, row in zip(scenarios, bounds, runs, strict=True):
        rows = {}
        if one is first and is_recorded(one.jobs):
            rows[RECORDED] = recorded_figures(one.jobs, one.gpus)
        known = records[bound.key].figures if bound.key in records else {}
        ends = known.get("mean_completion"), rows, known.get("utility")
        settings.append(Setting(one.load, one.machines, *ends, *one.offered))
        where = texts.setting_text(WhatIf(tuple(settings), (), {}), settings[-1])
        for cell in row:
            record = records.get(cell.key)
            if record is None:
                lost["missing"].append(f"{cell.policy} ({where})")
            elif record.status == FAILED:
                lost["failed"].append(f"{cell.policy} ({where}): {record.error}")
            else:
                rows[str(cell.policy)] = _row(cell, record)
                if "each" in record.figures:
                    each[str(cell.policy)] = record.figures["each"]
    return WhatIf(tuple(settings), tuple(first.jobs.owner.cat.categories), lost), each


def _with_goal(
    found: WhatIf, goal: Goal, first: Scenario, chosen: Chosen, runner: Runner
) -> WhatIf:
    """Search the fewest machines of each policy; all policies take a step at the same time."""
    from experiments.evaluation.whatif import busiest_moment  # noqa: PLC0415 (needs an extra)
    from experiments.sweep import FAILED  # noqa: PLC0415
    from experiments.sweep.whatif import run_cell  # noqa: PLC0415

    there, jobs = len(first.machines), first.jobs
    least = next(n for n in range(1, there + 1) if first.at(n).widest >= jobs.gpus.max())
    # With so many, more of the last kind, no job would wait if it could have any GPUs.
    lacking = max(0, busiest_moment(jobs.assign(started=math.nan)) - first.gpus)
    most = there + -(-lacking // first.machines[-1])
    searches = {name: Bisection(goal, least, most) for name in chosen}
    lost = {name: list(found.about[name]) for name in ("missing", "failed")}
    while steps := {name: one.next for name, one in searches.items() if one.next is not None}:
        console.note(f"goal: {', '.join(f'{name} on {n}' for name, n in steps.items())} machines")
        cells = {name: run_cell(first.at(n), name, chosen[name]) for name, n in steps.items()}
        records = runner.run(list(cells.values()))
        for name, cell in cells.items():
            record = records.get(cell.key)
            if record is not None and record.status != FAILED:
                searches[name].tried[steps[name]] = goal.value(record.figures)
                continue
            del searches[name]  # a search that has not ended says nothing
            where = f"{name} (--goal, {steps[name]} machines)"
            if record is None:
                lost["missing"].append(where)
            else:
                lost["failed"].append(f"{where}: {record.error}")
        if lost["missing"]:
            searches = {name: one for name, one in searches.items() if one.next is None}
    policies = {name: one.to_dict() for name, one in searches.items()}
    said = {"text": goal.text, "least": least, "most": most, "policies": policies}
    return replace(found, about={**found.about, **lost, "goal": said})


def show(found: WhatIf) -> None:
    """Print the answer, the tables and the notes."""
    for sentence in texts.answer(found):
        console.print_notes([sentence])
    for title, columns, rows in texts.tables(found):
        # A title begins with an empty line, so that one sees where a table ends.
        console.print_rows(columns, rows, f"\n{title}")
    console.print_text("")
    console.print_notes(texts.notes(found))


def _write_csv(
    files: tuple[Path, Path] | None, jobs: pd.DataFrame, found: WhatIf, each: dict[str, Any]
) -> None:
    """Write a row for each job under each policy, and for each owner in each setting.

    Jobs are those of the first setting; times are in seconds.
    """
    if files is None:
        return
    import pandas as pd  # noqa: PLC0415 (needs an extra)

    from experiments.evaluation.whatif import WORTH, all_jobs  # noqa: PLC0415

    worth = ["utility"] if WORTH[0] in jobs else []
    columns = ["policy", "job", "owner", "gpus", "submitted", "duration"]
    columns += ["started", "waiting", "completion", *worth]
    rows = all_jobs(jobs, {name: pd.DataFrame(times) for name, times in each.items()})
    write_text(files[0], rows[columns].to_csv(index=False))
    parts = [
        pd.DataFrame(row["by_owner"]).assign(
            load=one.load,
            machines=len(one.machines),
            gpus=one.gpus,
            policy=name,
            owner=found.owners,
        )
        for one in found.settings
        for name, row in one.policies.items()
    ]
    columns = ["load", "machines", "gpus", "policy", "owner", *PARTS, *worth]
    write_text(files[1], pd.concat(parts)[columns].to_csv(index=False))
    console.note(f"wrote {files[0]} and {files[1]}")


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
