"""The table of all policies on the same elastic jobs: its workloads and its rows."""

from __future__ import annotations

import csv
from dataclasses import fields

import pytest

from experiments.cli.main import main
from experiments.figures import EXPERIMENTS, FIGURES, FigureSettings
from experiments.figures.controllers import (
    DEADLINE,
    JOBS,
    LOADS,
    POLICIES,
    SIGMOID,
    at_load,
    cases,
    drawn,
    of_trace,
    run,
    table,
)
from oasis.model.utility import Constant, Deadline
from tests.packaging.figure_rows import data
from tests.philly_shape import philly_shaped
from tests.unit.experiments.test_plotting import assert_readable

TABLES = ("controllers", "philly/controllers")
SEEDS = {TABLES[0]: 20, TABLES[1]: 15}  # all windows of the trace


@pytest.fixture
def trace(tmp_path):
    """A plain trace of the shape of Philly's, with enough distributed jobs for two windows."""
    path = tmp_path / "jobs.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "submitted", "duration", "gpus"])
        for job in philly_shaped(3000, 5):
            writer.writerow([job.id, job.submitted, job.duration, job.gpus])
    return path


def test_the_load_is_the_gpu_time_asked_for_over_that_between_first_and_last_arrival():
    recorded = drawn(3)
    for load in LOADS:
        jobs = at_load(recorded, load, 3).jobs
        asked = sum(job.duration * job.gpus for job in recorded)
        assert asked / (64 * jobs[-1].arrival) == pytest.approx(load)


def plain(job):
    return {field.name: getattr(job, field.name) for field in fields(job)}


def test_jobs_are_the_same_at_each_load_but_for_their_arrivals():
    light, heavy, other = (
        [plain(job) for job in at_load(drawn(3), load, seed).jobs]
        for load, seed in ((0.5, 3), (2.0, 3), (2.0, 4))
    )
    assert [job | {"arrival": 0} for job in light] == [job | {"arrival": 0} for job in heavy]
    assert heavy != other


def test_with_what_it_asks_for_a_job_takes_as_long_as_recorded():
    recorded = drawn(5)
    made = at_load(recorded, 1.0, 5)
    for job, one in zip(made.jobs, recorded, strict=True):
        speed = made.speed.scaling.speedup[job.id][job.initial_workers - 1]
        assert job.work / speed == pytest.approx(one.duration)
        assert (job.min_workers, job.max_workers) == (1, 2 * one.gpus)


def test_windows_of_a_trace_follow_each_other(trace):
    first, second = (of_trace(trace, window) for window in (0, 1))
    assert len(first) == len(second) == JOBS
    assert first[-1].submitted <= second[0].submitted
    assert all(2 <= job.gpus <= 8 and 1800 <= job.duration <= 14400 for job in first + second)
    with pytest.raises(ValueError, match=r"trace: expected \d+ jobs of 2 to 8 GPUs"):
        of_trace(trace, 1000)


@pytest.mark.parametrize("content", [None, "", "id,submitted,duration,gpus\na,0,3600,2\n"])
def test_a_trace_that_does_not_do_is_refused_before_anything_is_written(content, tmp_path, capfd):
    path, folder = tmp_path / "some.csv", tmp_path / "figures"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as caught:
        main(["figure", "controllers", "--trace", str(path), "-o", str(folder)])
    assert caught.value.code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert ("--trace: expected 800 jobs" if content else "some.csv") in line
    assert not folder.exists()


def test_a_row_says_what_a_run_gave(trace):
    found = run({"load": 2.0, "seed": 0, "policy": "dragon", "trace": str(trace), "worth": SIGMOID})
    assert found["trace"] == "jobs.csv"  # where it lies is nobody's business
    assert found["of_bound"] == found["utility"] / found["bound"] <= 1.0
    assert found["finished"] + found["unfinished"] == JOBS
    (row,) = table([found])
    assert (row["of_bound"], row["of_bound_low"]) == (found["of_bound"], None)


def test_only_figures_that_can_take_a_trace_get_one(trace):
    settings = FigureSettings(seeds=1, trace=str(trace))
    assert EXPERIMENTS["controllers"].steps(settings) == len(cases(1))
    with pytest.raises(ValueError, match="trace: kod2-7 varies only the number of seeds"):
        EXPERIMENTS["kod2-7"].steps(settings)
    with pytest.raises(ValueError, match="trace: fig3 takes its jobs from no trace"):
        FIGURES["fig3"].steps(settings)


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_have_all_policies_at_all_loads_and_nobody_exceeds_the_bound(name):
    rows = data(name)
    expected = [(load, policy) for load in LOADS for policy in POLICIES]
    assert [(row["load"], row["policy"]) for row in rows] == expected
    assert all(0 < row["of_bound"] <= 1.0 for row in rows)
    assert {row["seeds"] for row in rows} == {SEEDS[name]}
    whole = [row for row in rows if row["unfinished"] == 0]
    assert len(whole) >= len(expected) - 2 * len(LOADS), "all but OASiS and recourse finish all"
    assert all(row["mean"] >= row["mean_bound"] for row in whole)


def test_the_picture_of_a_trace_is_readable():
    name = TABLES[1]
    rows = data(name)
    assert_readable(EXPERIMENTS["controllers"].draw(rows, f"{SEEDS[name]} seeds"))


def test_with_deadlines_jobs_are_worth_all_or_nothing_and_elasticflow_meets_all():
    """The jobs are those of the other table but for what they are worth."""
    soft, hard = (at_load(drawn(3), 1.0, 3, kind).jobs for kind in (SIGMOID, DEADLINE))
    assert [plain(job) | {"utility": None} for job in soft] == [
        plain(job) | {"utility": None} for job in hard
    ]
    assert {type(job.utility) for job in hard} == {Deadline, Constant}
    assert all(
        getattr(late.utility, "deadline", early.utility.target) == early.utility.target
        for late, early in zip(hard, soft, strict=True)
    )
    rows = {(row["load"], row["policy"]): row for row in data("deadlines")}
    assert list(rows) == [(load, policy) for load in LOADS for policy in POLICIES]
    assert {rows[load, "elasticflow"]["met"] for load in LOADS} == {1.0}
    assert all(rows[2.0, policy]["met"] < 1.0 for policy in POLICIES if policy != "elasticflow")
    assert rows[2.0, "oasis"]["of_bound"] < rows[2.0, "recourse"]["of_bound"] < 0.95
