"""SpeCon's Figs. 2, 3, 8 to 11 and Table III: workloads, what is measured, what the page says."""

from __future__ import annotations

import pytest

from experiments.figures import specon
from experiments.figures.specon import DEFAULT, gains
from experiments.figures.specon_draws import (
    MODELS,
    SAVING_AT_MOST,
    SAVING_SPREAD,
    as_published,
    overhead,
)
from tests.packaging.figure_rows import data


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
    rows = [row for row in data("specon-2") if row["saved_at"] != specon.NONSTOP]
    assert all(row["seeds"] == 20 and row["largest"] < SAVING_AT_MOST for row in rows)
    spread = {row["spread"] for row in rows if row["figure"] == 2}
    assert len(spread) == 1
    assert spread.pop() == pytest.approx(SAVING_SPREAD, abs=0.01)


def test_nothing_moves_under_the_default_scheduler():
    rows = data("specon-9")
    for policy in specon.SHOWN_POLICIES:
        part = [row for row in rows if row["policy"] == policy]
        moved = {row["moved"] for row in part} - {None}
        assert moved == (set() if policy == DEFAULT else {"M", "R"})
        assert {row["job"] for row in part} == {f"job{k}" for k in range(1, 31)}
        first = {row["job"]: row["worker"] for row in reversed(part)}
        if policy == DEFAULT:
            turn = [first[f"job{k}"] for k in range(1, 31)]
            assert turn == [1 + k % 4 for k in range(30)]
    assert rows == data("specon-11")


def test_gains_are_counted_seed_by_seed():
    base = [{"mean": 10.0, "makespan": 20.0, "job1": 10.0, "job2": 10.0}] * 2
    own = [{"mean": 9.0, "makespan": 15.0, "job1": 6.0, "job2": 12.0}, base[0]]
    row = gains(own, base, 2)
    assert row["reduced"] == 0.25
    assert row["overall"] == pytest.approx(0.05)
    assert row["best"] == pytest.approx(0.2)
    assert row["makespan_gain"] == pytest.approx(0.125)
    assert row["better"] == 1
