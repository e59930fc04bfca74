"""The pictures show what they are of, are readable, and are the same bytes each time."""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

import baselines
import oasis
from experiments import competitive_ratio
from experiments.evaluation import provenance
from experiments.evaluation.comparison import Comparison, Finish, JobComparison, compare
from experiments.evaluation.description import describe_instance
from experiments.plotting import canvas, files, schedule
from experiments.plotting.comparison import measures_of, plot_comparison
from experiments.plotting.ratio import MOST_JOBS, difference, plot_differences, plot_ratio
from experiments.plotting.servers import group_of, plot_load, plot_prices, plot_utilisation
from oasis.solvers import Status

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "congested.json"


@pytest.fixture(scope="module")
def instance():
    return oasis.read(EXAMPLE)


@pytest.fixture(scope="module")
def scheduler(instance):
    return oasis.OASiS.from_instance(instance, min_utility_fraction=1e-3)


@pytest.fixture(scope="module")
def run(instance, scheduler):
    return oasis.simulate(instance, scheduler)


@pytest.fixture(scope="module")
def comparison(instance):
    makers = {name: partial(baselines.make, name) for name in ("fifo", "drf", "srtf", "las")}
    return compare(instance, makers)


@pytest.fixture(scope="module")
def ratio(instance):
    paper = oasis.OASiS.from_instance(instance, min_utility_fraction=1e-3)
    return competitive_ratio(instance, policy=paper)


def cells(ax):
    (image,) = ax.images
    return np.ma.filled(image.get_array().astype(float), np.nan).T


def line(ax, label):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return list(zip(*map(list, found.get_data()), strict=True))


@pytest.mark.parametrize("group", ["worker", "ps"])
def test_utilisation_and_prices_are_those_of_the_ledger(instance, run, scheduler, group):
    """Of a server without the resource there is neither."""
    used = getattr(scheduler.ledger, f"{group}_used")
    prices = getattr(scheduler.ledger, f"{group}_prices")
    capacity = getattr(instance.cluster, f"{group}_capacity")
    shares = np.where(capacity > 0, used / np.where(capacity > 0, capacity, 1.0), np.nan)
    for r, resource in enumerate(instance.cluster.resources):
        if capacity[:, r].any():
            chosen = {"group": group, "resource": resource}
            shown = cells(plot_utilisation(instance, run.schedules, **chosen))
            np.testing.assert_allclose(shown, 100 * shares[:, :, r], rtol=1e-12)
            expected = np.where(capacity[:, r] > 0, prices[:, :, r], np.nan)
            np.testing.assert_allclose(cells(plot_prices(instance, run, **chosen)), expected, 1e-9)
    assert np.isnan(shares).any()
    fullest = cells(plot_utilisation(instance, run.schedules, group=group))
    np.testing.assert_allclose(fullest, 100 * np.nanmax(shares, axis=2), rtol=1e-12)
    assert fullest.max() > 90
    whole = group_of(instance, run.schedules, group)
    np.testing.assert_allclose(whole.used, used, rtol=1e-12)
    totals = used.sum(axis=(0, 1)) / np.maximum(capacity.sum(axis=0), 1e-9)
    assert whole.busiest() == instance.cluster.resources[int(totals.argmax())]


def test_bars_of_a_job_hold_its_worker_slots(instance, run):
    ax = schedule.plot_schedule(instance, run.schedules)
    (bars,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    rows = [job.id for job in instance.jobs_by_arrival()]
    done = dict.fromkeys(run.schedules, 0.0)
    last = dict.fromkeys(run.schedules, 0.0)
    for path, workers in zip(bars.get_paths(), bars.get_array(), strict=True):
        (left, low), (right, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        name = rows[round((low + high) / 2)]
        assert workers > 0, "a pause is no bar"
        done[name] += workers * (right - left)
        last[name] = max(last[name], right)
    assert done == {name: s.worker_slots for name, s in run.schedules.items()}
    assert last == {name: s.completion + 0.5 for name, s in run.schedules.items()}
    out = [job for job in instance.jobs_by_arrival() if job.id not in run.schedules]
    marks = line(ax, "arrival, rejected or unfinished")
    assert marks == [(job.arrival, rows.index(job.id)) for job in out]


def test_dots_are_the_utilities_of_the_run(instance, run):
    ax = schedule.plot_utilities(instance, run.schedules)
    arrival = {job.id: job.arrival for job in instance.jobs}
    expected = [
        (d.completion - arrival[d.job_id], pytest.approx(d.utility))
        for d in run.decisions
        if d.admitted
    ]
    assert sorted(line(ax, "completed")) == sorted(expected, key=lambda e: (e[0], e[1].expected))


def test_curves_are_the_utilities_of_the_jobs(instance):
    few = replace(instance, jobs=instance.jobs[:3])
    for job in few.jobs:
        points = line(schedule.plot_utilities(few), job.id)
        assert points == [(d, float(job.utility(d))) for d in range(few.horizon - job.arrival)]
    (curves,) = [
        c for c in schedule.plot_utilities(instance).collections if isinstance(c, LineCollection)
    ]
    assert len(curves.get_segments()) == len(instance.jobs)


def test_bars_of_a_comparison_are_its_figures(comparison):
    for measure, keys in (
        ("utility", ["total_utility"]),
        ("jobs", ["admitted", "finished"]),
        ("completion", ["mean_completion", "p95_completion"]),
    ):
        ax = plot_comparison(comparison, measure=measure)
        for key, bars in zip(keys, ax.containers, strict=True):
            widths = [bar.get_width() for bar in bars]
            assert widths == [figures[key] or 0.0 for figures in comparison.policies.values()]
        names = [label.get_text().splitlines()[0] for label in ax.get_yticklabels()]
        assert names == list(comparison.policies)


def test_ratio_stands_beside_its_bound(ratio):
    ax = plot_ratio({"congested": ratio})
    assert line(ax, "ratio, proven") == [(ratio.ratio, 0)]
    ((alpha, _),) = line(ax, "2 alpha (Theorem 4 as printed)")
    assert alpha == 2 * ratio.certificate.alpha
    assert any("10^{8}" in text.get_text() for text in ax.texts)  # the corrected bound


def test_unproven_ratio_is_an_interval_never_a_dot(ratio):
    bound = 1.5 * ratio.offline.objective
    offline = replace(ratio.offline, status=Status.TIME_LIMIT, upper_bound=bound)
    open_ended = replace(ratio, offline=offline)
    ax = plot_ratio({"open": open_ended})
    (span,) = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_marker() == "|"]
    assert list(span.get_xdata()) == [open_ended.lower, open_ended.upper]
    assert "ratio, proven" not in [line.get_label() for line in ax.lines]


def test_axes_that_are_given_are_drawn_on_and_returned(instance, run, comparison, ratio):
    draws = [
        partial(plot_utilisation, instance, run.schedules),
        partial(plot_prices, instance, run),
        partial(schedule.plot_schedule, instance, run.schedules),
        partial(schedule.plot_utilities, instance, run.schedules),
        partial(plot_comparison, comparison),
        partial(plot_ratio, {"a": ratio}),
    ]
    for draw in draws:
        ax = canvas.new_figure(6, 4).add_subplot()
        assert draw(ax=ax) is ax
        assert ax.has_data()
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert draw().figure is not ax.figure


def test_drawing_leaves_no_trace_in_matplotlib(instance, run, tmp_path):
    before = dict(mpl.rcParams)
    files.save(files.run_page(instance, run), tmp_path / "a.svg")
    assert dict(mpl.rcParams) == before
    unwanted = "{'matplotlib.pyplot', 'offline'}"  # the latter needs another extra
    code = f"import sys, experiments.plotting; sys.exit(len({unwanted} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("suffix", files.FORMATS)
def test_same_run_gives_the_same_bytes_without_a_date(instance, run, tmp_path, suffix):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        files.save(files.run_page(instance, replace(run, bounds=None)), path)
    content = first.read_bytes()
    assert content == second.read_bytes()
    assert len(content) > 1000
    assert b"date" not in content.lower().replace(b"/predate", b"")


def assert_readable(figure):
    """Nothing is cut off, and no tick label of an axis lies on its neighbour."""
    figure.canvas.draw()
    whole = figure.bbox.expanded(1.005, 1.005)
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert whole.x0 <= box.x0
        assert box.x1 <= whole.x1
        assert whole.y0 <= box.y0
        assert box.y1 <= whole.y1
        for axis, side in ((ax.xaxis, 0), (ax.yaxis, 1)):
            limits = sorted(axis.get_view_interval())
            boxes = [
                label.get_window_extent()
                for tick in axis.get_major_ticks()
                for label in (tick.label1, tick.label2)
                if limits[0] <= tick.get_loc() <= limits[1]
                and label.get_visible()
                and label.get_text()
            ]
            spans = sorted((b.min[side], b.max[side]) for b in boxes)
            for (_, end), (begin, _) in itertools.pairwise(spans):
                assert end <= begin + 0.5, ax.get_title()


def renamed(instance):
    jobs = [replace(job, id=f"a-job-with-a-very-long-name-{job.id}") for job in instance.jobs]
    return replace(instance, jobs=tuple(jobs))


CASES = {
    "shipped": lambda inst: inst,
    "one job": lambda inst: replace(inst, jobs=inst.jobs[:1]),
    "no job": lambda inst: replace(inst, jobs=()),
    "long names": renamed,
    "no job admitted": lambda inst: replace(
        inst, jobs=tuple(replace(job, epochs=10**6) for job in inst.jobs)
    ),
    "large": lambda _: oasis.generate("calibrated", jobs=100, horizon=100, seed=1),
}


PAGES = [*((case, "oasis") for case in CASES), ("shipped", "fifo"), ("large", "fifo")]


@pytest.mark.parametrize(("case", "policy"), PAGES)
def test_page_of_a_run_is_readable(instance, case, policy):
    drawn = CASES[case](instance)
    maker = oasis.OASiS.from_instance(drawn) if policy == "oasis" else baselines.make(policy)
    assert_readable(files.run_page(drawn, oasis.simulate(drawn, maker)))


def test_pages_of_comparison_and_ratio_are_readable(comparison, ratio):
    assert_readable(files.comparison_page(comparison))
    assert_readable(files.ratio_page({"a name that is much too long for this": ratio, "b": ratio}))


def test_what_cannot_be_drawn_is_refused_with_what_can(instance, run, comparison):
    draw = partial(plot_utilisation, instance, run.schedules)
    alone = oasis.generate("testbed", jobs=3, ps_servers=0, seed=1)
    fifo = oasis.simulate(instance, baselines.make("fifo"))
    for drawing, said in (
        (partial(draw, group="gpu"), "group: expected one of worker, ps, got 'gpu'"),
        (
            partial(draw, group="ps", resource="gpu"),
            "resource: expected one of cpu, ",
        ),
        (
            partial(plot_comparison, comparison, measure="joy"),
            "measure: expected one of utility",
        ),
        (
            partial(files.save, Figure(), "a.gif"),
            r"a.gif: expected a picture ending in .png, .svg, .pdf",
        ),
        (partial(plot_prices, instance, fifo), "policy fifo has no prices"),
        (partial(plot_utilisation, alone, {}, group="ps"), "group: expected one with servers, got"),
    ):
        with pytest.raises(ValueError, match=said):
            drawing()


def test_a_clip_path_is_named_after_its_turn_not_its_place():
    """A layout that is solved for has other last digits in each run."""
    texts = []
    for shift in (0.0, 1e-13):
        figure = Figure((2.0, 2.0))
        for left in (0.1 + shift, 0.6 + shift):
            figure.add_axes((left, 0.1, 0.3, 0.8)).plot([0, 1], [0, 1])
        texts.append(files.svg_text(figure))
    assert texts[0] == texts[1]
    assert sorted(set(re.findall(r"url\(#(\w+)\)", texts[0]))) == ["clip1", "clip2"]
    assert re.findall(r'clipPath id="(\w+)"', texts[0]) == ["clip1", "clip2"]


SHORT = oasis.Schedule("", np.array([[499, 0, 1]]), np.zeros((0, 3), dtype=int))


@pytest.fixture(scope="module")
def many():
    """600 jobs on a horizon that is longer than a picture has columns."""
    instance = oasis.generate(
        "calibrated", jobs=600, worker_servers=10, ps_servers=10, horizon=500, seed=2
    )
    return instance, oasis.simulate(instance, baselines.make("fifo"))


def test_a_schedule_of_many_jobs_has_all_their_bars_in_one_image(many):
    instance, run = many
    ax = schedule.plot_schedule(instance, run.schedules)
    (bars,) = [found for found in ax.collections if isinstance(found, PolyCollection)]
    widths = [np.ptp(path.vertices[:, 0]) for path in bars.get_paths()]
    total = sum(plan.worker_slots for plan in run.schedules.values())
    assert np.dot(widths, bars.get_array()) == pytest.approx(total)
    assert files.svg_text(ax.figure).count("<path") < len(instance.jobs)
    few = replace(instance, jobs=instance.jobs[: schedule.TOO_MANY])
    assert schedule.plot_schedule(few, {}).get_rasterization_zorder() is None


def test_a_job_of_several_forms_is_named_with_the_one_that_runs():
    instance = oasis.generate("kinds", jobs=3, seed=1)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    labels = schedule.plot_schedule(instance, run.schedules).get_yticklabels()
    names = {label.get_text() for label in labels}
    assert run.schedules
    for job in instance.jobs:
        plan = run.schedules.get(job.id)
        kind = "" if plan is None else f": {list(job.speeds.values)[plan.form]}"
        assert f"{job.id}{kind}" in names


def test_of_many_curves_and_dots_some_are_shown_and_the_legend_says_how_many(many):
    instance, run = many
    ax = schedule.plot_utilities(instance, run.schedules)
    (curves,) = ax.collections
    assert len(curves.get_segments()) == 100
    assert curves.get_label() == "utility of a job: 100 of 600 jobs shown"
    (dots,) = ax.lines
    assert len(dots.get_xdata()) == len(run.schedules)
    ax = schedule.plot_utilities(instance, {job.id: SHORT for job in instance.jobs})
    assert len(ax.lines[0].get_xdata()) == 200
    assert ax.lines[0].get_label() == "completed: 200 of 600 jobs shown"


def test_demand_over_a_long_horizon_is_a_step_a_slot(many):
    description = describe_instance(many[0])
    ax = plot_load(description)
    first = next(load for load in description.loads if load.capacity > 0)
    steps = ax.patches[0].get_data()
    np.testing.assert_allclose(steps.values, 100 * first.wanted / first.capacity)
    assert (steps.edges[0], steps.edges[-1]) == (-0.5, 499.5)


def test_rows_without_names_have_room_for_one():
    ax = Figure().subplots()
    canvas.name_rows(ax, [])
    assert ax.get_ylim() == (0.5, -0.5)


def test_bars_over_seeds_have_their_intervals():
    figures = {"total_utility": {"mean": 2.0, "low": 0.0, "high": 4.5}}
    rows = {
        "fifo": {"total_utility": 2.0, "over_seeds": {"seeds": [0, 1, 2], "figures": figures}},
        "drf": {"total_utility": 5.0},
    }
    ax = plot_comparison(Comparison("compare", rows, {"jobs": 3}), measure="utility")
    (bars,) = [found for found in ax.containers if hasattr(found, "errorbar") and found.errorbar]
    (segments,) = bars.errorbar.lines[2]
    spans = [part[:, 0].tolist() for part in segments.get_segments() if part.size]
    assert [span for span in spans if not np.isnan(span).any()] == [[0.0, 4.5]]


def test_jobs_are_counted_in_whole_ticks():
    row = {"admitted": 2, "finished": 1}
    ax = plot_comparison(Comparison("compare", {"a": row}, {}), measure="jobs")
    assert all(tick == int(tick) for tick in ax.get_xticks())


@pytest.mark.parametrize(
    ("seconds", "unit"), [(30.0, "seconds"), (600.0, "minutes"), (4e4, "hours")]
)
def test_times_of_a_trace_have_a_unit_that_reads_well(seconds, unit):
    names = ("mean_completion", "median_completion", "p95_completion", "mean_waiting")
    row = dict.fromkeys(names, seconds) | {"gpu_utilisation": 0.5}
    found = Comparison("replay", {"fifo": row}, {})
    assert list(measures_of(found)) == ["completion", "waiting", "use"]
    assert plot_comparison(found).get_xlabel() == f"time ({unit})"
    assert plot_comparison(found, measure="use").containers[0][0].get_width() == 50.0
    with pytest.raises(ValueError, match="measure: expected one of completion, waiting, use"):
        plot_comparison(found, measure="jobs")


def test_jobs_that_make_the_difference_add_up():
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


def test_a_quote_shows_the_counts_of_its_slots_or_the_factor_that_it_lacks():
    instance = oasis.generate("testbed", jobs=4, seed=23)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    (rejected,) = [d for d in run.decisions if d.rejection is not None]
    ax = schedule.plot_quote(rejected)
    assert [bar.get_width() for bar in ax.patches] == [1.0, rejected.rejection.utility_factor]
    taken = next(d for d in run.decisions if d.schedule is not None)
    ax = schedule.plot_quote(taken)
    assert sum(bar.get_height() for bar in ax.containers[0]) == taken.schedule.worker_slots
    hopeless = oasis.Decision.rejected("a", lambda: ("no room", None))
    assert "no schedule at any price" in schedule.plot_quote(hopeless).get_title()


def test_a_style_reaches_colours_and_leaves_no_trace(tmp_path):
    before = dict(mpl.rcParams)
    path = tmp_path / "mine.mplstyle"
    path.write_text("axes.prop_cycle: cycler(color=['ff0000', '00ff00'])\ntext.color: 0000ff\n")
    assert canvas.colour(0) == canvas.PALETTE[0]
    with canvas.drawing_style(path):
        assert (canvas.colour(0), canvas.colour(3)) == ("#ff0000", "#00ff00")
        row = {"total_utility": 2.0}
        ax = plot_comparison(Comparison("compare", {"a": row}, {}), measure="utility")
        assert ax.patches[0].get_facecolor()[:3] == (1.0, 0.0, 0.0)
        assert ax.patches[0].get_edgecolor()[:3] == (0.0, 0.0, 1.0)
    with canvas.drawing_style(None):
        assert canvas.colour(0) == canvas.PALETTE[0]
    assert dict(mpl.rcParams) == before
    assert canvas.read_style("grayscale")["image.cmap"] == "gray"
    path.write_text("lines.colour: red\n")
    for style, says in (("nix", "^style: expected paper, a file"), (path, "lines.colour")):
        with pytest.raises(oasis.InputError, match=says):
            canvas.read_style(style)


def test_more_than_eight_of_a_kind_differ_in_something():
    assert len({(canvas.colour(k), canvas.line(k), canvas.marker(k)) for k in range(64)}) == 64
    assert len({(canvas.fill(k), canvas.hatch(k)) for k in range(64)}) == 64


def test_a_picture_for_print_has_the_width_of_a_column_and_no_caption(tmp_path):
    rows = {f"a long name {k}": {"total_utility": 2.0} for k in range(9)}

    def drawn(style: str | None) -> Figure:
        with canvas.drawing_style(style):
            figure = canvas.new_figure(7.0, 4.0)
            ax = figure.add_subplot()
            ax.set_title("what the caption says")
            figure.supxlabel("5 seeds")
            ax.bar(list(rows), [1.0] * len(rows))
            files.save(figure, tmp_path / f"{style}.png")
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


def test_colours_are_told_apart_without_red_or_green_and_neighbours_in_grey():
    """Machado et al. (2009): what people without red or green cones see of each colour."""
    blind = {
        "red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    }
    rgb = np.array([mpl.colors.to_rgb(name) for name in canvas.PALETTE])
    for matrix in blind.values():
        seen = np.clip(rgb @ np.array(matrix).T, 0, 1)
        apart = np.linalg.norm(seen[:, None] - seen[None, :], axis=2)[np.triu_indices(8, 1)]
        assert apart.min() > 0.13
    grey = rgb @ np.array([0.2126, 0.7152, 0.0722])
    assert np.abs(np.diff(grey)).min() > 0.07


def test_documents_are_drawn_by_their_kind_on_their_instance(tmp_path):
    instance, path = oasis.generate("testbed", jobs=4, seed=1), tmp_path / "i.json"
    oasis.write(instance, path)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    data = run.to_dict() | {"instance": provenance.instance_reference(instance, str(path))}
    assert (files.kind_of(data), files.kind_of({"schedules": []})) == ("run", "schedules")
    assert provenance.named_instance(data) == (path, provenance.instance_digest(instance))
    other = oasis.generate("testbed", jobs=3, seed=2)
    given = {provenance.instance_digest(one): one for one in (other, instance)}
    for known in ({}, given):
        assert len(provenance.instance_of(data, known).jobs) == 4
    oasis.write(other, path)
    with pytest.raises(oasis.OasisError, match="another instance"):
        provenance.instance_of(data, {})
    path.unlink()
    assert provenance.instance_of(data, {}) is None
    with pytest.raises(oasis.OasisError, match="instance: expected the instance"):
        files.picture_of(data, "a", None)
    assert len(files.picture_of(data, "a", instance).axes) >= 6
