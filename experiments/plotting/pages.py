"""Whole pictures: what the commands draw for ``--plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from experiments.plotting.canvas import as_written, new_figure
from experiments.plotting.comparison import measures_of, plot_comparisons
from experiments.plotting.ratio import MOST_JOBS, plot_differences, plot_ratio
from experiments.plotting.schedule import plot_schedule
from experiments.plotting.servers import plot_prices, plot_utilisation
from experiments.plotting.utilities import plot_utilities
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.simulator.result import Run

if TYPE_CHECKING:
    from experiments.evaluation.comparison import Comparison
    from experiments.evaluation.competitive_ratio import CompetitiveRatio
    from experiments.evaluation.job_comparison import JobComparison


def run_page(instance: Instance, run: Run) -> Figure:
    """Utilisation, prices if the policy has them, schedule and utilities of a run.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> len(run_page(instance, run).axes) >= 6
    True
    """
    title = (
        f"{run.policy}: total utility {run.total_utility:.6g}, "
        f"{run.admitted} of {len(run.decisions)} jobs admitted"
    )
    if run.admitted_unfinished:
        title += f", {run.admitted_unfinished} of them did not finish"
    priced = run if run.bounds is not None else None
    return schedules_page(instance, run.schedules, title, run=priced)


def schedules_page(
    instance: Instance, schedules: Mapping[str, Schedule], title: str, *, run: Run | None = None
) -> Figure:
    """Utilisation, schedule and utilities of schedules from anywhere; and the prices of a `run`.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=4, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> schedules_page(instance, run.schedules, "mine").get_suptitle()
    'mine'
    """
    priced = run is not None
    maps, jobs = 2.8 * (1 + priced), min(7.5, max(4.0, 1.2 + 0.12 * len(instance.jobs)))
    figure = new_figure(12.0, maps + jobs + 0.4)
    rows = figure.add_gridspec(2, 1, height_ratios=(maps, jobs))
    groups = [group for group in GROUPS if group.ids(instance.cluster)]
    grid = rows[0].subgridspec(1 + priced, len(groups))
    for k, group in enumerate(groups):
        place = figure.add_subplot(grid[0, k])
        plot_utilisation(instance, schedules, group=group, ax=place)
        if run is not None:
            plot_prices(instance, run, group=group, ax=figure.add_subplot(grid[1, k]))
    columns = rows[1].subgridspec(1, 2, width_ratios=(2, 1))
    plot_schedule(instance, schedules, ax=figure.add_subplot(columns[0]))
    plot_utilities(instance, schedules, ax=figure.add_subplot(columns[1]))
    figure.suptitle(as_written(title))
    return figure


def comparison_page(comparison: Comparison) -> Figure:
    """Every policy: utility, jobs and completion, or on a trace completion, waiting and use.

    Where the comparison is over several seeds, a line below says what the bars are.
    """
    figure = new_figure(13.0, 1.8 + 0.5 * len(comparison.policies))
    plot_comparisons(comparison, figure.subplots(1, len(measures_of(comparison)), squeeze=False)[0])
    seeds = {
        len(row["over_seeds"]["seeds"])
        for row in comparison.policies.values()
        if "over_seeds" in row
    }
    if seeds:
        text = f"policies that draw at random: mean of {max(seeds)} seeds with its 95 % interval"
        figure.supxlabel(text, fontsize="small", x=0.99, ha="right")
    return figure


def ratio_page(
    results: Mapping[str, CompetitiveRatio], jobs: Sequence[JobComparison] | None = None
) -> Figure:
    """The ratios with their bounds; and the jobs that make the difference, where they are given.

    Parameters
    ----------
    results : mapping of str to CompetitiveRatio
        Ratios by name, such as the instance's.
    jobs : sequence of JobComparison, optional
        Of the one result: `experiments.evaluation.job_comparison.compare_jobs`.
    """
    height = 1.8 + 0.4 * len(results)
    if jobs is None:
        figure = new_figure(7.4, height)
        plot_ratio(results, ax=figure.add_subplot())
        return figure
    (result,) = results.values()
    who = "OASiS" if result.run.policy == "oasis" else result.run.policy
    rows = min(len(jobs), MOST_JOBS + 1)
    figure = new_figure(7.4, height + 1.8 + 0.26 * rows)
    upper, lower = figure.subplots(2, 1, height_ratios=(height, 1.8 + 0.26 * rows))
    plot_ratio(results, ax=upper)
    plot_differences(jobs, who=who, ax=lower)
    return figure
