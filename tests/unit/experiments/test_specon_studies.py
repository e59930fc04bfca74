"""SpeCon's Figs. 2, 3, 6 to 12 and Table III: workloads, what is measured, what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

from experiments.figures import EXPERIMENTS
from experiments.figures.rows import read_csv
from experiments.figures.specon import distribution, parameters, random_schedules, saving
from experiments.figures.specon.models import MODELS, overhead, random_schedule
from experiments.figures.specon.published import RANDOM, SAVING_AT_MOST, SAVING_SPREAD, TABLE3
from experiments.figures.specon.running import CHOICES, DEFAULT, gains
from tests.unit.experiments.test_plotting import assert_readable

PICTURES = Path(__file__).parents[3] / "docs" / "figures"
OURS = tuple(choice for choice in CHOICES if choice != DEFAULT)


def rows_of(figure):
    return read_csv(PICTURES / f"specon-{figure}.csv")


def test_random_schedules_are_those_of_the_paper():
    made = random_schedule(3, jobs=50, window=1200.0, workers=8)
    arrivals = [job.arrival for job in made.workload.jobs]
    assert len(made.workload.site.machines) == 8
    assert arrivals == sorted(arrivals)
    assert 0.0 <= arrivals[0] <= arrivals[-1] <= 1200.0
    curves = {job.curve for job in made.workload.jobs}
    assert len(curves) == len(MODELS) == 5
    vae = random_schedule(3, jobs=20, window=300.0, models=("VAE",))
    assert len({job.curve for job in vae.workload.jobs}) == 1


def test_the_default_scheduler_has_its_published_mean_and_makespan_in_fig_7():
    (row,) = (row for row in rows_of("7") if row["policy"] == DEFAULT)
    for name in ("mean", "makespan"):
        assert row[name] == pytest.approx(RANDOM["7"]["default"][name], rel=0.01)


@pytest.mark.parametrize("figure", RANDOM)
def test_specon_is_quicker_in_each_reading(figure):
    rows = {row["policy"]: row for row in rows_of(figure)}
    for policy in OURS:
        assert rows[policy]["overall_low"] > 0
        assert rows[policy]["makespan"] < rows[DEFAULT]["makespan"]
        assert rows[policy]["better"] >= 15


def test_the_published_gain_on_the_larger_cluster_lies_in_the_interval():
    found = [round(row["overall"], 3) for row in rows_of("12") if row["policy"] != DEFAULT]
    assert found == [0.052, 0.080, 0.065]
    low, high = (
        row[f"overall_{end}"]
        for end in ("low", "high")
        for row in rows_of("12")
        if row["policy"] == "specon (cluster)"
    )
    assert low < RANDOM["12"]["specon"]["gain"] < high


def test_all_six_rows_of_table_3_gain():
    rows = rows_of("table3")
    assert len(rows) == 6 * len(parameters.READINGS)
    assert all(row["overall_low"] > 0 and row["makespan_gain_low"] > 0 for row in rows)
    own = {(row["alpha"], row["interval"]): row for row in rows if row["policy"] == "specon"}
    near, published = own[(0.05, 30.0)], TABLE3[(0.05, 30.0)]
    assert near["reduced_low"] < published["reduced"] < near["reduced_high"]
    assert near["overall_low"] < published["overall"] < near["overall_high"]
    assert near["best_low"] < published["best"] < near["best_high"]
    assert min(own.values(), key=lambda row: row["overall"])["alpha"] == 0.01  # the page says so


def test_saving_and_resuming_costs_what_was_drawn_at_each_point():
    runs = [saving.run(case) for case in saving.cases(2)]
    points = len(runs) // 2
    for k, each in enumerate(runs):
        if each["saved_at"] != saving.NONSTOP:
            beside = next(r for r in runs[k - 1 :: -1] if r["saved_at"] == saving.NONSTOP)
            drawn = overhead(each["seed"], 1 + k % points)
            assert each["time"] - beside["time"] == pytest.approx(drawn)
    rows = [row for row in saving.table(runs) if row["saved_at"] != saving.NONSTOP]
    assert len(rows) == 9 + 2 * len(MODELS)


def test_the_spread_of_the_overhead_is_the_published_one():
    rows = [row for row in rows_of("2") if row["saved_at"] != saving.NONSTOP]
    assert all(row["seeds"] == 20 and row["largest"] < SAVING_AT_MOST for row in rows)
    spread = {row["spread"] for row in rows if row["figure"] == 2}
    assert len(spread) == 1
    assert spread.pop() == pytest.approx(SAVING_SPREAD, abs=0.01)
    again = saving.table([saving.run(case) for case in saving.cases(20)])
    kept = rows_of("2")
    assert [row["overhead"] for row in kept] == pytest.approx([row["overhead"] for row in again])


def test_each_draw_has_an_overhead_of_its_own():
    drawn = [random_schedule(seed, jobs=20, window=300.0).costs for seed in range(5)]
    assert len({costs.save for costs in drawn}) == 5
    for seed, costs in enumerate(drawn):
        assert costs.save + costs.migrate == pytest.approx(overhead(seed))
        assert costs.save == costs.migrate == costs.resume


def test_nothing_moves_under_the_default_scheduler():
    rows = distribution.table([distribution.run(case) for case in distribution.cases(1)])
    for policy in distribution.SHOWN_POLICIES:
        part = [row for row in rows if row["policy"] == policy]
        moved = {row["moved"] for row in part} - {None}
        assert moved == (set() if policy == DEFAULT else {"M", "R"})
        assert {row["job"] for row in part} == {f"job{k}" for k in range(1, 31)}
        first = {row["job"]: row["worker"] for row in reversed(part)}
        if policy == DEFAULT:
            turn = [first[f"job{k}"] for k in range(1, 31)]
            assert turn == [1 + k % 4 for k in range(30)]
    assert rows_of("9") == rows_of("11") == [row | {"moved": row["moved"]} for row in rows]


def test_gains_are_counted_seed_by_seed():
    base = [{"mean": 10.0, "makespan": 20.0, "job1": 10.0, "job2": 10.0}] * 2
    own = [{"mean": 9.0, "makespan": 15.0, "job1": 6.0, "job2": 12.0}, base[0]]
    row = gains(own, base, 2)
    assert row["reduced"] == 0.25
    assert row["overall"] == pytest.approx(0.05)
    assert row["best"] == pytest.approx(0.2)
    assert row["makespan_gain"] == pytest.approx(0.125)
    assert row["better"] == 1


def test_the_data_of_the_page_are_those_of_the_command():
    figure = EXPERIMENTS["specon-6"]
    again = figure.table([figure.measure(case) for case in figure.cases(figure.seeds)])
    for row, kept in zip(again, rows_of("6"), strict=True):
        for name, value in kept.items():
            assert value == row[name] or value == pytest.approx(row[name], rel=1e-9)
    assert random_schedules.SIZES["6"] == (20, 300.0, 4)


@pytest.mark.parametrize("figure", ["2", "6", "7", "9", "11", "12", "table3"])
def test_the_pictures_are_readable(figure):
    assert_readable(EXPERIMENTS[f"specon-{figure}"].draw(rows_of(figure), "20 seeds"))
