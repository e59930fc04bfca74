"""What a published figure consists of here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.figures.rows import Row
from experiments.figures.settings import FigureSettings
from experiments.plotting.canvas import SMALL, new_figure
from experiments.plotting.files import save
from experiments.plotting.style import drawing_style
from experiments.sweep import expand, sweep_config

Draw = Callable[[Sequence[Row], Axes | None], Axes]


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A figure of the paper and how to make it again.

    Parameters
    ----------
    name : str
        Its name, such as ``fig3``.
    title : str
        What it shows.
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

    def settings(
        self, *, seeds: int | None = None, preset: str | None = None, **others: Any
    ) -> FigureSettings:
        """FigureSettings with this figure's seeds and preset where none are given."""
        own = self.seeds if seeds is None else seeds
        return FigureSettings(seeds=own, preset=preset or self.preset, **others)

    def steps(self, settings: FigureSettings) -> int:
        """How many runs the figure takes with these settings, offline solves included.

        Raises
        ------
        ValueError
            If the settings ask for what this figure cannot vary.
        """
        if settings.trace is not None:
            raise ValueError(f"trace: {self.name} takes its jobs from no trace")
        cells = expand(sweep_config(self.grid(settings)))
        shared = {cell.shared_cell.key for cell in cells if cell.shared_cell is not None}
        return len(cells) + len(shared)

    def draw(self, rows: Sequence[Row], note: str) -> Figure:
        """The whole picture, with a `note` on what was run."""
        return draw_page(self.panels, self.size, rows, note)


class Drawable(Protocol):
    """A figure whose rows are there."""

    def draw(self, rows: Sequence[Row], note: str) -> Figure:
        """The whole picture, with a `note` on what was run."""
        ...


def draw_to(
    figure: Drawable, rows: Sequence[Row], note: str, picture: Path, style: str | None
) -> None:
    """Draw a figure in a style, and write the picture.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with drawing_style(style):
        save(figure.draw(rows, note), picture)


def draw_page(
    panels: Sequence[Draw], size: tuple[float, float], rows: Sequence[Row], note: str
) -> Figure:
    """Panels of this size side by side, with a `note` on what was run."""
    width, height = size
    page = new_figure(width * len(panels), height)
    places = page.subplots(1, len(panels), squeeze=False)[0]
    for panel, place in zip(panels, places, strict=True):
        panel(rows, place)
    page.supxlabel(note, fontsize=SMALL, x=0.99, ha="right")
    return page
