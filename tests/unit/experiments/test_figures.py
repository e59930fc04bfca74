"""Figures of the paper made again: what the rows say, what is drawn, what is written."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from matplotlib.container import ErrorbarContainer
from pyarrow import parquet

from experiments.figures import FIGURES
from experiments.figures.figure import (
    reproduce,
)
from experiments.figures.oasis import FIG3
from experiments.figures.settings import SHOWN, FigureSettings
from experiments.sweep.cells import expand, sweep_config
from tests.builders import exit_code as call
from tests.unit.experiments.test_plotting import assert_readable

SMALL = FigureSettings(seeds=2, scale=0.1)


def cell(policy="oasis", seed=0, utility=1.0, **more):
    return {
        "policy.name": policy,
        "policy.min_utility_fraction": 0.7 if policy == "oasis" else None,
        "instance.jobs": 100,
        "seed": seed,
        "total_utility": utility,
        "admitted": 3,
        "finished": 2,
        **more,
    }


NAMES = ["fig3", "fig4", "fig5", "fig6", "fig8", "fig9"]

# --- numbers ------------------------------------------------------------------------------------


def test_rows_of_fig3_hold_means_firsts_and_published_numbers():
    cells = [cell(utility=u, seed=k) for k, u in enumerate((10.0, 20.0, 30.0))]
    cells += [cell("rrh", seed=k, utility=u) for k, u in enumerate((15.0, 15.0, 15.0))]
    oasis, rrh = FIGURES["fig3"].table(cells, FigureSettings())
    assert (oasis["utility"], oasis["first"], oasis["published"]) == (20.0, 2, FIG3["oasis"][100])
    assert (rrh["utility"], rrh["first"], rrh["published"]) == (15.0, 1, FIG3["rrh"][100])
    small, _ = FIGURES["fig3"].table(cells, replace(SMALL, jobs=(100,)))
    assert small["published"] is None


def test_rows_of_fig4_leave_out_what_did_not_finish_and_say_so():
    late = {"lateness": [1.0, None, 3.0, -2.0, 7.0], "decay": [0.5, 0.5, 0.5, 4.5, 0.0]}
    sensitive, critical = FIGURES["fig4"].table(
        [cell(**late), cell(seed=1, **late)], FigureSettings()
    )
    assert (sensitive["jobs"], sensitive["finished"], sensitive["median"]) == (6, 4, 2.0)
    assert (critical["jobs"], critical["finished"], critical["median"]) == (2, 2, -2.0)
    assert (sensitive["seed_median"], sensitive["seeds"]) == (2.0, 2)
    (everyone,) = FIGURES["fig9"].table([cell(**late)], FigureSettings())
    assert (everyone["jobs"], everyone["finished"]) == (5, 4)


def ratio_cell(seed, ratio, bound, proven=True):
    where = {"instance.worker_servers": 2, "instance.ps_servers": 1}
    found = {"instance.priority": [1.0, 100.0], "ratio": ratio, "offline_upper_bound": bound}
    return cell(seed=seed, proven=proven, **where, **found)


def test_rows_of_fig5_count_only_proven_ratios_that_exist():
    cells = [
        ratio_cell(0, 2.0, 8.0),
        ratio_cell(1, 4.5, 9.0),
        ratio_cell(2, None, 0.0),  # nobody can earn anything
        ratio_cell(3, None, 7.0),  # OASiS earned nothing
        ratio_cell(4, None, 7.0, proven=False),
    ]
    (row,) = FIGURES["fig5"].table(cells, FigureSettings())
    assert (row["seeds"], row["proven"], row["ratios"], row["nothing_to_earn"]) == (5, 4, 2, 1)
    assert row["ratio"] == pytest.approx(3.0)
    assert (row["median"], row["smallest"], row["largest"]) == (3.25, 2.0, 4.5)


@pytest.mark.parametrize("seeds", [2, 3])
def test_two_seeds_are_two_points_and_more_an_interval(seeds):
    cells = [cell(seed=seed, utility=value) for seed, value in enumerate((300.0, 200.0, 100.0))]
    figure = FIGURES["fig8"]
    rows = figure.table(cells[:seeds], FigureSettings())
    (axes,) = figure.draw(rows, "").axes
    points = [list(line.get_ydata()) for line in axes.lines if line.get_label() == "each seed"]
    assert points == ([[200.0, 300.0]] if seeds == 2 else [])
    has_interval = any(isinstance(entry, ErrorbarContainer) for entry in axes.containers)
    assert has_interval == (seeds > 2)


def test_rows_of_fig6_compare_within_a_seed():
    cells = [
        cell(seed=seed, utility=true * factor, alpha=9.0, **{"policy.scale": scale})
        for scale, factor in ((0.2, 1.5), (1.0, 1.0))
        for seed, true in enumerate((10.0, 1000.0))
    ]
    low, true = FIGURES["fig6"].table(cells, FigureSettings())
    assert (low["relative"], low["relative_low"], low["relative_high"]) == (1.5, 1.5, 1.5)
    assert (low["utility"], true["relative"], low["alpha"]) == (757.5, 1.0, 9.0)


def test_where_nothing_is_earned_no_policy_has_a_share():
    """As with `oasis figure commitment --size 0.04`, where no job can be done."""
    size = {"instance.preset": "calibrated", "instance.worker_servers": 1, "instance.horizon": 9}
    ran = {**size, "wasted_share": 0.0, "given_up_after_start": 0}
    cells = [cell(name, seed, 4.0 * seed, **ran) for name in ("rrh", "srtf") for seed in (0, 1)]
    rows = FIGURES["commitment"].table(cells, FigureSettings())
    assert [(row["policy"], row["share"], row["seeds"]) for row in rows] == [
        ("rrh", 1.0, 1),
        ("srtf", 1.0, 1),
    ]


# --- what is run --------------------------------------------------------------------------------


def cells_of(name, **options):
    figure = FIGURES[name]
    return expand(sweep_config(figure.grid(figure.settings(**options))))


def test_full_size_is_the_papers():
    labels = [c.source.labels for c in cells_of("fig3")]
    assert {c["jobs"] for c in labels} == {100, 200, 300, 400}
    assert {(c["worker_servers"], c["ps_servers"], c["horizon"]) for c in labels} == {(50, 50, 300)}
    ratios = [c.source.labels for c in cells_of("fig5")]
    assert {c["worker_servers"] + c["ps_servers"] for c in ratios} == {3, 6, 9, 12}
    assert {(c["jobs"], c["horizon"]) for c in ratios} == {(10, 10)}
    (late,) = {tuple(c.source.labels["mix"]) for c in cells_of("fig4")}
    assert late == (0.0, 0.5, 0.5)
    scales = {c.policy_options["scale"] for c in cells_of("fig6")}
    assert scales == {0.2, 0.5, 1.0, 3.0, 5.0, 10.0}
    for name in NAMES:
        ours = [c.policy_options for c in cells_of(name) if c.policy == "oasis"]
        assert {options["min_utility_fraction"] for options in ours} == {0.0, 0.7}, name
    presets = {
        c.source.labels["preset"] for name in ("fig5", "fig8", "fig9") for c in cells_of(name)
    }
    assert presets == {"testbed-observed"}
    assert {c.source.labels["preset"] for c in cells_of("fig8", preset="testbed")} == {"testbed"}


def test_options_change_what_is_run():
    sizes = {"seeds": 3, "jobs": (7,), "servers": 9}
    options = {"oasis": {"min_utility_fraction": 0.3}, "rrh": {"weight": 0.7}}
    others = {"policies": ("rrh", "oasis"), "policy_options": options, "preset": "paper"}
    found = cells_of("fig3", **sizes, **others)
    assert {c.seed for c in found} == {0, 1, 2}
    assert {c.policy for c in found} == {"oasis", "rrh"}
    assert {c.source.labels["worker_servers"] for c in found} == {9}
    assert {c.source.labels["jobs"] for c in found} == {7}
    assert {c.source.labels["preset"] for c in found} == {"paper"}
    floors = [c.policy_options["min_utility_fraction"] for c in found if c.policy == "oasis"]
    assert set(floors) == {0.3}
    assert {c.policy_options["weight"] for c in found if c.policy == "rrh"} == {0.7}


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("fig5", {"servers": 3}),
        ("fig5", {"policies": ("fifo",)}),
        ("fig6", {"policies": ("fifo",)}),
        ("fig8", {"preset": "paper"}),
        ("fig9", {"servers": 3}),
    ],
)
def test_an_option_that_a_figure_cannot_honour_is_refused(name, option):
    with pytest.raises(
        ValueError, match=f"{next(iter(option))}.*: expected (none|one of testbed-)"
    ):
        cells_of(name, **option)


# --- what is drawn ------------------------------------------------------------------------------


def utility_rows(name, counts=(100, 400)):
    cells = [
        cell(policy, seed, 100.0 * k + 30 * seed + count, **{"instance.jobs": count})
        for count in counts
        for k, policy in enumerate(SHOWN)
        for seed in range(3)
    ]
    return FIGURES[name].table(cells, FigureSettings())


def late_cells():
    late = {"lateness": [float(k) for k in range(-3, 30)], "decay": [0.5, 4.5, 0.0] * 11}
    return [cell(policy, seed, **late) for policy in SHOWN for seed in range(3)]


CASES = {
    "fig3": lambda: utility_rows("fig3", (100, 200, 300, 400)),
    "fig4": lambda: FIGURES["fig4"].table(late_cells(), FigureSettings()),
    "fig5": lambda: FIGURES["fig5"].table(
        [ratio_cell(k, 1.0 + 3 * k, 8.0) for k in range(3)], FigureSettings()
    ),
    "fig8": lambda: utility_rows("fig8", (12,)),
    "fig9": lambda: FIGURES["fig9"].table(late_cells(), FigureSettings()),
}


@pytest.mark.parametrize("name", CASES)
def test_pictures_are_readable(name):
    assert_readable(FIGURES[name].draw(CASES[name](), "preset calibrated, 5 seeds"))


# --- what is written ----------------------------------------------------------------------------


def test_command_writes_data_and_picture_and_resumes(tmp_path, capfd):
    chosen = ["--seeds", "2", "--job-counts", "3", "--policies", "oasis,drf"]
    words = ("figure", "fig8", *chosen, "-o", tmp_path)
    assert call(*words, "--json") == 0
    document = json.loads(capfd.readouterr().out)
    files = [tmp_path / name for name in ("fig8.parquet", "fig8.csv", "fig8.svg")]
    assert document["files"] == [str(path) for path in files]
    assert document["runs"] == 6
    with files[1].open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["utility"]) for row in written] == [r["utility"] for r in document["rows"]]
    frame = parquet.read_table(files[0]).to_pandas()
    drf = frame[frame["policy.name"] == "drf"]["total_utility"]
    assert document["rows"][2]["utility"] == pytest.approx(drf.mean())
    before = [path.read_bytes() for path in files]
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.cells/*")}
    assert len(records) == 6
    assert call(*words) == 0
    assert [path.read_bytes() for path in files] == before
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.cells/*")} == records
    assert "total utility" in capfd.readouterr().out


def test_failed_runs_are_left_out_and_said(tmp_path, monkeypatch):
    cells = [cell(seed=0, utility=8.0), cell(seed=1), cell("drf", 0, 4.0), cell("drf", 1, 2.0)]
    table = pa.Table.from_pylist(
        [row | {"status": "done", "error": None} for row in cells[:1] + cells[2:]]
        + [cells[1] | {"status": "failed", "error": "ValueError: no", "total_utility": None}]
    )

    def run_sweep(config, output, **_):
        parquet.write_table(table, output)
        return SimpleNamespace(output=output, table=table)

    monkeypatch.setattr("experiments.figures.figure.run_sweep", run_sweep)
    result = reproduce(FIGURES["fig3"], FigureSettings(seeds=2), tmp_path)
    assert [(row["policy"], row["seeds"], row["utility"]) for row in result.rows] == [
        ("oasis", 1, 8.0),
        ("drf", 2, 3.0),
    ]
    assert result.errors == ("ValueError: no",)
    assert call("figure", "fig3", "--seeds", 2, "-o", tmp_path) == 4
