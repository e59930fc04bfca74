"""``oasis figure``: reproduce a figure of a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import oasis
from experiments.cli import console
from experiments.cli import options as flags
from experiments.cli.commands.sweep import saying_what_is_kept, sweep_progress
from experiments.cli.exit_codes import DONE, FAILED_CELLS, LIMIT
from experiments.cli.files import DIRECTORY
from experiments.cli.progress import counter
from experiments.cli.results import deliver
from experiments.evaluation.policies import FLOOR, POLICIES, PRINTED_FLOOR, OasisOptions
from experiments.options import options_of
from oasis.model.choices import choice
from oasis.online.prices import DEFAULT_MIN_UTILITY_FRACTION
from oasis.workloads import PRESETS

if TYPE_CHECKING:
    from experiments.figures import DirectFigure, FigureSettings, PublishedFigure, Reproduction

SETTINGS = ("seeds", "first_seed", "preset", "policies", "time_limit", "no_improvement", "trace")
TIME_LIMIT = 120.0  # seconds
FLAGS = {  # of settings whose names mean something else on the command line
    "scale": "--size",
    "jobs": "--job-counts",
    "servers": "--servers-per-group",
    "policy_options": flags.SET,
}
FLOORS = replace(
    options_of(OasisOptions)[FLOOR],
    default=f"{PRINTED_FLOOR:g} and {DEFAULT_MIN_UTILITY_FRACTION:g}, side by side",
)


def _figures() -> dict[str, PublishedFigure | DirectFigure]:
    from experiments.figures import EXPERIMENTS, FIGURES  # noqa: PLC0415 (needs an extra)

    return {**FIGURES, **EXPERIMENTS}


def _files(directory: Path, arguments: Mapping[str, Any]) -> list[Path]:
    """Return the paths in `directory` that the files of a figure may have."""
    endings = (".parquet", "-runs.csv", ".csv", f".{arguments['form']}")
    return [directory / f"{arguments['name']}{ending}" for ending in endings]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Settings of a figure, by the names of `FigureSettings`."""

    seeds: Annotated[
        int | None, "Instances of each kind, one per seed. [default: the figure's]"
    ] = None
    first_seed: Annotated[int, "The first of these seeds."] = 0
    scale: Annotated[
        float, "Multiply numbers of jobs and servers, for a quick look.", {"flag": FLAGS["scale"]}
    ] = 1.0
    jobs: Annotated[
        Any,
        "Numbers of jobs, separated by commas. [default: the paper's]",
        flags.read_by(flags.numbers(int, "counts"), "N,...") | {"flag": FLAGS["jobs"]},
    ] = None
    servers: Annotated[
        int | None,
        "Machines of each group (Figs. 3, 4, 6). [default: 50]",
        {"flag": FLAGS["servers"]},
    ] = None
    preset: Annotated[
        str | None, "Of the jobs. [default: the figure's]", {"autocompletion": flags.among(PRESETS)}
    ] = None
    policies: Annotated[
        Any,
        "Policies to compare, separated by commas. [default: all]",
        flags.policies_of(tuple(POLICIES)),
    ] = None
    trace: Annotated[
        Path | None,
        "Jobs of controllers, deadlines: a CSV as `oasis replay` reads. [default: drawn]",
    ] = None
    time_limit: Annotated[
        float | None, flags.LIMIT_TEXT.format("2 minutes; Fig. 5 alone"), flags.TIME
    ] = None
    no_improvement: flags.NoImprovement = None

    def given(self) -> dict[str, Any]:
        """Return the settings as a dict for `figure.settings`, with the default time limit."""
        trace, limit = self.trace, self.time_limit
        return asdict(self) | {
            "trace": None if trace is None else str(trace),
            "time_limit": TIME_LIMIT if limit is None else limit,
        }


def command(
    *,
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=flags.among(_figures),
            help="fig3 to fig6, fig8, fig9, dragon-6 to dragon-10, kod2-4 to kod2-8, specon-1 to "
            "specon-12, specon-table3, specon-sensitivity, priority-queue, controllers, "
            "deadlines, floor, commitment. Left out, all are listed.",
        ),
    ] = None,
    list_all: Annotated[bool, "List the figures, as without NAME.", {"flag": "--list"}] = False,
    output: Annotated[
        Path, "Directory for data and picture.", replace(DIRECTORY, files=_files)
    ] = Path("figures"),
    sizes: Sizes,
    oasis_options: Annotated[dict[str, Any], flags.Flags({FLOOR: FLOORS})],
    assignments: flags.Set = None,
    form: Annotated[
        Literal["svg", "png", "pdf"], "Of the picture.", {"flag": "--picture-format"}
    ] = "svg",
    style: flags.Style = None,
    as_json: flags.AsJson = False,
) -> int:
    """Reproduce a figure of a paper: the runs, a table and a picture.

    Writes NAME.parquet (every run), NAME.csv (means with 95 % confidence intervals beside the
    published numbers) and the picture. Started again, it continues where it stopped. The figures of
    other papers take seconds to minutes, write NAME-runs.csv instead, and begin anew.

    Example: oasis figure fig3 --size 0.1 --seeds 2
    """
    from experiments.figures import PublishedFigure, reproduce  # noqa: PLC0415 (needs an extra)

    figures = _figures()
    is_asked = any(flags.is_given(context, each) for each in context.params if each != "as_json")
    if list_all or (name is None and not is_asked):
        # A title without the number of the figure, if it begins with one.
        titles = {one.name: one.title.partition(": ")[2] or one.title for one in figures.values()}
        rows = [(name, title, str(figures[name].seeds)) for name, title in titles.items()]
        listed = [dict(zip(("name", "title", "seeds"), row, strict=True)) for row in rows]
        columns = console.headings("name", "what it shows", ">seeds")
        deliver(listed, lambda: console.print_rows(columns, rows), as_json=as_json)
        return DONE
    figure = figures[choice(name or "nothing", figures, "NAME")]
    arguments = sizes.given()
    names = arguments["policies"] or tuple(POLICIES)
    chosen = flags.choose_options(names, assignments, oasis=oasis_options)
    set_options = {policy: options for policy, options in chosen.items() if options}
    with flags.naming_flags(SETTINGS, **FLAGS):
        settings = figure.settings(policy_options=set_options, **arguments)
        steps = figure.steps(settings)  # refuses what this figure cannot vary
    is_swept = isinstance(figure, PublishedFigure)
    with (
        saying_what_is_kept(is_kept=is_swept) as reached,
        sweep_progress(reached) if is_swept else counter(figure.name, steps) as show,
    ):
        step: Callable[..., None] = show
        result = reproduce(
            figure,
            settings,
            output,
            suffix=f".{form}",
            style=style,
            on_progress=step,
            on_note=console.note,
            on_step=step,
        )
    _report(figure, settings, result, as_json=as_json)
    if result.errors:
        return FAILED_CELLS
    return LIMIT if result.unproven else DONE


def _report(
    figure: PublishedFigure | DirectFigure,
    settings: FigureSettings,
    result: Reproduction,
    *,
    as_json: bool,
) -> None:
    from experiments.figures.figure import for_people  # noqa: PLC0415 (needs an extra)

    document = {
        "figure": figure.name,
        "title": figure.title,
        "settings": settings.to_dict(),
        "rows": result.rows,
        "runs": result.cells,
        "errors": list(result.errors),
        "unproven": result.unproven,
        "files": [str(path) for path in result.files],
        "version": oasis.__version__,
    }
    columns = [(name, name not in ("policy", "kind", "model")) for name in figure.shown.values()]
    table = [[for_people(row, name) for name in figure.shown] for row in result.rows]
    show = partial(console.print_rows, columns, table, title=figure.title)
    deliver(document, show, as_json=as_json)
    for error in dict.fromkeys(result.errors):
        console.note(f"{result.errors.count(error)} runs failed and are left out: {error}")
    if result.unproven:
        console.note(f"{result.unproven} ratios are not proven and are left out")
    console.note(f"wrote {', '.join(map(str, result.files)) or 'nothing'}")
    if result.unwritten:
        raise oasis.OasisError("; ".join(f"{e.filename}: {e.strerror}" for e in result.unwritten))
