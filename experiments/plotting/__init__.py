"""Pictures of runs, comparisons and ratios; every function takes ``ax=None`` (docs/plots)."""

from oasis.model.extras import require

require("drawing", "matplotlib")

from experiments.plotting.canvas import drawing_style, read_style
from experiments.plotting.comparison import plot_comparison
from experiments.plotting.files import (
    FORMATS,
    check_picture,
    comparison_page,
    ratio_page,
    run_page,
    save,
    schedules_page,
)
from experiments.plotting.ratio import plot_differences, plot_ratio, plot_rents
from experiments.plotting.schedule import plot_quote, plot_schedule
from experiments.plotting.servers import plot_prices, plot_utilisation
from experiments.plotting.utilities import plot_utilities

__all__ = [
    "FORMATS",
    "check_picture",
    "comparison_page",
    "drawing_style",
    "plot_comparison",
    "plot_differences",
    "plot_prices",
    "plot_quote",
    "plot_ratio",
    "plot_rents",
    "plot_schedule",
    "plot_utilisation",
    "plot_utilities",
    "ratio_page",
    "read_style",
    "run_page",
    "save",
    "schedules_page",
]
