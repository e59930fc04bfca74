"""Pictures of results: whole pages, and files that are checked before the work and repeat."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from matplotlib import rc_context
from matplotlib.figure import Figure

from experiments.evaluation.comparison import OVER_SEEDS, compare_jobs
from experiments.evaluation.provenance import SCHEDULES
from experiments.plotting.canvas import as_written, fit_for_print, new_figure
from experiments.plotting.comparison import measures_of, plot_comparisons
from experiments.plotting.ratio import MOST_JOBS, plot_differences, plot_ratio
from experiments.plotting.schedule import plot_quote, plot_schedule, plot_utilities
from experiments.plotting.servers import plot_prices, plot_utilisation
from experiments.plotting.whatif import waiting_figure
from oasis.model.document import entry, mapping
from oasis.model.errors import InputError
from oasis.model.files import check_writable, write_bytes
from oasis.model.groups import GROUPS
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule, schedules_by_job
from oasis.results import result_from_dict
from oasis.simulator.result import Run

if TYPE_CHECKING:
    from experiments.evaluation.comparison import Comparison, JobComparison
    from experiments.evaluation.competitive_ratio import CompetitiveRatio


def run_page(instance: Instance, run: Run) -> Figure:
    """Draw utilisation, schedule and utilities of a run, and prices if its policy has them.

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
    """Draw utilisation, schedule and utilities of schedules, and the prices of `run`.

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
    """Draw every policy: utility, jobs, completion; on a trace completion, waiting, use.

    Where the comparison is over several seeds, a line below says what the bars are.
    """
    figure = new_figure(13.0, 1.8 + 0.5 * len(comparison.policies))
    plot_comparisons(comparison, figure.subplots(1, len(measures_of(comparison)), squeeze=False)[0])
    rows = comparison.policies.values()
    if seeds := {len(row[OVER_SEEDS]["seeds"]) for row in rows if OVER_SEEDS in row}:
        text = f"policies that draw at random: mean of {max(seeds)} seeds with its 95 % interval"
        figure.supxlabel(text, fontsize="small", x=0.99, ha="right")
    return figure


def ratio_page(
    results: Mapping[str, CompetitiveRatio], jobs: Sequence[JobComparison] | None = None
) -> Figure:
    """Draw the ratios with their bounds and, if given, the jobs that make the difference.

    Parameters
    ----------
    results : mapping of str to CompetitiveRatio
        Ratios by name, such as the instance's.
    jobs : sequence of JobComparison, optional
        Of the one result: `experiments.evaluation.comparison.compare_jobs`.
    """
    height = 1.8 + 0.4 * len(results)
    if jobs is None:
        figure = new_figure(7.4, height)
        plot_ratio(results, ax=figure.add_subplot())
        return figure
    (result,) = results.values()
    policy = "OASiS" if result.run.policy == "oasis" else result.run.policy
    rows = min(len(jobs), MOST_JOBS + 1)
    figure = new_figure(7.4, height + 1.8 + 0.26 * rows)
    upper, lower = figure.subplots(2, 1, height_ratios=(height, 1.8 + 0.26 * rows))
    plot_ratio(results, ax=upper)
    plot_differences(jobs, who=policy, ax=lower)
    return figure


# What a format would write about the moment and the program.
FORMATS: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

# Matplotlib names a clip path after the last digits of its place, which differ between runs.
_CLIP_PATH = re.compile(r"(?<=[\"#])p[0-9a-f]{10}(?=[\")])")


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a picture can be written there; otherwise raise an error."""
    _suffix(path)
    check_writable(path)
    return Path(path)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write `figure` in the format that the suffix names; the file appears whole or not at all.

    The same figure gives the same bytes: no dates, and identifiers that do not change.

    Raises
    ------
    ValueError
        If the suffix names no format.

    Examples
    --------
    >>> import tempfile
    >>> from experiments.plotting.canvas import new_figure
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(new_figure(2.0, 2.0), f"{directory}/empty.svg")
    """
    suffix = _suffix(path)
    fit_for_print(figure)
    if suffix == ".svg":
        write_bytes(path, svg_text(figure).encode("utf-8"))
        return
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=FORMATS[suffix])
    write_bytes(path, buffer.getvalue())


def svg_text(figure: Figure) -> str:
    """Render `figure` as SVG, with letters as paths; the same figure gives the same text."""
    buffer = io.BytesIO()
    # Without a salt, identifiers are drawn at random; letters as paths need no font for reading.
    with rc_context({"svg.hashsalt": "oasis", "svg.fonttype": "path", "svg.image_inline": True}):
        figure.savefig(buffer, format="svg", metadata=FORMATS[".svg"])
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"clip{len(names) + 1}")

    return _CLIP_PATH.sub(number, buffer.getvalue().decode("utf-8"))


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(os.fspath(path), f"expected a picture ending in {', '.join(FORMATS)}")
    return suffix


NEED_INSTANCE = ("run", "solve", SCHEDULES)  # kinds that cannot be drawn without their instance


def kind_of(data: Any) -> str:
    """Return the kind of a document; `SCHEDULES` if it has schedules but no kind."""
    if "kind" not in mapping(data) and SCHEDULES in data:
        return SCHEDULES
    return str(data.get("kind"))


def picture_of(data: Mapping[str, Any], name: str, instance: Instance | None) -> Figure:
    """Draw a result by its kind; some kinds need `instance`; `name` labels a ratio."""
    kind = kind_of(data)
    result: Any = None if kind == SCHEDULES else result_from_dict(data)
    if kind in NEED_INSTANCE:
        if instance is None:
            raise InputError("instance", "expected the instance that the result is of")
        if kind == "run":
            return run_page(instance, result)
        if kind == "solve":
            utilities = f"total utility {result.objective:.6g}, at most {result.upper_bound:.6g}"
            title = f"{result.method}: {utilities}"
            return schedules_page(instance, result.schedules, title)
        schedules = entry(data, SCHEDULES, schedules_by_job)
        return schedules_page(instance, schedules, f"{len(schedules)} schedules")
    if kind == "ratio":
        jobs = None if instance is None else compare_jobs(instance, result)
        return ratio_page({name: result}, jobs)
    if kind == "quote":
        return cast("Figure", plot_quote(result).figure)
    return waiting_figure(result) if kind == "whatif" else comparison_page(result)
