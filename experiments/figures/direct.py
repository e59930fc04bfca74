"""Figures that replay elastic jobs: each run by itself, one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.figures.figure import Draw, draw_page, draw_to
from experiments.figures.reproduction import Reproduction
from experiments.figures.rows import Row, write_csv
from experiments.figures.settings import FigureSettings
from experiments.plotting import FORMATS
from oasis.model.files import check_writable, naming

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DirectFigure:
    """A figure of a paper whose runs need no instance and no sweep.

    Parameters
    ----------
    name : str
        Its name, such as ``dragon-7``.
    title : str
        What it shows.
    cases : callable
        From the number of seeds, and the trace if it takes one, to what is to be run, each as plain
        data.
    measure : callable
        Runs one of these; its row of plain data.
    table : callable
        From all rows to those of the table, with measured and published numbers.
    shown, panels, size
        As for `PublishedFigure`.
    seeds : int
        Draws unless told otherwise.
    takes_trace : bool
        Whether its jobs can be those of a trace.
    """

    name: str
    title: str
    cases: Callable[..., list[Case]]
    measure: Callable[[Case], Row]
    table: Callable[[Sequence[Row]], list[Row]]
    shown: Mapping[str, str]
    panels: tuple[Draw, ...]
    size: tuple[float, float] = (8.0, 4.6)
    seeds: int = 20
    takes_trace: bool = False

    def settings(
        self, *, seeds: int | None = None, preset: str | None = None, **others: Any
    ) -> FigureSettings:
        """FigureSettings with this figure's number of seeds where none is given."""
        if preset is not None:
            others["preset"] = preset
        return FigureSettings(seeds=self.seeds if seeds is None else seeds, **others)

    def steps(self, settings: FigureSettings) -> int:
        """How many runs the figure takes.

        Raises
        ------
        ValueError
            If the settings ask for what this figure cannot vary: anything but the seeds, and for
            some the trace.
        """
        own = settings.trace if self.takes_trace else None
        plain = FigureSettings(seeds=settings.seeds, trace=own).to_dict()
        varied = "the number of seeds" + (" and the trace" if self.takes_trace else "")
        for name, value in settings.to_dict().items():
            if value != plain[name]:
                raise ValueError(f"{name}: {self.name} varies only {varied}")
        return len(self.runs(settings))

    def runs(self, settings: FigureSettings) -> list[Case]:
        """What is to be run."""
        if self.takes_trace:
            return self.cases(settings.seeds, settings.trace)
        return self.cases(settings.seeds)

    def draw(self, rows: Sequence[Row], note: str) -> Figure:
        """The whole picture, with a `note` on what was run."""
        return draw_page(self.panels, self.size, rows, note)


def reproduce_direct(
    figure: DirectFigure,
    settings: FigureSettings,
    directory: Path,
    *,
    suffix: str = ".svg",
    style: str | None = None,
    on_step: Callable[[], None] | None = None,
) -> Reproduction:
    """Run what `figure` needs and write data and picture to `directory`.

    Parameters
    ----------
    figure : DirectFigure
        Which.
    settings : FigureSettings
        How many seeds.
    directory : Path
        Where the files go; it is made if it does not exist.
    suffix : str
        Format of the picture: .svg, .png or .pdf.
    style : str, optional
        Style of the picture, as `experiments.plotting.style.read_style` reads it.
    on_step : callable, optional
        Called after each run.

    Raises
    ------
    ValueError
        If the settings ask for what the figure cannot vary.
    OSError
        If a file cannot be written there, before any run.
    """
    if suffix not in FORMATS:
        raise ValueError(f"suffix: expected one of {', '.join(FORMATS)}, got {suffix!r}")
    figure.steps(settings)
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
    runs, data, picture = (
        directory / f"{figure.name}{ending}" for ending in ("-runs.csv", ".csv", suffix)
    )
    for path in (runs, data, picture):
        check_writable(path)
    measured = []
    for case in figure.runs(settings):
        measured.append(figure.measure(case))
        if on_step is not None:
            on_step()
    rows = figure.table(measured)
    made = Reproduction(rows, len(measured), (), 0, ())
    for path, write in (
        (runs, partial(write_csv, runs, measured)),
        (data, partial(write_csv, data, rows)),
        (picture, partial(draw_to, figure, rows, f"{settings.seeds} seeds", picture, style)),
    ):
        try:
            write()
        except OSError as error:
            made = replace(made, unwritten=(*made.unwritten, error))
        else:
            made = replace(made, files=(*made.files, path))
    return made
