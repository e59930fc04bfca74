"""Running the sweep behind a figure and writing what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.figures.figure import PublishedFigure, draw_to
from experiments.figures.rows import Row, write_csv
from experiments.figures.settings import FigureSettings
from experiments.plotting import FORMATS
from experiments.sweep import SweepProgress, UnwrittenSweepError, run_sweep, sweep_config
from experiments.sweep.record import DONE
from oasis.model.errors import OasisError
from oasis.model.files import check_writable, naming


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A figure that was made again.

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
    figure: PublishedFigure,
    settings: FigureSettings,
    directory: Path,
    *,
    suffix: str = ".svg",
    style: str | None = None,
    on_progress: Callable[[SweepProgress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Reproduction:
    """Run what `figure` needs on all cores and write data and picture to `directory`.

    Finished runs are kept in ``NAME.parquet.cells``; started again, only the others are run.

    Parameters
    ----------
    figure : PublishedFigure
        Which.
    settings : FigureSettings
        How many seeds, how large.
    directory : Path
        Where the files go; it is made if it does not exist.
    suffix : str
        Format of the picture: .svg, .png or .pdf.
    style : str, optional
        Style of the picture, as `experiments.plotting.style.read_style` reads it.
    on_progress, on_note : callable, optional
        As for `experiments.sweep.run.run_sweep`.

    Raises
    ------
    OasisError
        If no run succeeded, with the first error.
    OSError
        If a file cannot be written there, before any run.
    """
    if suffix not in FORMATS:
        raise ValueError(f"suffix: expected one of {', '.join(FORMATS)}, got {suffix!r}")
    config = sweep_config(figure.grid(settings))
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
    runs, data, picture = (
        directory / f"{figure.name}{ending}" for ending in (".parquet", ".csv", suffix)
    )
    check_writable(data)
    check_writable(picture)
    unwritten: dict[Path, OSError] = {}
    try:
        result = run_sweep(config, runs, on_progress=on_progress, on_note=on_note)
    except UnwrittenSweepError as error:
        result, unwritten[runs] = error.result, error
    cells = result.table.to_pylist()
    done = [cell for cell in cells if cell["status"] == DONE]
    errors = tuple(str(cell["error"]) for cell in cells if cell["status"] != DONE)
    if not done:
        raise OasisError(f"{figure.name}: no run succeeded: {errors[0]}")
    rows = figure.table(done, settings)
    for path, write in (
        (data, partial(write_csv, data, rows)),
        (picture, partial(draw_to, figure, rows, settings.describe(), picture, style)),
    ):
        try:
            write()
        except OSError as error:
            unwritten[path] = error
    unproven = sum(cell.get("proven") is False for cell in done)
    files = tuple(path for path in (runs, data, picture) if path not in unwritten)
    return Reproduction(rows, len(cells), errors, unproven, files, tuple(unwritten.values()))
