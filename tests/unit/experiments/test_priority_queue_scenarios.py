"""The autoscaler's five procedures on their scenarios: what the page says happens, happens."""

from __future__ import annotations

from experiments.figures.priority_queue import PRINTED, READ, SCENARIOS, scenario
from tests.packaging.figure_rows import rows


def spans(name, reading=READ):
    """(begin, end, workers on node 0, on node 1) by job."""
    found = {}
    for row in rows("priority-queue", scenario=name, reading=reading):
        span = (row["begin"], row["end"], row["node0"], row["node1"])
        found.setdefault(row["job"], []).append(span)
    return found


def test_weighting_serves_by_utility_and_then_the_larger_request():
    for reading in (READ, PRINTED):
        found = spans("weighting", reading)
        order = sorted(found, key=lambda job: found[job][0])
        assert order == ["running", "worth 3, more memory", "worth 3", "worth 1"]


def test_a_gang_is_on_one_machine_or_else_spread():
    found = spans("gang")
    assert [found[job][0][2:] for job in found] == [(3, 0), (0, 3), (1, 1)]


def test_scale_down_leaves_the_fewest_of_the_least_valuable():
    found = spans("scale-down")
    assert found["worth 2"] == [(0.0, 200.0, 4, 0)]
    assert found["worth 1"][:2] == [(0.0, 60.0, 0, 4), (60.0, 120.0, 0, 1)]
    assert found["worth 1"][2][2:] == (0, 4)  # it grows again when the valuable job has left
    assert found["worth 5"] == [(60.0, 120.0, 0, 3)]
    printed = spans("scale-down", PRINTED)
    assert printed["worth 1"][0][0] == 120.0


def test_scale_up_takes_what_is_left_machine_by_machine():
    found = spans("scale-up")
    assert found["grows"][0] == (0.0, 150.0, 3, 3)
    assert found["grows too"][0] == (0.0, 150.0, 1, 1)
    printed = spans("scale-up", PRINTED)
    assert printed["grows"][0] == (0.0, 160.0, 1, 0)


def test_the_main_step_launches_the_best_and_whoever_fits_beside():
    read, printed = spans("main step"), spans("main step", PRINTED)
    assert read["best"] == printed["best"] == [(50.0, 150.0, 0, 4)]
    assert read["small"][0][0] == read["large"][0][0] == 150.0
    assert printed["small"][0][0] == printed["large"][0][1]


def test_every_scenario_ends():
    for name in SCENARIOS:
        jobs = {job.id for job in scenario(name).jobs}
        for reading in (READ, PRINTED):
            assert spans(name, reading).keys() == jobs
