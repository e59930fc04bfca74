"""Pictures of many jobs, comparisons, ratios, quotes and styles show what they are of."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import baselines
import oasis
from experiments.evaluation.comparison import Comparison, Finish, JobComparison
from experiments.evaluation.description import describe_instance
from experiments.evaluation.provenance import (
    instance_digest,
    instance_of,
    instance_reference,
    named_instance,
)
from experiments.plotting.canvas import (
    PALETTE,
    colour,
    drawing_style,
    fill,
    hatch,
    line,
    marker,
    new_figure,
    read_style,
)
from experiments.plotting.comparison import measures_of, plot_comparison
from experiments.plotting.files import kind_of, picture_of, save, svg_text
from experiments.plotting.ratio import MOST_JOBS, difference, plot_differences
from experiments.plotting.schedule import (
    TOO_MANY,
    plot_quote,
    plot_schedule,
    plot_utilities,
)
from experiments.plotting.servers import plot_load

SHORT = oasis.Schedule("", np.array([[499, 0, 1]]), np.zeros((0, 3), dtype=int))
Made = tuple[oasis.Instance, oasis.Run]


@pytest.fixture(scope="module")
def many() -> Made:
    """600 jobs on a horizon that is longer than a picture has columns."""
    instance = oasis.generate(
        "calibrated", jobs=600, worker_servers=10, ps_servers=10, horizon=500, seed=2
    )
    return instance, oasis.simulate(instance, baselines.make("fifo"))


def test_a_schedule_of_many_jobs_has_all_their_bars_in_one_image(many: Made) -> None:
    instance, run = many
    ax = plot_schedule(instance, run.schedules)
    (bars,) = [found for found in ax.collections if isinstance(found, PolyCollection)]
    widths = [np.ptp(path.vertices[:, 0]) for path in bars.get_paths()]
    total = sum(plan.worker_slots for plan in run.schedules.values())
    assert np.dot(widths, bars.get_array()) == pytest.approx(total)
    assert svg_text(ax.figure).count("<path") < len(instance.jobs)
    few = replace(instance, jobs=instance.jobs[:TOO_MANY])
    assert plot_schedule(few, {}).get_rasterization_zorder() is None


def test_a_job_of_several_forms_is_named_with_the_one_that_runs() -> None:
    instance = oasis.generate("kinds", jobs=3, seed=1)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    labels = plot_schedule(instance, run.schedules).get_yticklabels()
    names = {label.get_text() for label in labels}
    assert run.schedules
    for job in instance.jobs:
        plan = run.schedules.get(job.id)
        kind = "" if plan is None else f": {list(job.speeds.values)[plan.form]}"
        assert f"{job.id}{kind}" in names


def test_of_many_curves_and_dots_some_are_shown_and_the_legend_says_how_many(many: Made) -> None:
    instance, run = many
    ax = plot_utilities(instance, run.schedules)
    (curves,) = ax.collections
    assert len(curves.get_segments()) == 100
    assert curves.get_label() == "utility of a job: 100 of 600 jobs shown"
    (dots,) = ax.lines
    assert len(dots.get_xdata()) == len(run.schedules)
    ax = plot_utilities(instance, {job.id: SHORT for job in instance.jobs})
    assert len(ax.lines[0].get_xdata()) == 200
    assert ax.lines[0].get_label() == "completed: 200 of 600 jobs shown"


def test_demand_over_a_long_horizon_is_a_step_a_slot(many: Made) -> None:
    description = describe_instance(many[0])
    ax = plot_load(description)
    first = next(load for load in description.loads if load.capacity > 0)
    steps = ax.patches[0].get_data()
    np.testing.assert_allclose(steps.values, 100 * first.wanted / first.capacity)
    assert (steps.edges[0], steps.edges[-1]) == (-0.5, 499.5)


# --- comparisons, ratios, quotes ----------------------------------------------------------------


def over_seeds(values: list[float], low: float | None, high: float | None) -> dict[str, Any]:
    mean = sum(values) / len(values)
    interval = {"mean": mean, "low": low, "high": high}
    return {"seeds": list(range(len(values))), "figures": {"total_utility": interval}}


def test_bars_over_seeds_have_their_intervals() -> None:
    rows = {
        "fifo": {"total_utility": 2.0, "over_seeds": over_seeds([1.0, 2.0, 3.0], 0.0, 4.5)},
        "drf": {"total_utility": 5.0},
    }
    ax = plot_comparison(Comparison("compare", rows, {"jobs": 3}), measure="utility")
    (bars,) = [found for found in ax.containers if hasattr(found, "errorbar") and found.errorbar]
    (segments,) = bars.errorbar.lines[2]
    spans = [part[:, 0].tolist() for part in segments.get_segments() if part.size]
    assert [span for span in spans if not np.isnan(span).any()] == [[0.0, 4.5]]


def test_jobs_are_counted_in_whole_ticks() -> None:
    row = {"admitted": 2, "finished": 1}
    ax = plot_comparison(Comparison("compare", {"a": row}, {}), measure="jobs")
    assert all(tick == int(tick) for tick in ax.get_xticks())


@pytest.mark.parametrize(
    ("seconds", "unit"), [(30.0, "seconds"), (600.0, "minutes"), (4e4, "hours")]
)
def test_times_of_a_trace_have_a_unit_that_reads_well(seconds: float, unit: str) -> None:
    names = ("mean_completion", "median_completion", "p95_completion", "mean_waiting")
    row = dict.fromkeys(names, seconds) | {"gpu_utilisation": 0.5}
    found = Comparison("replay", {"fifo": row}, {})
    assert list(measures_of(found)) == ["completion", "waiting", "use"]
    assert plot_comparison(found).get_xlabel() == f"time ({unit})"
    assert plot_comparison(found, measure="use").containers[0][0].get_width() == 50.0
    with pytest.raises(ValueError, match="measure: expected one of completion, waiting, use"):
        plot_comparison(found, measure="jobs")


def test_jobs_that_make_the_difference_add_up() -> None:
    def row(k: int) -> JobComparison:
        online = Finish(3, 1.0 + k) if k % 3 else None
        offline = Finish(2, 2.5 * k) if k % 4 else None
        return JobComparison(f"j{k}", 0, online, offline)

    rows = [row(k) for k in range(40)]
    ax = plot_differences(rows, who="fifo")
    widths = [bar.get_width() for bar in ax.patches]
    assert len(widths) == MOST_JOBS + 1
    assert sum(widths) == pytest.approx(sum(map(difference, rows)))
    largest = sorted((abs(difference(one)) for one in rows), reverse=True)[:MOST_JOBS]
    assert [abs(width) for width in widths[:-1]] == largest
    assert "others" in ax.get_yticklabels()[-1].get_text()
    assert "that of fifo" in ax.get_xlabel()
    same = plot_differences([JobComparison("a", 0, Finish(1, 2.0), Finish(1, 2.0))])
    assert [text.get_text() for text in same.texts] == ["none: every job earns the same"]


def test_a_quote_shows_the_counts_of_its_slots_or_the_factor_that_it_lacks() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=23)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    (rejected,) = [d for d in run.decisions if d.rejection is not None]
    ax = plot_quote(rejected)
    assert [bar.get_width() for bar in ax.patches] == [1.0, rejected.rejection.utility_factor]
    taken = next(d for d in run.decisions if d.schedule is not None)
    ax = plot_quote(taken)
    assert sum(bar.get_height() for bar in ax.containers[0]) == taken.schedule.worker_slots
    hopeless = oasis.Decision.rejected("a", lambda: ("no room", None))
    assert "no schedule at any price" in plot_quote(hopeless).get_title()


# --- styles, documents --------------------------------------------------------------------------


def test_a_style_reaches_colours_and_leaves_no_trace(tmp_path: Any) -> None:
    before = dict(mpl.rcParams)
    path = tmp_path / "mine.mplstyle"
    path.write_text("axes.prop_cycle: cycler(color=['ff0000', '00ff00'])\ntext.color: 0000ff\n")
    assert colour(0) == PALETTE[0]
    with drawing_style(path):
        assert (colour(0), colour(3)) == ("#ff0000", "#00ff00")
        row = {"total_utility": 2.0}
        ax = plot_comparison(Comparison("compare", {"a": row}, {}), measure="utility")
        assert ax.patches[0].get_facecolor()[:3] == (1.0, 0.0, 0.0)
        assert ax.patches[0].get_edgecolor()[:3] == (0.0, 0.0, 1.0)
    with drawing_style(None):
        assert colour(0) == PALETTE[0]
    assert dict(mpl.rcParams) == before
    assert read_style("grayscale")["image.cmap"] == "gray"


def test_more_than_eight_of_a_kind_differ_in_something() -> None:
    assert len({(colour(k), line(k), marker(k)) for k in range(64)}) == 64
    assert len({(fill(k), hatch(k)) for k in range(64)}) == 64


def test_a_picture_for_print_has_the_width_of_a_column_and_no_caption(tmp_path: Path) -> None:
    rows = {f"a long name {k}": {"total_utility": 2.0} for k in range(9)}

    def drawn(style: str | None) -> Figure:
        with drawing_style(style):
            figure = new_figure(7.0, 4.0)
            ax = figure.add_subplot()
            ax.set_title("what the caption says")
            figure.supxlabel("5 seeds")
            ax.bar(list(rows), [1.0] * len(rows))
            save(figure, tmp_path / f"{style}.png")
        return figure

    plain, printed = drawn(None), drawn("paper")
    assert plain.get_size_inches().tolist() == [7.0, 4.0]
    assert printed.get_size_inches().tolist() == [3.5, 2.2]
    assert (plain.axes[0].get_title(), printed.axes[0].get_title()) == ("what the caption says", "")
    assert (plain.get_supxlabel(), printed.get_supxlabel()) == ("5 seeds", "")
    labels = printed.axes[0].get_xticklabels()
    assert [label.get_text() for label in labels] == list(rows)
    assert {label.get_fontsize() for label in labels} == {8.0}
    assert {label.get_rotation() for label in labels} == {30.0}
    assert struct.unpack(">I", (tmp_path / "paper.png").read_bytes()[16:20]) == (1050,)


def test_colours_are_told_apart_without_red_or_green_and_neighbours_in_grey() -> None:
    """Machado et al. (2009): what people without red or green cones see of each colour."""
    blind = {
        "red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    }
    rgb = np.array([mpl.colors.to_rgb(name) for name in PALETTE])
    for matrix in blind.values():
        seen = np.clip(rgb @ np.array(matrix).T, 0, 1)
        apart = np.linalg.norm(seen[:, None] - seen[None, :], axis=2)[np.triu_indices(8, 1)]
        assert apart.min() > 0.13
    grey = rgb @ np.array([0.2126, 0.7152, 0.0722])
    assert np.abs(np.diff(grey)).min() > 0.07


def test_documents_are_drawn_by_their_kind(tmp_path: Any) -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    path = tmp_path / "i.json"
    oasis.write(instance, path)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    data = run.to_dict() | {"instance": instance_reference(instance, str(path))}
    assert (kind_of(data), kind_of({"schedules": []})) == ("run", "schedules")
    assert named_instance(data) == (path, instance_digest(instance))
    other = oasis.generate("testbed", jobs=3, seed=2)
    given = {instance_digest(one): one for one in (other, instance)}
    for known in ({}, given):
        found = instance_of(data, known)
        assert found is not None
        assert len(found.jobs) == 4
    oasis.write(other, path)
    with pytest.raises(oasis.OasisError, match="another instance"):
        instance_of(data, {})
    path.unlink()
    assert instance_of(data, {}) is None
    with pytest.raises(oasis.OasisError, match="instance: expected the instance"):
        picture_of(data, "a", None)
    assert len(picture_of(data, "a", instance).axes) >= 6
