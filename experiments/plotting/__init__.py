"""Pictures of runs, comparisons and ratios; every function takes ``ax=None`` (docs/plots)."""

from oasis.extras import require

require("drawing", "matplotlib")

from experiments.plotting.canvas import drawing_style as drawing_style
from experiments.plotting.canvas import read_style as read_style
from experiments.plotting.comparison import plot_comparison as plot_comparison
from experiments.plotting.files import FORMATS as FORMATS
from experiments.plotting.files import check_picture as check_picture
from experiments.plotting.files import comparison_page as comparison_page
from experiments.plotting.files import ratio_page as ratio_page
from experiments.plotting.files import run_page as run_page
from experiments.plotting.files import save as save
from experiments.plotting.files import schedules_page as schedules_page
from experiments.plotting.ratio import plot_differences as plot_differences
from experiments.plotting.ratio import plot_ratio as plot_ratio
from experiments.plotting.ratio import plot_rents as plot_rents
from experiments.plotting.schedule import plot_quote as plot_quote
from experiments.plotting.schedule import plot_schedule as plot_schedule
from experiments.plotting.schedule import plot_utilities as plot_utilities
from experiments.plotting.servers import plot_prices as plot_prices
from experiments.plotting.servers import plot_utilisation as plot_utilisation
