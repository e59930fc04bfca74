"""A figure of a paper: its runs, its data, and how it is drawn."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.evaluation.intervals import interval_of
from experiments.evaluation.policies import FLOOR, OASIS
from experiments.figures.settings import FORMS, FORMS_REMARK, RRH_REMARK, FigureSettings
from experiments.plotting import FORMATS
from experiments.plotting.canvas import (
    SMALL,
    drawing_style,
    fill,
    hatch,
    ink,
    marker,
    new_figure,
)
from experiments.plotting.files import save
from experiments.sweep import SweepProgress, UnwrittenSweepError, expand, run_sweep, sweep_config
from experiments.sweep.store import DONE
from oasis.model.errors import InputError, OasisError
from oasis.model.files import check_writable, naming, write_text
from oasis.scheduling import Allocation, Policy
from oasis.simulator import Workload, elastic_from_dict, replay
from oasis.simulator.state import JobProgress

Row = dict[str, Any]


def groups(cells: Iterable[Row], *keys: str) -> dict[tuple[Hashable, ...], list[Row]]:
    """Group cells by their values of `keys`, in order of appearance."""
    by_key: dict[tuple[Hashable, ...], list[Row]] = {}
    for cell in cells:
        values = (cell[key] for key in keys)
        key = tuple(tuple(value) if isinstance(value, list) else value for value in values)
        by_key.setdefault(key, []).append(cell)
    return by_key


def interval(values: Sequence[float], name: str, scale: str = "any") -> Row:
    """Columns `name`, `name_low`, `name_high`: mean and 95 % interval; of two values, both ends."""
    # Of fractions the interval is cut off at 0 and 1, of an amount, which cannot be negative, at 0.
    # Means of ratios of 1 and more are geometric, and the interval is that of the logarithms.
    ends = interval_of(values, scale).to_dict()
    if len(values) == 2 and ends["low"] is not None:
        # Student's t of two values is more than six times as wide as their distance on each side.
        ends |= {"low": min(values), "high": max(values)}
    return {name: ends["mean"], f"{name}_low": ends["low"], f"{name}_high": ends["high"]}


def means(cells: Sequence[Row], *names: str, scale: str = "amount") -> Row:
    """Columns of the means of `names` and their intervals, over the cells that have a value."""
    row: Row = {}
    for name in names:
        row |= interval([v for cell in cells if (v := cell[name]) is not None], name, scale)
    return row


def headings(text: str) -> dict[str, str]:
    """Parse ``name | other = heading``; columns of published numbers are headed ``published``."""
    by_name = {}
    for part in text.split(" | "):
        name, _, heading = map(str.strip, part.partition("="))
        plain = "published" if name.endswith("_published") else name.replace("_", " ")
        by_name[name] = heading or plain
    return by_name


def elastic(
    jobs: Iterable[Row],
    machine: Row,
    restart: float | None = None,
    *,
    rigid: bool = False,
    **others: Any,
) -> Workload:
    """Build a workload on copies of `machine`; changes cost `restart` s; `rigid`: no resizing."""
    if restart is not None:
        others["costs"] = dict.fromkeys(("resume", "resize", "migrate"), restart)
    if rigid:
        jobs = [job | {"workers": job["workers"]["initial"]} for job in jobs]
    plain: Row = {"format": "oasis-elastic-workload", "version": 1, "jobs": list(jobs), **others}
    return elastic_from_dict(
        {**plain, "machines": [machine], "resources": list(machine["capacity"])}
    )


def area(steps: Iterable[tuple[float, float]], begin: float, end: float, last: float) -> float:
    """Area under steps (time, level from then on) from `begin` to `end`; steps end at `last`."""
    return math.fsum(
        level * max(0.0, min(after, end) - max(time, begin))
        for (time, level), (after, _) in pairwise([*steps, (last, 0.0)])
    )


def stays(workload: Workload, policy: Policy) -> list[tuple[str, float, float, Allocation]]:
    """Run a policy; return spans of constant workers: job, begin, end and allocation."""
    settled = list[JobProgress]()
    replay(workload, policy, on_settled=settled.append)
    return [
        (progress.job.id, begin, end, allocation)
        for progress in sorted(settled, key=lambda progress: progress.job.index)
        for (begin, allocation), (end, _) in pairwise(progress.history)
        if allocation.workers
    ]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows that have the same keys; numbers as they are, an empty field for None."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def read_csv(path: Path) -> list[Row]:
    """Read rows written by `write_csv`; numbers become numbers, empty fields None."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def for_people(row: Mapping[str, Any], column: str) -> str:
    """Text of a value in a table, rounded, with its interval; a dash for None."""
    value, low, high = row.get(column), row.get(f"{column}_low"), row.get(f"{column}_high")
    if isinstance(value, str):
        return value
    ends = [end for end in dict.fromkeys((low, high)) if end is not None]
    interval = " to ".join(map(_short, ends))
    if value is None:
        return interval or "-"
    mean = _short(value, 4)
    return f"{mean} ({interval})" if interval else mean


def _short(value: float, digits: int = 3) -> str:
    """Format with `digits` significant digits; below 100,000 with all whole digits."""
    return f"{value:.0f}" if 10**digits <= abs(value) < 100_000 else f"{value:.{digits}g}"


def half_widths(rows: Sequence[Mapping[str, Any]], name: str) -> list[list[float]]:
    """Return lengths of error bars below and above the means in column `name`."""
    ends = ([row[f"{name}_{end}"] for row in rows] for end in ("low", "high"))
    return [
        [0.0 if end is None else abs(end - row[name]) for end, row in zip(side, rows, strict=True)]
        for side in ends
    ]


def mark(
    ax: Axes,
    places: Sequence[float],
    rows: Sequence[Row],
    name: str,
    k: int,
    *,
    times: float = 1.0,
    sideways: bool = False,
    **look: Any,
) -> None:
    """Draw means of column `name`, scaled by `times`, as the k-th marker, with error bars."""
    values = [times * row[name] for row in rows]
    widths = [[times * width for width in side] for side in half_widths(rows, name)]
    usual: dict[str, Any] = {"linestyle": "none", "marker": marker(k), "color": ink(), "capsize": 2}
    if sideways:
        ax.errorbar(values, places, xerr=widths, **(usual | look))
    else:
        ax.errorbar(places, values, yerr=widths, **(usual | look))


def bars(
    ax: Axes, places: Sequence[float], heights: Sequence[float], width: float, k: int, **look: Any
) -> None:
    """Draw bars with the k-th fill and hatching; `look` overrides the style."""
    look = {"color": fill(k), "hatch": hatch(k), "edgecolor": ink()} | look
    ax.bar(places, heights, width, **look)


def _value(text: str) -> Any:
    if text == "":
        return None
    for kind in (int, float):  # counts stay whole numbers, which labels show without a point
        try:
            return kind(text)
        except ValueError:
            continue
    return text


Draw = Callable[[Sequence[Row], Axes], None]
Case = Mapping[str, Any]


def crossed(**axes: Iterable[Any]) -> list[Case]:
    """Return a case for each combination of the values, the last axis changing first."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


@dataclass(frozen=True, slots=True)
class _Figure:
    """Base class of figures: how runs become rows of a table, and how rows are drawn."""

    name: str
    title: str
    table: Callable[..., list[Row]]
    shown: Mapping[str, str]
    panels: tuple[Draw, ...]
    _: KW_ONLY
    size: tuple[float, float] = (8.0, 4.6)
    seeds: int = 5
    preset: str = "calibrated"
    each: str | None = None
    columns: int | None = None

    def settings(
        self, *, seeds: int | None = None, preset: str | None = None, **others: Any
    ) -> FigureSettings:
        """Make FigureSettings; `seeds` and `preset` default to those of the figure."""
        own = self.seeds if seeds is None else seeds
        return FigureSettings(seeds=own, preset=preset or self.preset, **others)

    def draw(self, rows: Sequence[Row], note: str) -> Figure:
        """Draw all panels, with `note`, on what was run, below them."""
        width, height = self.size
        parts = [rows] if self.each is None else list(groups(rows, self.each).values())
        columns = self.columns or len(self.panels)
        lines = len(parts) * len(self.panels) // columns
        page = new_figure(width * columns, height * lines)
        places = page.subplots(lines, columns, squeeze=False, sharey="col").ravel()
        drawn = ((panel, part) for part in parts for panel in self.panels)
        for (panel, part), place in zip(drawn, places, strict=True):
            panel(part, place)
        page.supxlabel(note, fontsize=SMALL, x=0.99, ha="right")
        return page


@dataclass(frozen=True, slots=True)
class PublishedFigure(_Figure):
    """A figure of the paper and how to make it again.

    Parameters
    ----------
    name : str
        Its name, such as ``fig3``.
    title : str
        Title of the picture.
    table : callable
        From the finished cells of the sweep, and the settings, to rows with measured and
        published numbers.
    shown : mapping of str to str
        Columns of a table for people, with their headings; ``x`` stands for ``x``, ``x_low`` and
        ``x_high`` together.
    panels : tuple of callable
        From those rows and axes to the parts of the picture, side by side.
    grid : callable
        From `FigureSettings` to the configuration of a sweep.
    size : tuple of float
        Width of a panel and height of the picture, inches.
    seeds : int
        Instances of each kind unless told otherwise: more where they are quick.
    preset : str
        Preset of the instances unless told otherwise.
    each : str, optional
        Column of the rows; the picture has a line of panels for each of its values.
    columns : int, optional
        Panels side by side; left out, all.
    """

    grid: Callable[[FigureSettings], dict[str, Any]]

    def steps(self, settings: FigureSettings) -> int:
        """Number of runs of the figure with these settings, offline solves included.

        Raises
        ------
        ValueError
            If the settings ask for what this figure cannot vary.
        """
        if settings.trace is not None:
            raise InputError("trace", f"{self.name} takes its jobs from no trace")
        cells = expand(sweep_config(self.grid(settings)))
        shared = {cell.shared_cell.key for cell in cells if cell.shared_cell is not None}
        return len(cells) + len(shared)

    def note(self, settings: FigureSettings) -> str:
        """Return the note below the picture: settings, and remarks on the policies."""
        lines, run = [settings.describe()], self.grid(settings)["policies"]
        if [policy.get(FLOOR) for policy in run if policy["name"] == OASIS] == list(FORMS.values()):
            lines.append(FORMS_REMARK)
        if "rrh" in [policy["name"] for policy in run]:
            lines.append(RRH_REMARK)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class DirectFigure(_Figure):
    """A figure whose runs need no sweep; its table is made from the runs alone."""

    cases: Callable[..., list[Case]]  # from the number of seeds, and the trace if it takes one
    measure: Callable[[Case], Row]
    _: KW_ONLY
    seeds: int = 20
    takes_trace: bool = False  # whether its jobs can be those of a trace

    def steps(self, settings: FigureSettings) -> int:
        """Number of runs; raises `InputError` for settings that this figure cannot vary."""
        own = settings.trace if self.takes_trace else None
        plain = FigureSettings(seeds=settings.seeds, trace=own).to_dict()
        varied = "the number of seeds" + (" and the trace" if self.takes_trace else "")
        for name, value in settings.to_dict().items():
            if value != plain[name]:
                raise InputError(name, f"{self.name} varies only {varied}")
        return len(self.runs(settings))

    def runs(self, settings: FigureSettings) -> list[Case]:
        """Return the cases to run, for the seeds and, if the figure takes one, the trace."""
        trace = (settings.trace,) if self.takes_trace else ()
        return self.cases(settings.seeds, *trace)

    def note(self, settings: FigureSettings) -> str:
        """Describe the number of runs, for the note below the picture."""
        return f"{settings.seeds} seeds"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A reproduced figure.

    Parameters
    ----------
    rows : list of dict
        Measured and published numbers; the CSV file has the same.
    cells : int
        Runs behind them.
    errors : tuple of str
        Of the runs that failed, which the rows leave out.
    unproven : int
        Ratios that the time limit left without a proof, which the rows leave out.
    files : tuple of Path
        What was written: each run (Parquet), the rows (CSV), the picture.
    unwritten : tuple of OSError
        Why one of these is missing, found when the runs were done.
    """

    rows: list[Row]
    cells: int
    errors: tuple[str, ...]
    unproven: int
    files: tuple[Path, ...]
    unwritten: tuple[OSError, ...] = ()


def reproduce(
    figure: PublishedFigure | DirectFigure,
    settings: FigureSettings,
    directory: Path,
    *,
    suffix: str = ".svg",
    style: str | None = None,
    on_progress: Callable[[SweepProgress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    on_step: Callable[[], None] | None = None,
) -> Reproduction:
    """Run what `figure` needs and write data and picture to `directory`.

    Finished runs of a `PublishedFigure`, which use all cores, are kept in ``NAME.parquet.cells``;
    started again, only the others are run.

    Parameters
    ----------
    figure : PublishedFigure or DirectFigure
        The figure.
    settings : FigureSettings
        Number of seeds, and size.
    directory : Path
        Where the files go; it is made if it does not exist.
    suffix : str
        Format of the picture: .svg, .png or .pdf.
    style : str, optional
        Style of the picture, as `experiments.plotting.canvas.read_style` reads it.
    on_progress, on_note : callable, optional
        As for `experiments.sweep.run.run_sweep`, where the figure needs a sweep.
    on_step : callable, optional
        Called after each run, where it needs none.

    Raises
    ------
    OasisError
        If no run succeeded, with the first error.
    ValueError
        If the settings ask for what the figure cannot vary.
    OSError
        If a file cannot be written there, before any run.
    """
    if suffix not in FORMATS:
        raise InputError("suffix", f"expected one of {', '.join(FORMATS)}", suffix)
    # Settings that the figure cannot vary are refused before a directory is made.
    figure.steps(settings)
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
    data, picture = (directory / f"{figure.name}{ending}" for ending in (".csv", suffix))
    check_writable(data)
    check_writable(picture)
    if isinstance(figure, PublishedFigure):
        runs = directory / f"{figure.name}.parquet"
        reproduction = _swept(figure, settings, runs, on_progress, on_note)
    else:
        runs = directory / f"{figure.name}-runs.csv"
        reproduction = _measure(figure, settings, runs, on_step)
    # Each of the three files counts on its own: what could be written is there.
    reproduction = _written(reproduction, data, partial(write_csv, data, reproduction.rows))

    def draw() -> None:
        with drawing_style(style):
            save(figure.draw(reproduction.rows, figure.note(settings)), picture)

    return _written(reproduction, picture, draw)


def _swept(
    figure: PublishedFigure,
    settings: FigureSettings,
    runs: Path,
    on_progress: Callable[[SweepProgress], None] | None,
    on_note: Callable[[str], None] | None,
) -> Reproduction:
    """Run the sweep of a figure; return its rows, its counts and the file of its runs."""
    config = sweep_config(figure.grid(settings))
    unwritten: tuple[OSError, ...] = ()
    try:
        result = run_sweep(config, runs, on_progress=on_progress, on_note=on_note)
    except UnwrittenSweepError as error:
        result, unwritten = error.result, (error,)
    cells = result.table.to_pylist()
    done = [cell for cell in cells if cell["status"] == DONE]
    errors = tuple(str(cell["error"]) for cell in cells if cell["status"] != DONE)
    if not done:
        raise OasisError(f"{figure.name}: no run succeeded: {errors[0]}")
    # Tasks other than ratio have no such figure, and are not unproven.
    unproven = sum(cell.get("proven") is False for cell in done)
    files = () if unwritten else (runs,)
    rows = figure.table(done, settings)
    return Reproduction(rows, len(cells), errors, unproven, files, unwritten)


def _measure(
    figure: DirectFigure,
    settings: FigureSettings,
    runs: Path,
    on_step: Callable[[], None] | None,
) -> Reproduction:
    """Run the cases of a figure one by one; return its rows and the file of its runs."""
    check_writable(runs)
    measured = []
    for case in figure.runs(settings):
        measured.append(figure.measure(case))
        if on_step is not None:
            on_step()
    reproduction = Reproduction(figure.table(measured), len(measured), (), 0, ())
    return _written(reproduction, runs, partial(write_csv, runs, measured))


def _written(reproduction: Reproduction, path: Path, write: Callable[[], None]) -> Reproduction:
    """Call `write`; return `reproduction` with the file, or with the error that it raised."""
    try:
        write()
    except OSError as error:
        return replace(reproduction, unwritten=(*reproduction.unwritten, error))
    return replace(reproduction, files=(*reproduction.files, path))
