"""SpeCon's Figs. 2, 3, 8 to 11 and Table III: workloads, what is measured, what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

from experiments.figures import specon
from experiments.figures.figure import read_csv
from experiments.figures.specon import DEFAULT, SPECON, gains
from experiments.figures.specon_draws import (
    MODELS,
    SAVING_AT_MOST,
    SAVING_SPREAD,
    as_published,
    overhead,
)

PICTURES = Path(__file__).parents[3] / "docs" / "figures"


def rows_of(figure):
    return read_csv(PICTURES / f"specon-{figure}.csv")


def test_the_vae_jobs_of_table_3_are_like_those_of_fig_5():
    for number in range(3):
        jobs, like = specon.vae_jobs(number), as_published("5", number)
        assert (jobs.median, jobs.within, jobs.loss) == (like.median, like.within, like.loss)
        assert jobs.arrivals == tuple(sorted(jobs.arrivals))
        assert 0.0 <= jobs.arrivals[0] <= jobs.arrivals[-1] <= 300.0
        assert jobs.work != like.work


def test_saving_and_resuming_costs_what_was_drawn_at_each_point():
    runs = [specon.saving_run(case) for case in specon.saving_cases(2)]
    points = len(runs) // 2
    for k, each in enumerate(runs):
        if each["saved_at"] != specon.NONSTOP:
            beside = next(r for r in runs[k - 1 :: -1] if r["saved_at"] == specon.NONSTOP)
            drawn = overhead(each["seed"], 1 + k % points)
            assert each["time"] - beside["time"] == pytest.approx(drawn)
    rows = [row for row in specon.saving_table(runs) if row["saved_at"] != specon.NONSTOP]
    assert len(rows) == 9 + 2 * len(MODELS)


def test_the_spread_of_the_overhead_is_the_published_one():
    rows = [row for row in rows_of("2") if row["saved_at"] != specon.NONSTOP]
    assert all(row["seeds"] == 20 and row["largest"] < SAVING_AT_MOST for row in rows)
    spread = {row["spread"] for row in rows if row["figure"] == 2}
    assert len(spread) == 1
    assert spread.pop() == pytest.approx(SAVING_SPREAD, abs=0.01)
    again = specon.saving_table([specon.saving_run(case) for case in specon.saving_cases(20)])
    kept = rows_of("2")
    assert [row["overhead"] for row in kept] == pytest.approx([row["overhead"] for row in again])


def test_each_draw_has_an_overhead_of_its_own():
    drawn = [as_published("6", seed).workload(4, seed).costs for seed in range(5)]
    assert len({costs.save for costs in drawn}) == 5
    for seed, costs in enumerate(drawn):
        assert costs.save + costs.migrate == pytest.approx(overhead(seed))
        assert costs.save == costs.migrate == costs.resume


def test_nothing_moves_under_the_default_scheduler():
    rows = specon.stay_table([specon.stay_run(case) for case in specon.stay_cases(1)])
    for policy in specon.SHOWN_POLICIES:
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


@pytest.mark.nightly
def test_the_data_of_table_3_are_those_of_the_command():
    pair = (0.05, 20.0)
    asked = [
        case
        for case in specon.parameter_cases(100)
        if case["policy"] == DEFAULT
        or (case["policy"], case["alpha"], case["interval"]) == (SPECON, *pair)
    ]
    runs = [specon.parameter_run(case) for case in asked]
    own, base = ([row for row in runs if row["policy"] == policy] for policy in (SPECON, DEFAULT))
    again = gains(own, base, specon.JOBS)
    kept = next(row for row in rows_of("table3") if (row["alpha"], row["interval"]) == pair)
    assert {name: kept[name] for name in again} == pytest.approx(again, rel=1e-9)
