"""What the plots share: figures without pyplot, marks that need no colour, thinned labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

# White for nothing, then light to dark: perceptually uniform, and as clear in grey.
COLORMAP = ListedColormap(["white", *colormaps["cividis_r"](np.linspace(0.0, 1.0, 255))])
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 3)), (0, (3, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "//", "..", "xx", "\\\\", "--", "++", "oo")
GREYS = ("0.55", "0.78", "0.96", "0.68", "0.88", "0.73", "1.0", "0.83")
MOST_LABELS = 16
LONGEST_LABEL = 16
SMALL = 8  # points


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, outside pyplot and its global state."""
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def axes(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """`ax`, or the axes of a new figure."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def shorten(name: str) -> str:
    """`name` cut to the length that fits beside a plot."""
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"


def label_rows(ax: Axes, names: Sequence[str]) -> None:
    """Names of the rows 0, 1, ... on the y axis: all, or evenly chosen ones if there are many."""
    step = -(-len(names) // MOST_LABELS) or 1
    shown = range(0, len(names), step)
    ax.set_yticks(list(shown), [shorten(names[k]) for k in shown], fontsize=SMALL)


def legend_below(ax: Axes, columns: int) -> None:
    """The legend under the label of the x axis, at the same distance whatever the height."""
    if not ax.get_legend_handles_labels()[0]:
        return
    below = ScaledTranslation(0.0, -34 / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + below,
        borderaxespad=0.0,
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
    )


def slot_axis(ax: Axes, horizon: int) -> None:
    """The x axis of slots 0..T-1; slot t is as wide as 1 and centred at t."""
    ax.set_xlim(-0.5, horizon - 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
    ax.set_xlabel("time (slots)")


def heat_map(
    ax: Axes,
    values: npt.NDArray[np.float64],
    names: Sequence[str],
    norm: Normalize,
    label: str,
) -> None:
    """Values (T, servers) over time and servers; nan is hatched: there is nothing to show."""
    horizon, servers = values.shape
    ax.patch.set(facecolor="white", edgecolor="0.7", hatch="///")
    image = ax.imshow(
        np.ma.masked_invalid(values.T),
        aspect="auto",
        interpolation="nearest",
        cmap=COLORMAP,
        norm=norm,
        extent=(-0.5, horizon - 0.5, servers - 0.5, -0.5),
    )
    slot_axis(ax, horizon)
    label_rows(ax, names)
    ax.set_ylabel("server")
    if not np.isnan(values).all():
        ax.figure.colorbar(image, ax=ax, label=label)
