"""``oasis whatif``: which scheduler would serve the jobs of a trace best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import oasis
from experiments.cli import console, files, options
from experiments.cli.commands import replay
from experiments.cli.commands.sweep import engine_of, sweep_progress
from experiments.cli.exit_codes import DONE, FAILED_CELLS, LIMIT
from experiments.cli.results import NOT_AGAIN as RESULT_ONLY
from experiments.cli.results import again, deliver, drawing, write_page
from experiments.evaluation import whatif_result as texts
from experiments.evaluation.comparison import CHOSEN, PLAIN, left_out_note
from experiments.evaluation.policies import LINE
from experiments.evaluation.provenance import file_reference
from experiments.evaluation.whatif_result import DRAWN, GOAL, UTILITIES, Goal, WhatIf
from experiments.machines import MOST_MACHINES
from oasis.model.choices import choice
from oasis.model.errors import located_at
from oasis.model.files import write_text
from oasis.traces.plain import EXPECTED
from oasis.traces.table import read_source

if TYPE_CHECKING:
    import pandas as pd

    from experiments.sweep import Cell, CellResult, Executor

SIZE = 8  # GPUs of a machine, unless the user says otherwise
FEWEST = f"the fewest of {SIZE} GPUs that hold the busiest moment"
LOADS = (0.8, 1.2, 1.5)
MANY_RUNS = 200_000  # jobs times policies, from which other loads are run only if asked for
QUICK = 20_000  # jobs times runs that take less time than to start processes
KEPT = {"rich_help_panel": "What is kept"}
TITLE = "Which scheduler would serve these jobs best?"
# Of no use to whoever wants the same result.
NOT_AGAIN = (*RESULT_ONLY, "into", "processes", "engine", "scheduler", "table")


def _csv_files(prefix: Path) -> tuple[Path, Path]:
    """Return the paths of the CSV files of jobs and of owners; `prefix` may be a directory."""
    folder, begin = (prefix, "") if prefix.is_dir() else (prefix.parent, f"{prefix.name}-")
    return folder / f"{begin}jobs.csv", folder / f"{begin}owners.csv"


CSV_FILES = replace(files.CSV, files=lambda prefix, _: () if prefix is None else _csv_files(prefix))


ASKED = {"rich_help_panel": "What is asked"}
LOAD = options.read_by(options.numbers(float, "numbers above 0"), "NUMBER,...")
WHOLE = f"whole numbers above 0, at most {MOST_MACHINES:,},"
MACHINES = options.read_by(options.numbers(int, WHOLE, MOST_MACHINES), "N,...")


@dataclass(frozen=True, slots=True)
class Asked:
    """Flags for what is run beside the jobs as they came on the machines that there are."""

    loads: Annotated[
        Any,
        "Also at these loads: at 1.5, the times between submissions are divided by 1.5. "
        "[default: 0.8,1,1.2,1.5; 1 if there are many jobs]",
        LOAD | ASKED,
    ] = None
    fewer: Annotated[
        Any,
        "Also with this many machines fewer, of the last ones, such as 1,2.",
        MACHINES | ASKED,
    ] = None
    more: Annotated[
        Any,
        "Also with this many machines more, each like the last, such as 1,2.",
        MACHINES | ASKED,
    ] = None
    goal: Annotated[
        str | None,
        "Find the fewest machines for each policy: "
        f"{GOAL.removeprefix('expected ').replace('|', ' | ')}; wait: without GPUs; "
        "turnaround: from submission to end.",
        ASKED,
    ] = None
    utilities: Annotated[
        str | None,
        f"What jobs are worth: {', '.join(UTILITIES)}; given: by the columns worth and "
        "deadline of a table (--map); drawn: the sigmoids that `oasis import` draws. [default: "
        "given, where the table has such a column]",
        ASKED
        | {
            "callback": lambda name: (
                name if name is None else choice(name, UTILITIES, "--utilities")
            )
        },
    ] = None


def command(
    *,
    context: typer.Context,
    file: replay.TraceFile,
    format: replay.TraceFormat = None,
    machines: Annotated[
        str | None, replay.MACHINES_HELP.format(FEWEST), {"metavar": replay.MACHINES}
    ] = None,
    placement: replay.Placement = "pooled",
    policies: Annotated[
        Any,
        f"Separated by commas, of: {', '.join(PLAIN)}. [default: {', '.join(CHOSEN)}]",
        options.policies_of(PLAIN),
    ] = None,
    line: options.PolicyLine = None,
    assignments: options.Set = None,
    seed: Annotated[int, "Seed of --utilities drawn.", {"metavar": "N", "min": 0}] = 0,
    asked: Asked,
    reading: replay.Reading,
    selection: replay.Selection,
    output: Annotated[
        Path | None,
        "Also write a page (.html), or JSON; -: print JSON.",
        KEPT,
        files.PAGE_OR_JSON,
    ] = None,
    table: Annotated[
        Path | None,
        "Also write PREFIX-jobs.csv and PREFIX-owners.csv.",
        {"flag": "--csv", "metavar": "PREFIX"} | KEPT,
        CSV_FILES,
    ] = None,
    into: Annotated[
        Path | None,
        "Keep each finished run here: the same command then continues after an "
        "interruption. Without it, only the printed result is kept.",
        {"flag": "--records", "metavar": "DIR"} | KEPT,
        files.DIRECTORY,
    ] = None,
    workers: options.Workers,
    style: options.Style = None,
    as_json: options.AsJson = False,
) -> int:
    """Say which scheduler would serve the jobs of a trace best, and how much any could gain.

    Each policy runs the same jobs on the same machines; where TRACE says when jobs started, what
    really happened stands beside them. A lower bound on the mean holds for every scheduler. TRACE
    is what `oasis replay` reads. Preemption costs nothing here, and each job takes as long as it
    really did.

    Ctrl-C prints the result of the runs that are done, and says which are missing; the exit code is
    3. Exit code 4: a policy failed.

    Example: oasis whatif jobs.csv --machines 16x8 --loads 0.8,1.2 -o page.html
    """
    chosen = options.choose_options(policies or CHOSEN, assignments, shared={LINE: line})
    is_page = output is not None and output.suffix.lower() in files.PAGE
    if asked.utilities != DRAWN:
        options.refuse_given(context, ("seed",), "expected --utilities drawn beside it")
    if not is_page:
        options.refuse_given(context, ("style",), "expected -o PAGE.html beside it")
    with located_at("--goal"):
        goal = None if asked.goal is None else Goal.read(asked.goal)
    is_alone = workers.processes is None and workers.engine == "local"
    run = partial(_run, engine_of(workers), into, is_alone)
    with located_at(source=file):
        source = read_source(file)
    trace = selection.read(source, format, reading, EXPECTED)
    from experiments.evaluation import whatif as frames  # noqa: PLC0415 (needs an extra)
    from experiments.sweep import whatif as cells  # noqa: PLC0415 (needs an extra)

    jobs = frames.jobs_frame(trace.frame)
    with options.naming_flags(("utilities", "machines", "fewer")):
        jobs, worth = frames.valued(jobs, asked.utilities, seed)
        smallest = partial(frames.smallest_machines, jobs, SIZE, placement, trace.held)
        sizes, how = smallest() if machines is None else (replay.read_machines(machines), "")
        first = replace(frames.Scenario.of(jobs, sizes, placement), held=trace.held)
        at = asked.loads or (() if len(jobs) * len(chosen) > MANY_RUNS else LOADS)
        scenarios = frames.scenarios(first, at, asked.fewer or (), asked.more or ())
    replay.note_held(trace, sizes)
    only = f"only at the load of the trace: {len(jobs):,} jobs (--loads)" if not at else ""
    left_out = "" if policies else left_out_note(CHOSEN)
    said = replay.say_how_it_was_read(trace, is_guessed=format is None)
    for note in filter(None, (how, only, worth and f"utility: {worth}", left_out)):
        console.note(note)
    result, each = cells.compared(scenarios, chosen, run, each=table is not None)
    if goal is not None and not result.missing:
        result = cells.with_goal(result, goal, first, chosen, run, console.note)
    about = {
        "jobs": len(jobs),
        "format": trace.format,
        "kept": trace.kept,
        "notes": list(filter(None, (*said, how))),
        "placement": placement,
        "utilities": worth,
        "trace": file_reference(file),
        "command": again(context, NOT_AGAIN),
        "version": oasis.__version__,
    }
    result = replace(result, about={**about, **result.about})
    if table is not None:
        _write_csv(_csv_files(table), frames.csv_tables(result, jobs, each))
    if output is not None and is_page:
        _write_page(result, output, style)
    document_output = None if is_page else output
    deliver(result.to_dict, lambda: show(result), as_json=as_json, output=document_output)
    return _exit_code(result, into)


def _run(
    executor: Executor, into: Path | None, is_alone: bool, cells: Sequence[Cell]
) -> dict[str, CellResult]:
    """Run the cells; return their results by key, recorded in `into`; after Ctrl-C those done."""
    from experiments.sweep import ResultStore  # noqa: PLC0415 (needs an extra)
    from experiments.sweep.executors import Here  # noqa: PLC0415
    from experiments.sweep.run import run_until_interrupted  # noqa: PLC0415

    scenario: Any = cells[0].source
    # Few runs are quicker here than in other processes.
    if is_alone and len(scenario.trace) * len(cells) <= QUICK:
        executor = Here()
    store = None if into is None else ResultStore(into)
    with sweep_progress() as show:
        return run_until_interrupted(cells, executor, store, show, console.note)


def show(result: WhatIf) -> None:
    """Print the answer, the tables and the notes."""
    for sentence in texts.answer(result):
        console.print_notes([sentence])
    for title, columns, rows in texts.tables(result):
        # A title begins with an empty line, so that one sees where a table ends.
        console.print_rows(columns, rows, f"\n{title}")
    console.print_text("")
    console.print_notes(texts.notes(result))


def _write_csv(paths: Sequence[Path], tables: Sequence[pd.DataFrame]) -> None:
    for path, frame in zip(paths, tables, strict=True):
        write_text(path, frame.to_csv(index=False))
    console.note(f"wrote {' and '.join(map(str, paths))}")


def _write_page(result: WhatIf, output: Path, style: str | None) -> None:
    from experiments.report import report_page, section_of  # noqa: PLC0415 (needs an extra)

    with drawing(style):
        section = section_of(output.name, result.to_dict(), None)
    write_page(report_page([section], TITLE), output)
    console.note(f"wrote {output}")


def _exit_code(result: WhatIf, into: Path | None) -> int:
    for failure in result.about["failed"]:
        console.note(f"failed: {failure}")
    if result.missing:
        advice = "the runs that are done are not kept (--records DIR keeps them)"
        advice = advice if into is None else f"{into} keeps the others: the same command goes on"
        console.note(f"interrupted: without {', '.join(result.missing)}; {advice}")
        return LIMIT
    return FAILED_CELLS if result.about["failed"] else DONE
