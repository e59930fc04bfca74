"""Figures of the paper: rows, what is run and drawn; data of all figures; verdicts on them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import pyarrow as pa
import pytest
from matplotlib.container import ErrorbarContainer
from pyarrow import parquet
from verdicts import JUDGES, judge, verdicts_of

from experiments import figures
from experiments.figures.figure import (
    Case,
    Row,
    read_csv,
    reproduce,
    write_csv,
)
from experiments.figures.oasis import FIG3, FIG4, FIG8, paper_name
from experiments.figures.settings import PRINTED, FigureSettings
from experiments.plotting.files import svg_text
from experiments.sweep.cells import expand, sweep_config
from tests.builders import exit_code as call
from tests.unit.experiments.test_plotting import assert_readable
from tests.unit.experiments.test_values import VALUES


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


def test_rows_of_fig4_leave_out_what_did_not_finish_and_say_so():
    late = {"lateness": [1.0, None, 3.0, -2.0, 7.0], "decay": [0.5, 0.5, 0.5, 4.5, 0.0]}
    sensitive, critical = figures.FIGURES["fig4"].table(
        [cell(**late), cell(seed=1, **late)], FigureSettings()
    )
    assert (sensitive["jobs"], sensitive["finished"], sensitive["median"]) == (6, 4, 2.0)
    assert (critical["jobs"], critical["finished"], critical["median"]) == (2, 2, -2.0)
    assert (sensitive["seed_median"], sensitive["seeds"]) == (2.0, 2)
    (everyone,) = figures.FIGURES["fig9"].table([cell(**late)], FigureSettings())
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
    (row,) = figures.FIGURES["fig5"].table(cells, FigureSettings())
    assert (row["seeds"], row["proven"], row["ratios"], row["nothing_to_earn"]) == (5, 4, 2, 1)
    assert row["ratio"] == pytest.approx(3.0)
    assert (row["median"], row["smallest"], row["largest"]) == (3.25, 2.0, 4.5)


@pytest.mark.parametrize("seeds", [2, 3])
def test_two_seeds_are_two_points_and_more_an_interval(seeds):
    cells = [cell(seed=seed, utility=value) for seed, value in enumerate((300.0, 200.0, 100.0))]
    figure = figures.FIGURES["fig8"]
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
    low, true = figures.FIGURES["fig6"].table(cells, FigureSettings())
    assert (low["relative"], low["relative_low"], low["relative_high"]) == (1.5, 1.5, 1.5)
    assert (low["utility"], true["relative"], low["alpha"]) == (757.5, 1.0, 9.0)


def test_where_nothing_is_earned_no_policy_has_a_share():
    """As with `oasis figure commitment --size 0.04`, where no job can be done."""
    size = {"instance.preset": "calibrated", "instance.worker_servers": 1, "instance.horizon": 9}
    ran = {**size, "wasted_share": 0.0, "given_up_after_start": 0}
    cells = [cell(name, seed, 4.0 * seed, **ran) for name in ("rrh", "srtf") for seed in (0, 1)]
    rows = figures.FIGURES["commitment"].table(cells, FigureSettings())
    found = [(row["policy"], row["share"], row["wasted"], row["seeds"]) for row in rows]
    assert found == [("rrh", 1.0, 0.0, 1), ("srtf", 1.0, 0.0, 1)]


# --- what is run --------------------------------------------------------------------------------


def cells_of(name, **options):
    figure = figures.FIGURES[name]
    return expand(sweep_config(figure.grid(figure.settings(**options))))


def test_full_size_is_the_papers():
    labels = [c.source.labels for c in cells_of("fig3")]
    assert {c["jobs"] for c in labels} == {100, 200, 300, 400}
    assert {(c["worker_servers"], c["ps_servers"], c["horizon"]) for c in labels} == {(50, 50, 300)}
    ratios = [c.source.labels for c in cells_of("fig5")]
    assert {c["worker_servers"] + c["ps_servers"] for c in ratios} == {3, 6, 9, 12}
    assert {(c["jobs"], c["horizon"]) for c in ratios} == {(10, 10)}
    (late,) = {(c.source.labels["jobs"], *c.source.labels["mix"]) for c in cells_of("fig4")}
    assert late == (200, 0.0, 0.5, 0.5)
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
    labels = [
        [c.source.labels[name] for name in ("worker_servers", "jobs", "preset")] for c in found
    ]
    assert all(one == [9, 7, "paper"] for one in labels)
    chosen = {"oasis": "min_utility_fraction", "rrh": "weight"}
    given = {(c.policy, c.policy_options[chosen[c.policy]]) for c in found}
    assert given == {("oasis", 0.3), ("rrh", 0.7)}


@pytest.mark.parametrize(
    ("name", "option"), [(name, one) for name, rows in VALUES["unheard"].items() for one in rows]
)
def test_an_option_that_a_figure_cannot_honour_is_refused(name, option):
    with pytest.raises(
        ValueError, match=f"{next(iter(option))}.*: expected (none|one of testbed-)"
    ):
        cells_of(name, **option)


def test_families_of_the_studies():
    settings = figures.FIGURES["floor"].settings(scale=0.1)
    assert len(figures.studies.floor_grid(settings)["instances"]) == 5
    assert figures.studies.calibrated(settings, 100, 50, 300)["worker_servers"] == 5
    assert figures.studies.family({"instance.preset": "testbed"}) == "testbed, 12 jobs"
    assert figures.studies.variant({"policy.name": "rrh"}) == "rrh"


# --- what is written ----------------------------------------------------------------------------


def test_command_writes_data_and_picture_and_resumes(call):
    line = "figure fig8 --seeds 2 --job-counts 3 --policies oasis,drf -o ."
    code, out, _ = call(f"{line} --json")
    document = json.loads(out)
    files = [Path(name) for name in ("fig8.parquet", "fig8.csv", "fig8.svg")]
    assert (code, document["files"], document["runs"]) == (0, [str(path) for path in files], 6)
    with files[1].open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [float(row["utility"]) for row in written] == [r["utility"] for r in document["rows"]]
    frame = parquet.read_table(files[0]).to_pandas()
    drf = frame[frame["policy.name"] == "drf"]["total_utility"]
    assert document["rows"][2]["utility"] == pytest.approx(drf.mean())
    before = [path.read_bytes() for path in files]
    records = {path: path.stat().st_mtime_ns for path in Path().glob("*.cells/*")}
    assert len(records) == 6
    code, out, _ = call(line)
    assert (code, "total utility" in out) == (0, True)
    assert [path.read_bytes() for path in files] == before
    assert {path: path.stat().st_mtime_ns for path in Path().glob("*.cells/*")} == records


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
    result = reproduce(figures.FIGURES["fig3"], FigureSettings(seeds=2), tmp_path)
    assert [(row["policy"], row["seeds"], row["utility"]) for row in result.rows] == [
        ("oasis", 1, 8.0),
        ("drf", 2, 3.0),
    ]
    assert result.errors == ("ValueError: no",)
    assert call("figure", "fig3", "--seeds", 2, "-o", tmp_path) == 4


PUBLISHED_PICTURES = Path(__file__).parents[3] / "docs" / "figures"
PUBLISHED_BY = "3.11."  # the Matplotlib that drew them


SIMULATED = sorted(
    path
    for path in PUBLISHED_PICTURES.glob("*.csv")  # those below it: a cluster, a trace
    if path.stem in figures.FIGURES
)


@pytest.mark.parametrize("path", SIMULATED, ids=lambda path: path.stem)
def test_data_in_the_documentation_are_whole_and_drawn_readably(path):
    figure, seeds = figures.FIGURES[path.stem], min(row["seeds"] for row in read_csv(path))
    assert seeds >= 5
    assert_drawn(figure, path, figure.note(figure.settings(seeds=seeds)))


@pytest.mark.parametrize("name", figures.EXPERIMENTS)
def test_data_of_elastic_jobs_are_whole_and_drawn_readably(name):
    figure, path = figures.EXPERIMENTS[name], PUBLISHED_PICTURES / f"{name}.csv"
    least = 1 if name == "deadlines" else 20  # as its page says
    assert max(row.get("seeds", 20) for row in read_csv(path)) >= least
    assert_drawn(figure, path, figure.note(figure.settings()))


def assert_drawn(figure: figures.PublishedFigure | figures.DirectFigure, path: Path, note: str):
    """Rows of a CSV file have all that a table shows; they are drawn as beside it, readably."""
    rows = read_csv(path)
    ranges = {key.removesuffix("_low") for key in rows[0] if key.endswith("_low")}
    assert set(figure.shown) <= rows[0].keys() | ranges
    page, picture = figure.draw(rows, note), path.with_suffix(".svg").read_text(encoding="utf-8")
    # Other releases place letters elsewhere.
    is_published = svg_text(page) == picture or not mpl.__version__.startswith(PUBLISHED_BY)
    assert is_published, f"{path}: draw it anew"
    assert_readable(page)


def test_published_numbers_in_the_documentation_are_the_published_ones():
    for row in read_csv(PUBLISHED_PICTURES / "fig3.csv"):
        assert row["published"] == FIG3.get(paper_name(row["policy"]), {}).get(row["jobs"])
    for row in read_csv(PUBLISHED_PICTURES / "fig8.csv"):
        assert row["published"] == FIG8.get(paper_name(row["policy"]))


def test_nothing_is_called_published_where_the_paper_gives_no_number():
    rows = read_csv(PUBLISHED_PICTURES / "fig4.csv")
    known = {row["policy"] for row in rows if row["published_low"] is not None}
    assert known == set(FIG4) == {"fifo", "drf", "dorm"}


def only_testbed(grid: Callable[[FigureSettings], dict[str, Any]]) -> Any:
    """The grid of a study with its smallest instances alone."""
    return lambda settings: (
        (whole := grid(settings))
        | {"instances": [each for each in whole["instances"] if each["preset"] == "testbed"]}
    )


def same(row: Row, kept: Row) -> bool:
    """Whether two rows agree; how often a policy is first depends on the others that are run."""
    names = kept.keys() - {"first", "share", "share_low", "share_high"}
    return all(kept[name] == row[name] or near(kept[name], row[name]) for name in names)


def near(one: Any, other: Any) -> bool:
    are_numbers = all(isinstance(value, int | float) for value in (one, other))
    return are_numbers and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fig8", {"policies": ("oasis", "las")}),
        *(
            pytest.param(name, settings, marks=pytest.mark.nightly)
            for name, settings in (
                ("fig3", {"jobs": (100,), "policies": ("oasis", "srtf", "las", "fifo")}),
                ("fig4", {"policies": ("oasis",)}),
                ("fig6", {"jobs": (100,)}),
                ("fig8", {"policies": ("rrh", "srtf", "recourse")}),
                ("fig9", {"policies": ("oasis", "rrh", "srtf", "las")}),
                ("floor", {"seeds": 10}),
                ("commitment", {"seeds": 5}),
            )
        ),
    ],
)
def test_data_in_the_documentation_are_those_of_the_command(name, settings, tmp_path):
    """The rows that take little time, so that data of an older version are noticed."""
    figure = figures.FIGURES[Path(name).name]
    if name in ("floor", "commitment"):
        figure = replace(figure, grid=only_testbed(figure.grid))
    assert_kept(name, reproduce(figure, figure.settings(**settings), tmp_path).rows)


def assert_kept(name: str, made: list[Row]) -> None:
    kept = read_csv(PUBLISHED_PICTURES / f"{name}.csv")
    assert made
    for row in made:
        assert any(same(row, one) for one in kept), (name, row)


# Runs that take little time, and of how many seeds the page is.
SOME: dict[str, tuple[int, Callable[[Case], bool]]] = {
    "dragon-7": (1, lambda case: case["seed"] is None),
    "dragon-8": (1, lambda case: case["seed"] is None),
    "kod2-4": (1, lambda case: True),
    "kod2-7": (20, lambda case: (case["model"], case["batch"]) == ("CNN-rand", 64)),
    "kod2-8": (20, lambda case: case["model"] == "CNN-rand"),
    "controllers": (20, lambda case: case["policy"] in ("dragon", "las") and case["load"] == 1.0),
    "deadlines": (5, lambda case: case["policy"] == "dragon" and case["load"] == 1.0),
    "priority-queue": (1, lambda case: True),
    "specon-2": (20, lambda case: True),
    "specon-9": (1, lambda case: True),
    "specon-sensitivity": (
        100,
        lambda case: (
            (case["figure"], case["crowding"]) == ("5", "costs nothing")
            and case["choice"] in (None, "cluster")
        ),
    ),
}
NIGHTLY = ("specon-5", "specon-table3")


@pytest.mark.parametrize(
    "name", [*SOME, *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHTLY)]
)
def test_data_of_elastic_jobs_are_those_of_the_command(name, tmp_path):
    seeds, is_chosen = SOME.get(name, (100, lambda case: True))
    figure = figures.EXPERIMENTS[name]
    runs = [figure.measure(case) for case in figure.cases(seeds) if is_chosen(case)]
    write_csv(tmp_path / "again.csv", figure.table(runs))
    assert_kept(name, read_csv(tmp_path / "again.csv"))


def kept(name: str) -> list[Row]:
    return read_csv(PUBLISHED_PICTURES / f"{name}.csv")


def verdict(name: str, rows: list[Row], policy: str, says: str) -> bool:
    """Whether the data agree with the one statement about this policy that begins so."""
    (found,) = [
        each for each in judge(name, rows) if each.policy == policy and each.says.startswith(says)
    ]
    return found.agrees


@pytest.mark.parametrize(
    ("name", "turn"), [(name, turn) for name, rows in VALUES["verdicts"].items() for turn in rows]
)
def test_another_number_is_another_verdict(name, turn):
    rows, about = kept(name), {"policy": turn["policy"], "says": turn["says"]}
    ((column, value),) = [item for item in turn.items() if item[0] not in (*about, "where")]
    changed = [
        row | {column: value} if turn["where"].items() <= row.items() else row for row in rows
    ]
    assert changed != rows
    assert verdict(name, changed, **about) != verdict(name, rows, **about)


def test_no_trend_is_neither_up_nor_down():
    rows = kept("fig5")
    says = "no trend"
    by_servers = {workers: k for k, workers in enumerate((2, 4, 5, 6))}

    def ratios(of: Callable[[int], float]) -> list[Row]:
        return [row | {"ratio": of(by_servers[row["worker_servers"]])} for row in rows]

    assert not verdict("fig5", ratios(lambda k: 2.0 - 0.1 * k), "oasis", says)
    assert not verdict("fig5", ratios(lambda k: 1.0 + 0.1 * k), "oasis", says)
    assert verdict("fig5", ratios(lambda k: 1.0 + 0.1 * (k % 2)), "oasis", says)


@pytest.mark.parametrize(
    ("name", "says", "agree"),
    [(name, *row) for name, rows in VALUES["holds"].items() for row in rows.items()],
)
def test_what_holds_of_which_form(name, says, agree):
    agreeing = [one for one in judge(name, kept(name)) if one.agrees and one.says.startswith(says)]
    assert {one.policy for one in agreeing} & {"oasis", PRINTED, "fifo"} == set(agree)


def test_every_form_is_judged_in_every_figure_and_every_printed_rival():
    found = verdicts_of(PUBLISHED_PICTURES)
    for name in JUDGES:
        assert {"oasis", PRINTED} <= {each.policy for each in found if each.figure == name}
    rivals = {each.policy for each in found} - {"oasis", PRINTED}
    assert rivals == {"fifo", "drf", "rrh", "dorm"}
    assert all(each.found for each in found)
