"""A figure of a paper: its runs, its data, and how it is drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.evaluation.intervals import interval_of
from experiments.evaluation.policies import FLOOR, OASIS
from experiments.figures.settings import FORMS, FORMS_REMARK, RRH_REMARK, FigureSettings
from experiments.plotting import FORMATS
from experiments.plotting.canvas import SMALL, drawing_style, new_figure
from experiments.plotting.files import save
from experiments.sweep import SweepProgress, UnwrittenSweepError, expand, run_sweep, sweep_config
from experiments.sweep.store import DONE
from oasis.model.errors import InputError, OasisError
from oasis.model.files import check_writable, naming, write_text

Row = dict[str, Any]


def groups(cells: Iterable[Row], *keys: str) -> dict[tuple[Hashable, ...], list[Row]]:
    """Group cells by their values of `keys`, in order of appearance."""
    found: dict[tuple[Hashable, ...], list[Row]] = {}
    for cell in cells:
        found.setdefault(tuple(_hashable(cell[key]) for key in keys), []).append(cell)
    return found


def interval(values: Sequence[float], name: str, scale: str = "any") -> Row:
    """Mean over the seeds and its 95 % confidence interval by Student's t; None without one.

    The interval keeps to what the values of `scale` can be
    (`experiments.evaluation.intervals.interval_of`).
    """
    found = interval_of(values, scale).to_dict()
    return {name: found["mean"], f"{name}_low": found["low"], f"{name}_high": found["high"]}


def fraction(values: Sequence[float], name: str) -> Row:
    """Mean of fractions; the interval, by Student's t, is cut off at 0 and 1."""
    return interval(values, name, "fraction")


def amount(values: Sequence[float], name: str) -> Row:
    """Mean of what cannot be negative; the interval, by Student's t, is cut off at 0."""
    return interval(values, name, "amount")


def ratio(values: Sequence[float], name: str) -> Row:
    """Geometric mean of ratios of 1 and more; the interval is that of the logarithms, from 1 on."""
    return interval(values, name, "ratio")


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write rows that have the same keys; numbers as they are, an empty field for None."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def read_csv(path: Path) -> list[Row]:
    """Rows that `write_csv` wrote; fields that are numbers become numbers again."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def for_people(row: Mapping[str, Any], column: str) -> str:
    """A value of a row for a table, rounded, with its interval; a dash where there is none."""
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
    """Format with this number of digits; below 100,000 with all digits before the point."""
    return f"{value:.0f}" if 10**digits <= abs(value) < 100_000 else f"{value:.{digits}g}"


def half_widths(rows: Sequence[Mapping[str, Any]], name: str) -> list[list[float]]:
    """Lengths of error bars below and above the means, for matplotlib."""
    below, above = [], []
    for row in rows:
        low, high, mean = row[f"{name}_low"], row[f"{name}_high"], row[name]
        below.append(mean - low if low is not None else 0.0)
        above.append(high - mean if high is not None else 0.0)
    return [below, above]


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


def _value(text: str) -> Any:
    if text == "":
        return None
    try:
        # Counts stay whole numbers, which labels show without a point.
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


Draw = Callable[[Sequence[Row], Axes | None], Axes]


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure of the paper and how to make it again.

    Parameters
    ----------
    name : str
        Its name, such as ``fig3``.
    title : str
        Title of the picture.
    grid : callable
        From `FigureSettings` to the configuration of a sweep.
    table : callable
        From the finished cells of that sweep, and the settings, to rows with measured and
        published numbers.
    shown : mapping of str to str
        Columns of a table for people, with their headings; ``x`` stands for ``x``, ``x_low`` and
        ``x_high`` together.
    panels : tuple of callable
        From those rows to the parts of the picture, side by side; each takes ``ax``.
    size : tuple of float
        Width of a panel and height of the picture, inches.
    seeds : int
        Instances of each kind unless told otherwise: more where they are quick.
    preset : str
        Preset of the instances unless told otherwise.
    each : str, optional
        Column of the rows; the picture has a line of panels for each of its values.
    """

    name: str
    title: str
    grid: Callable[[FigureSettings], dict[str, Any]]
    table: Callable[[Sequence[Row], FigureSettings], list[Row]]
    shown: Mapping[str, str]
    panels: tuple[Draw, ...]
    size: tuple[float, float] = (8.0, 4.6)
    seeds: int = 5
    preset: str = "calibrated"
    each: str | None = None

    def settings(
        self, *, seeds: int | None = None, preset: str | None = None, **others: Any
    ) -> FigureSettings:
        """FigureSettings with this figure's seeds and preset where none are given."""
        own = self.seeds if seeds is None else seeds
        return FigureSettings(seeds=own, preset=preset or self.preset, **others)

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
        """Text of the picture about the runs: settings, and remarks on the policies."""
        lines, run = [settings.describe()], self.grid(settings)["policies"]
        if [policy.get(FLOOR) for policy in run if policy["name"] == OASIS] == list(FORMS.values()):
            lines.append(FORMS_REMARK)
        if "rrh" in [policy["name"] for policy in run]:
            lines.append(RRH_REMARK)
        return "\n".join(lines)

    def draw(self, rows: Sequence[Row], note: str) -> Figure:
        """The whole picture, with a `note` on what was run."""
        return draw_page(self.panels, self.size, rows, note, self.each)


def draw_page(
    panels: Sequence[Draw],
    size: tuple[float, float],
    rows: Sequence[Row],
    note: str,
    each: str | None = None,
    columns: int | None = None,
) -> Figure:
    """Panels of this size side by side, with a `note` on what was run; a line for `each` value.

    With `columns`, only so many stand side by side.
    """
    width, height = size
    parts = [rows] if each is None else list(groups(rows, each).values())
    columns = columns or len(panels)
    lines = len(parts) * len(panels) // columns
    page = new_figure(width * columns, height * lines)
    places = page.subplots(lines, columns, squeeze=False, sharey="col").ravel()
    drawn = ((panel, part) for part in parts for panel in panels)
    for (panel, part), place in zip(drawn, places, strict=True):
        panel(part, place)
    page.supxlabel(note, fontsize=SMALL, x=0.99, ha="right")
    return page


Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DirectFigure:
    """A figure whose runs need neither an instance nor a sweep."""

    name: str
    title: str
    cases: Callable[..., list[Case]]  # from the number of seeds, and the trace if it takes one
    measure: Callable[[Case], Row]
    table: Callable[[Sequence[Row]], list[Row]]  # measured beside published numbers
    shown: Mapping[str, str]  # this, the panels and their size as for `PublishedFigure`
    panels: tuple[Draw, ...]
    size: tuple[float, float] = (8.0, 4.6)
    seeds: int = 20
    takes_trace: bool = False  # whether its jobs can be those of a trace
    columns: int | None = None  # panels side by side; None: all

    def settings(
        self, *, seeds: int | None = None, preset: str | None = None, **others: Any
    ) -> FigureSettings:
        """FigureSettings with this figure's number of seeds where none is given."""
        if preset is not None:
            others["preset"] = preset
        return FigureSettings(seeds=self.seeds if seeds is None else seeds, **others)

    def steps(self, settings: FigureSettings) -> int:
        """Number of runs of the figure."""
        own = settings.trace if self.takes_trace else None
        plain = FigureSettings(seeds=settings.seeds, trace=own).to_dict()
        varied = "the number of seeds" + (" and the trace" if self.takes_trace else "")
        for name, value in settings.to_dict().items():
            if value != plain[name]:
                raise InputError(name, f"{self.name} varies only {varied}")
        return len(self.runs(settings))

    def runs(self, settings: FigureSettings) -> list[Case]:
        """The runs of the figure."""
        if self.takes_trace:
            return self.cases(settings.seeds, settings.trace)
        return self.cases(settings.seeds)

    def note(self, settings: FigureSettings) -> str:
        """Text of the picture about the runs."""
        return f"{settings.seeds} seeds"

    def draw(self, rows: Sequence[Row], note: str) -> Figure:
        """The whole picture, with a `note` on what was run."""
        return draw_page(self.panels, self.size, rows, note, columns=self.columns)


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
        made = _swept(figure, settings, runs, on_progress, on_note)
    else:
        runs = directory / f"{figure.name}-runs.csv"
        made = _measured(figure, settings, runs, on_step)
    # Each of the three files counts on its own: what could be written is there.
    made = _written(made, data, partial(write_csv, data, made.rows))
    return _written(made, picture, partial(_draw_to, figure, settings, made.rows, picture, style))


def _swept(
    figure: PublishedFigure,
    settings: FigureSettings,
    runs: Path,
    on_progress: Callable[[SweepProgress], None] | None,
    on_note: Callable[[str], None] | None,
) -> Reproduction:
    """The rows of a sweep, and the file of its runs."""
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


def _measured(
    figure: DirectFigure,
    settings: FigureSettings,
    runs: Path,
    on_step: Callable[[], None] | None,
) -> Reproduction:
    """The rows of runs that need no sweep, and the file of these runs."""
    check_writable(runs)
    measured = []
    for case in figure.runs(settings):
        measured.append(figure.measure(case))
        if on_step is not None:
            on_step()
    made = Reproduction(figure.table(measured), len(measured), (), 0, ())
    return _written(made, runs, partial(write_csv, runs, measured))


def _written(made: Reproduction, path: Path, write: Callable[[], None]) -> Reproduction:
    """`made` with one more file, or with why it is missing."""
    try:
        write()
    except OSError as error:
        return replace(made, unwritten=(*made.unwritten, error))
    return replace(made, files=(*made.files, path))


def _draw_to(
    figure: PublishedFigure | DirectFigure,
    settings: FigureSettings,
    rows: Sequence[Row],
    picture: Path,
    style: str | None,
) -> None:
    with drawing_style(style):
        save(figure.draw(rows, figure.note(settings)), picture)
