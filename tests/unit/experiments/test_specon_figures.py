"""The SpeCon paper's fixed schedule: its workload, its calibration, and what the rows say."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

from experiments.figures import EXPERIMENTS
from experiments.figures.rows import read_csv
from experiments.figures.specon.fixed_schedule import CHOICES, DEFAULT, SPECON, cases, run, table
from experiments.figures.specon.models import SPREAD, curve, fixed_schedule, pace, progress
from experiments.figures.specon.published import EARLY_PROGRESS, FIG5
from oasis.simulator import replay
from tests.unit.experiments.test_plotting import assert_readable

DATA = Path(__file__).parents[3] / "docs" / "figures" / "specon-5.csv"
SEEDS = 20


@pytest.fixture(scope="module")
def rows():
    """The rows of the table."""
    return {row["policy"]: row for row in table([run(case) for case in cases(SEEDS)])}


def test_the_schedule_is_that_of_the_paper():
    made = fixed_schedule(3)
    assert [job.arrival for job in made.workload.jobs] == [50.0 * k for k in range(20)]
    assert [machine.cpu_cores for machine in made.workload.site.machines] == [16.0] * 4
    assert {job.worker_cpu for job in made.workload.jobs} == {16.0}
    assert made.costs.save + made.costs.migrate < 5.0
    works = [job.work for job in made.workload.jobs]
    assert works == [job.work for job in fixed_schedule(3).workload.jobs]
    assert works != [job.work for job in fixed_schedule(4).workload.jobs]


def test_the_work_has_the_spread_that_is_said():
    logs = [math.log(j.work) for seed in range(50) for j in fixed_schedule(seed).workload.jobs]
    mean = math.fsum(logs) / len(logs)
    deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in logs) / len(logs))
    assert deviation == pytest.approx(SPREAD, rel=0.05)


@pytest.mark.parametrize("model", EARLY_PROGRESS)
@pytest.mark.parametrize("bend", [1.0, 2.0])
def test_curves_go_through_the_published_point(model, bend):
    early = EARLY_PROGRESS[model]
    assert progress(0.2, pace(early, bend), bend) == pytest.approx(early)
    values = [value for _, value in curve(model, bend)]
    assert values[0] == 1.0
    assert values[-1] == 0.0
    assert values == sorted(values, reverse=True)


def test_the_default_scheduler_has_its_published_mean_and_makespan(rows):
    for name in ("mean", "makespan"):
        assert rows[DEFAULT][name] == pytest.approx(FIG5["default"][name], rel=0.01)


@pytest.mark.parametrize(("work", "spread"), [(0.98, 1.0), (1.02, 1.0), (0.985, 1.3), (1.015, 0.7)])
def test_other_choices_are_further_from_them(work, spread, rows):
    means, spans = [], []
    for seed in range(SEEDS):
        made = fixed_schedule(seed, work=183.0 * work, spread=0.36 * spread)
        policy = CHOICES[DEFAULT][0]()
        outcome = replay(made.workload, policy, **made.options)
        means.append(outcome.mean_completion)
        spans.append(max(job.end for job in outcome.jobs))

    def distance(mean, makespan):
        published = FIG5["default"]
        return abs(mean / published["mean"] - 1) + abs(makespan / published["makespan"] - 1)

    other = distance(math.fsum(means) / SEEDS, math.fsum(spans) / SEEDS)
    assert distance(rows[DEFAULT]["mean"], rows[DEFAULT]["makespan"]) < other


def test_specon_gains_and_its_makespan_is_near_the_published_one(rows):
    for policy in CHOICES:
        if policy != DEFAULT:
            row = rows[policy]
            assert row["mean"] < rows[DEFAULT]["mean"]
            assert row["makespan"] < rows[DEFAULT]["makespan"]
            assert row["makespan"] == pytest.approx(FIG5["specon"]["makespan"], rel=0.1)


def test_within_a_tenth_of_the_published_mean_only_as_the_page_says(rows):
    near = [p for p in CHOICES if abs(rows[p]["mean"] / FIG5["specon"]["mean"] - 1) <= 0.1]
    assert near == ["specon (cluster), flat tail"]
    assert all(row["reduced"] < FIG5["specon"]["reduced"] for row in rows.values())


def test_the_data_of_the_page_are_those_of_the_command(rows):
    for row in read_csv(DATA):
        for name, value in row.items():
            expected = rows[row["policy"]][name]
            assert value == expected or value == pytest.approx(expected, rel=1e-9)


def test_the_picture_is_readable(rows):
    figure = EXPERIMENTS["specon-5"]
    page = figure.draw(list(rows.values()), "20 seeds")
    assert_readable(page)
    assert rows[SPECON]["seeds"] == SEEDS
