"""The pictures show the figures of the run, are readable, and are the same bytes each time."""

from __future__ import annotations

import itertools
import re
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
from experiments.evaluation.comparison import compare
from experiments.plotting.canvas import new_figure
from experiments.plotting.comparison import plot_comparison
from experiments.plotting.files import (
    FORMATS,
    comparison_page,
    ratio_page,
    run_page,
    save,
    svg_text,
)
from experiments.plotting.ratio import plot_ratio
from experiments.plotting.schedule import plot_schedule, plot_utilities
from experiments.plotting.servers import group_of, plot_prices, plot_utilisation
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


# --- what is drawn is what was measured ---------------------------------------------------------


@pytest.mark.parametrize("group", ["worker", "ps"])
def test_utilisation_is_what_the_ledger_holds(instance, run, scheduler, group):
    used = getattr(scheduler.ledger, f"{group}_used")
    capacity = getattr(instance.cluster, f"{group}_capacity")
    r = instance.cluster.resources.index("cpu")
    shown = cells(plot_utilisation(instance, run.schedules, group=group, resource="cpu"))
    np.testing.assert_allclose(shown, 100 * used[:, :, r] / capacity[:, r], rtol=1e-12)
    fullest = cells(plot_utilisation(instance, run.schedules, group=group))
    shares = used / np.where(capacity > 0, capacity, np.inf)
    np.testing.assert_allclose(fullest, 100 * shares.max(axis=2), rtol=1e-12)
    assert fullest.max() > 90
    whole = group_of(instance, run.schedules, group)
    np.testing.assert_allclose(whole.used, used, rtol=1e-12)
    totals = used.sum(axis=(0, 1)) / np.maximum(capacity.sum(axis=0), 1e-9)
    assert whole.busiest() == instance.cluster.resources[int(totals.argmax())]


@pytest.mark.parametrize("group", ["worker", "ps"])
def test_prices_are_those_of_the_ledger(instance, run, scheduler, group):
    prices = getattr(scheduler.ledger, f"{group}_prices")
    for r, resource in enumerate(instance.cluster.resources):
        capacity = getattr(instance.cluster, f"{group}_capacity")[:, r]
        if capacity.any():
            expected = np.where(capacity > 0, prices[:, :, r], np.nan)
            shown = cells(plot_prices(instance, run, group=group, resource=resource))
            np.testing.assert_allclose(shown, expected, rtol=1e-9)


def test_a_server_without_the_resource_is_hatched_not_idle(instance, run):
    shown = cells(plot_utilisation(instance, run.schedules, resource="gpu"))
    without = instance.cluster.worker_capacity[:, 0] == 0
    assert without.any()
    assert np.isnan(shown[:, without]).all()
    assert not np.isnan(shown[:, ~without]).any()


def test_bars_of_a_job_hold_its_worker_slots(instance, run):
    ax = plot_schedule(instance, run.schedules)
    (bars,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    rows = [job.id for job in instance.jobs_by_arrival()]
    done = dict.fromkeys(run.schedules, 0.0)
    last = dict.fromkeys(run.schedules, 0.0)
    for path, workers in zip(bars.get_paths(), bars.get_array(), strict=True):
        (left, low), (right, high) = path.vertices.min(axis=0), path.vertices.max(axis=0)
        name = rows[round((low + high) / 2)]
        done[name] += workers * (right - left)
        last[name] = max(last[name], right)
    assert done == {name: s.worker_slots for name, s in run.schedules.items()}
    assert last == {name: s.completion + 0.5 for name, s in run.schedules.items()}


def test_jobs_that_do_not_run_are_marked_at_their_arrival(instance, run):
    ax = plot_schedule(instance, run.schedules)
    rows = instance.jobs_by_arrival()
    shown = line(ax, "arrival, rejected or unfinished")
    out = [job for job in rows if job.id not in run.schedules]
    assert shown == [(job.arrival, rows.index(job)) for job in out]


def test_a_pause_is_no_bar(instance, run):
    assert any(
        set(s.workers[:, 0].tolist()) != set(range(s.start, s.completion + 1))
        for s in run.schedules.values()
    )
    ax = plot_schedule(instance, run.schedules)
    (bars,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert (bars.get_array() > 0).all()


def test_dots_are_the_utilities_of_the_run(instance, run):
    ax = plot_utilities(instance, run.schedules)
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
        points = line(plot_utilities(few), job.id)
        assert points == [(d, float(job.utility(d))) for d in range(few.horizon - job.arrival)]
    (curves,) = [c for c in plot_utilities(instance).collections if isinstance(c, LineCollection)]
    assert len(curves.get_segments()) == len(instance.jobs)


@pytest.mark.parametrize(
    ("measure", "keys"),
    [
        ("utility", ["total_utility"]),
        ("jobs", ["admitted", "finished"]),
        ("completion", ["mean_completion", "p95_completion"]),
    ],
)
def test_bars_of_a_comparison_are_its_figures(comparison, measure, keys):
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


# --- where it is drawn --------------------------------------------------------------------------


def test_axes_that_are_given_are_drawn_on_and_returned(instance, run, comparison, ratio):
    draws = [
        partial(plot_utilisation, instance, run.schedules),
        partial(plot_prices, instance, run),
        partial(plot_schedule, instance, run.schedules),
        partial(plot_utilities, instance, run.schedules),
        partial(plot_comparison, comparison),
        partial(plot_ratio, {"a": ratio}),
    ]
    for draw in draws:
        ax = new_figure(6, 4).add_subplot()
        assert draw(ax=ax) is ax
        assert ax.has_data()
        assert ax.get_xlabel()
        assert ax.get_ylabel()
        assert draw().figure is not ax.figure


def test_drawing_leaves_no_trace_in_matplotlib(instance, run, tmp_path):
    before = dict(mpl.rcParams)
    save(run_page(instance, run), tmp_path / "a.svg")
    assert dict(mpl.rcParams) == before
    unwanted = "{'matplotlib.pyplot', 'offline'}"  # the latter needs another extra
    code = f"import sys, experiments.plotting; sys.exit(len({unwanted} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("suffix", FORMATS)
def test_same_run_gives_the_same_bytes_without_a_date(instance, run, tmp_path, suffix):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        save(run_page(instance, replace(run, bounds=None)), path)
    content = first.read_bytes()
    assert content == second.read_bytes()
    assert len(content) > 1000
    assert b"date" not in content.lower().replace(b"/predate", b"")


def test_a_failed_drawing_leaves_the_old_picture(instance, run, tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    figure = run_page(instance, run)
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save(figure, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# --- readable -----------------------------------------------------------------------------------


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
    assert_readable(run_page(drawn, oasis.simulate(drawn, maker)))


def test_pages_of_comparison_and_ratio_are_readable(comparison, ratio):
    assert_readable(comparison_page(comparison))
    assert_readable(ratio_page({"a name that is much too long for this": ratio, "b": ratio}))


def test_colours_darken_steadily_in_grey():
    from experiments.plotting.canvas import COLORMAP

    red, green, blue = COLORMAP(np.linspace(0, 1, 256))[:, :3].T
    grey = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert (np.diff(grey) < 1e-3).all()
    assert grey[0] - grey[-1] > 0.8


# --- what cannot be drawn -----------------------------------------------------------------------


def test_prices_of_a_policy_without_prices_are_refused(instance):
    run = oasis.simulate(instance, baselines.make("fifo"))
    with pytest.raises(ValueError, match="policy fifo has no prices"):
        plot_prices(instance, run)


def test_unknown_names_are_refused_with_what_there_is(instance, run, comparison):
    with pytest.raises(ValueError, match="group: expected one of worker, ps, got 'gpu'"):
        plot_utilisation(instance, run.schedules, group="gpu")
    with pytest.raises(ValueError, match=r"resource: expected one of cpu, .*, got 'gpu'"):
        plot_utilisation(instance, run.schedules, group="ps", resource="gpu")
    with pytest.raises(ValueError, match="measure: expected one of utility, jobs, completion"):
        plot_comparison(comparison, measure="joy")
    with pytest.raises(ValueError, match=r"a.gif: expected a picture ending in .png, .svg, .pdf"):
        save(plot_utilities(instance).figure, "a.gif")


def test_a_clip_path_is_named_after_its_turn_not_its_place():
    """A layout that is solved for has other last digits in each run."""
    texts = []
    for shift in (0.0, 1e-13):
        figure = Figure((2.0, 2.0))
        for left in (0.1 + shift, 0.6 + shift):
            figure.add_axes((left, 0.1, 0.3, 0.8)).plot([0, 1], [0, 1])
        texts.append(svg_text(figure))
    assert texts[0] == texts[1]
    assert sorted(set(re.findall(r"url\(#(\w+)\)", texts[0]))) == ["clip1", "clip2"]
    assert re.findall(r'clipPath id="(\w+)"', texts[0]) == ["clip1", "clip2"]


def test_a_group_without_a_server_has_no_map_of_its_own() -> None:
    instance = oasis.generate("testbed", jobs=3, ps_servers=0, seed=1)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    for plot in (
        partial(plot_utilisation, instance, run.schedules),
        partial(plot_prices, instance, run),
    ):
        with pytest.raises(ValueError, match="group: expected one with servers, got 'ps'"):
            plot(group="ps")
