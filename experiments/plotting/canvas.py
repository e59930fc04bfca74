"""Shared parts of plots: figures without pyplot, markers readable without colour, labels."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps, rc_context, rc_params_from_file, rcParams, rcParamsDefault, style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.category import StrCategoryLocator
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from oasis.model.errors import InputError

SUFFIX = ".mplstyle"
PAPER = "paper"  # a style of our own: a column of a printed page
COLUMN, TWO_COLUMNS = 3.5, 7.16  # inches
LEAST_HEIGHT = 2.2
TITLE_LETTERS = 40  # in a line of the title of a panel
LETTERS = 40  # of all names below an axis in a column
PRINTED: dict[str, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "savefig.dpi": 300,
}
_is_printed: ContextVar[bool] = ContextVar("_is_printed", default=False)


def read_style(name: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the matplotlib settings of `PAPER`, of a named style, or of a style file."""
    if name == PAPER:
        return dict(PRINTED)
    if Path(name).suffix == SUFFIX:
        return _read_file(Path(name))
    if str(name) not in style.library:
        choices = f"{PAPER}, a file that ends in {SUFFIX}, or one of {', '.join(style.available)}"
        raise InputError("style", f"expected {choices}", os.fspath(name))
    settings: Any = style.library[str(name)]  # matplotlib types every key of its own
    return dict(settings)


@contextmanager
def drawing_style(name: str | os.PathLike[str] | None) -> Iterator[None]:
    """Apply a style inside a ``with`` block and restore settings after it; None changes nothing."""
    settings: Any = {} if name is None else read_style(name)
    token = _is_printed.set(name == PAPER)
    try:
        with rc_context(settings):
            yield
    finally:
        _is_printed.reset(token)


def fit_for_print(figure: Figure) -> None:
    """If the style is `PAPER`, remove titles and notes and rotate names that are too long."""
    if not _is_printed.get():
        return
    if len(figure.axes) == 1:  # titles of several panels tell them apart
        figure.axes[0].set_title("")
    if figure.get_supxlabel():
        figure.supxlabel("")
    for ax in figure.axes:
        # In one line, a long title runs into that of the next panel.
        ax.set_title("\n".join(wrap(ax.get_title(), TITLE_LETTERS)))
        if not isinstance(ax.xaxis.get_major_locator(), FixedLocator | StrCategoryLocator):
            continue  # numbers, not names
        labels, limits = ax.get_xticklabels(), ax.get_xlim()
        names = [label.get_text().replace("-\n", "-") for label in labels]
        letters = sum(len(name) for name in names if not name.isdecimal())
        if letters > LETTERS and labels[0].get_rotation() == 0.0:
            look: Any = {"rotation": 30.0, "ha": "right", "rotation_mode": "anchor"}
            ax.set_xticks(ax.get_xticks(), names, **look)
            ax.set_xlim(limits)


def _read_file(path: Path) -> dict[str, Any]:
    """Read a style file; raise `InputError` for what matplotlib only warns of."""
    # Opened first, so that a file that cannot be read is an OSError that names it.
    path.open("rb").close()

    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError(record.getMessage())

    logger = logging.getLogger("matplotlib")
    logger.addFilter(refuse)
    try:
        settings: Any = rc_params_from_file(path, fail_on_error=True, use_default_template=False)
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        message = str(error)  # of several lines
        raise InputError("style", f"{path}: {' '.join(message.split())}") from None
    finally:
        logger.removeFilter(refuse)
    return dict(settings)


# White for nothing, then light to dark: perceptually uniform, and as clear in grey.
COLORMAP = ListedColormap(["white", *colormaps["cividis_r"](np.linspace(0.0, 1.0, 255))])
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)), (0, (3, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "--", "++", "oo")
# Light and dark take turns, so that a grey print tells neighbours apart, even without hatches.
FILLS = ("#5B9BD0", "#F6D78B", "#3F8F7F", "#C9DFF2", "#D98C5F", "#BFE3CF", "#8E7CB8", "#F3F0E6")
# Colours that people with any kind of colour blindness tell apart (Okabe and Ito, 2008), ordered
# so that neighbours differ in lightness too, as a grey print shows them.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#F0E442", "#CC79A7", "#000000")
MOST_LABELS = 16
LONGEST_LABEL = 22
SMALL, TINY = "small", "x-small"  # relative to the font size of the style


def ink() -> str:
    """Return the colour of text and lines in the current style."""
    return str(rcParams["text.color"])


def paper() -> str:
    """Return the colour behind the axes in the current style."""
    return str(rcParams["axes.facecolor"])


def colour(k: int) -> str:
    """Return the k-th colour of the user's style, or of `PALETTE` if the style names none."""
    return _cycle(PALETTE, k)


def fill(k: int) -> str:
    """Return the k-th fill colour of the user's style, or of `FILLS` if the style names none."""
    return _cycle(FILLS, k)


def _cycle(otherwise: Sequence[str], k: int) -> str:
    styled = rcParams["axes.prop_cycle"]
    is_styled = styled != rcParamsDefault["axes.prop_cycle"]
    colours = styled.by_key().get("color", otherwise) if is_styled else otherwise
    return str(colours[k % len(colours)])


def hatch(k: int) -> str:
    """Return the k-th hatching; areas that share a fill differ in hatching."""
    return HATCHES[_turned(k, len(HATCHES))]


def bar_style(k: int, fill_of: int | None = None) -> dict[str, Any]:
    """Return the style of the k-th kind of bars, with the fill of kind `fill_of` if given."""
    colour_of = k if fill_of is None else fill_of
    return {"color": fill(colour_of), "hatch": hatch(k), "edgecolor": ink(), "linewidth": 0.6}


def line(k: int) -> Any:
    """Return the k-th line style for matplotlib."""
    return LINES[_turned(k, len(LINES))]


def marker(k: int) -> str:
    """Return the k-th marker of points."""
    return MARKERS[_turned(k, len(MARKERS))]


def _turned(k: int, count: int) -> int:
    """Return k modulo `count`, shifted by one more in each further turn."""
    return (k + k // count) % count


def colour_map() -> Colormap:
    """Return the colour map of heat maps: the user's, or else `COLORMAP`."""
    name = rcParams["image.cmap"]
    return COLORMAP if name == rcParamsDefault["image.cmap"] else colormaps[name]


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of this size in inches, without the global state of pyplot."""
    if _is_printed.get():  # as wide as a column, or as two, and as high in proportion
        column = COLUMN if width <= 8.0 else TWO_COLUMNS
        width, height = column, max(LEAST_HEIGHT, height * column / width)
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return `ax`, or axes on a new figure of this size if `ax` is None."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def shorten(name: str, most: int = LONGEST_LABEL) -> str:
    """Cut `name` to `most` letters and escape it for matplotlib."""
    return as_written(name if len(name) <= most else name[: most - 1] + "…")


def as_written(name: str) -> str:
    r"""Escape `name`, because matplotlib takes text between dollars for a formula."""
    return name.replace("$", r"\$") if rcParams["text.parse_math"] else name


def label_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label the rows 0, 1, ... on the y axis, evenly spaced ones if there are too many."""
    step = -(-len(names) // MOST_LABELS) or 1
    shown = range(0, len(names), step)
    ax.set_yticks(list(shown), [shorten(names[k]) for k in shown], fontsize=SMALL)


def name_rows(ax: Axes, names: Sequence[str], least: int = 1, **look: Any) -> None:
    """Label all rows 0, 1, ... on the y axis, from the top; leave room for `least` rows."""
    ax.set_yticks(range(len(names)), list(names), **look)
    ax.set_ylim(max(len(names), least) - 0.5, -0.5)


def legend_below(ax: Axes, columns: int) -> None:
    """Put the legend under the x label, at a fixed distance; nothing without entries."""
    if not ax.get_legend_handles_labels()[0]:
        return
    # 34 points are the height of the tick labels and of the label of the axis.
    below = ax.transAxes + ScaledTranslation(0.0, -34 / 72, ax.figure.dpi_scale_trans)
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0)}
    place |= {"bbox_transform": below, "borderaxespad": 0.0}
    ax.legend(ncols=columns, fontsize=SMALL, frameon=False, **place)


def label(ax: Axes, x: str, y: str, title: str, columns: int = 1) -> None:
    """Set axis labels and title, and put a legend of `columns` columns below."""
    ax.set(xlabel=x, ylabel=y, title=title)
    legend_below(ax, columns)


def slot_axis(ax: Axes, horizon: int) -> None:
    """Set up the x axis for slots 0..T-1; slot t is centred at t."""
    ax.set_xlim(-0.5, horizon - 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.set_xlabel("time (slots)")


UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


def time_unit(seconds: float) -> tuple[float, str]:
    """Return length and name of the unit that suits times up to `seconds`."""
    return next((one for one in UNITS if seconds >= 3 * one[0]), (1.0, "seconds"))


def step_of(count: int, most: int) -> int:
    """Return the least step such that every step-th of `count` items are at most `most`."""
    return max(1, -(-count // most))


def heat_map(
    ax: Axes,
    values: npt.NDArray[np.float64],
    names: Sequence[str],
    norm: Normalize,
    label: str,
) -> None:
    """Draw `values`, shape (T, servers), over time and servers; NaN is hatched."""
    horizon, servers = values.shape
    ax.patch.set(facecolor=paper(), edgecolor="0.7", hatch="///")
    look: dict[str, Any] = {"aspect": "auto", "cmap": colour_map(), "norm": norm}
    look["extent"] = (-0.5, horizon - 0.5, servers - 0.5, -0.5)
    image = ax.imshow(np.ma.masked_invalid(values.T), **look)
    slot_axis(ax, horizon)
    label_rows(ax, names)
    ax.set_ylabel("server")
    if not np.isnan(values).all():
        ax.figure.colorbar(image, ax=ax, label=label)
