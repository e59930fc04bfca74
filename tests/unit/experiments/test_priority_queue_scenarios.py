"""The autoscaler's five procedures on their scenarios: what the page says happens, happens."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the plot extra")
pytest.importorskip("pyarrow", reason="needs the sweep extra")

from experiments.figures import EXPERIMENTS
from experiments.figures.figure import read_csv
from experiments.figures.priority_queue import PRINTED, READ, SCENARIOS, cases, run, scenario, table
from tests.unit.experiments.test_plotting import assert_readable

PICTURES = Path(__file__).parents[3] / "docs" / "figures"


@pytest.fixture(scope="module")
def rows():
    return table([run(case) for case in cases(1)])


def spans(rows, name, reading=READ):
    """(begin, end, workers on node 0, on node 1) by job."""
    found = {}
    for row in rows:
        if (row["scenario"], row["reading"]) == (name, reading):
            span = (row["begin"], row["end"], row["node0"], row["node1"])
            found.setdefault(row["job"], []).append(span)
    return found


def test_weighting_serves_by_utility_and_then_the_larger_request(rows):
    for reading in (READ, PRINTED):
        found = spans(rows, "weighting", reading)
        order = sorted(found, key=lambda job: found[job][0])
        assert order == ["running", "worth 3, more memory", "worth 3", "worth 1"]


def test_a_gang_is_on_one_machine_or_else_spread(rows):
    found = spans(rows, "gang")
    assert [found[job][0][2:] for job in found] == [(3, 0), (0, 3), (1, 1)]


def test_scale_down_leaves_the_fewest_of_the_least_valuable(rows):
    found = spans(rows, "scale-down")
    assert found["worth 2"] == [(0.0, 200.0, 4, 0)]
    assert found["worth 1"][:2] == [(0.0, 60.0, 0, 4), (60.0, 120.0, 0, 1)]
    assert found["worth 1"][2][2:] == (0, 4)  # it grows again when the valuable job has left
    assert found["worth 5"] == [(60.0, 120.0, 0, 3)]
    printed = spans(rows, "scale-down", PRINTED)
    assert printed["worth 1"][0][0] == 120.0


def test_scale_up_takes_what_is_left_machine_by_machine(rows):
    found = spans(rows, "scale-up")
    assert found["grows"][0] == (0.0, 150.0, 3, 3)
    assert found["grows too"][0] == (0.0, 150.0, 1, 1)
    printed = spans(rows, "scale-up", PRINTED)
    assert printed["grows"][0] == (0.0, 160.0, 1, 0)


def test_the_main_step_launches_the_best_and_whoever_fits_beside(rows):
    read, printed = spans(rows, "main step"), spans(rows, "main step", PRINTED)
    assert read["best"] == printed["best"] == [(50.0, 150.0, 0, 4)]
    assert read["small"][0][0] == read["large"][0][0] == 150.0
    assert printed["small"][0][0] == printed["large"][0][1]


def test_every_scenario_ends(rows):
    for name in SCENARIOS:
        jobs = {job.id for job in scenario(name).jobs}
        for reading in (READ, PRINTED):
            assert spans(rows, name, reading).keys() == jobs


def test_the_data_and_the_picture_of_the_page(rows):
    assert read_csv(PICTURES / "priority-queue.csv") == rows
    assert_readable(EXPERIMENTS["priority-queue"].draw(rows, "1 seeds"))
