"""What ``oasis kubernetes report`` counts, and how it sets it beside the bound."""

from __future__ import annotations

import json
from typing import Any

import pytest

import oasis
from baselines import FIFO
from experiments.cli.commands.kubernetes import reporting
from experiments.evaluation.comparison import Comparison, compare
from experiments.evaluation.live import (
    ACTUAL,
    actual_figures,
    by_namespace,
    namespace_rows,
    with_actual,
)
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import comparison_table
from experiments.plotting import comparison_page
from experiments.report import report_page, section_of
from oasis.kubernetes.objects.oasis_job import SlotClock
from oasis.kubernetes.objects.schema import PHASES
from offline import solve


def job(name: str, phase: str, **said: Any) -> dict[str, Any]:
    known = {"utility": None, "promised": None, "late": False, "completion_slot": None}
    return {"job": name, "phase": phase, "reasons": {}, **known, **said}


JOBS = [
    job("a/one", "Completed", utility=5.0, promised="12:00", completion_slot=7),
    job("a/job/two", "Completed", utility=2.5, promised="12:00", late=True, completion_slot=9),
    job("a/three", "Running", promised="13:00"),
    job("b/four", "GivenUp", promised="13:00"),
    job("b/five", "Rejected"),
    job("b/six", "Failed"),
]


def test_jobs_are_counted_by_namespace_and_each_in_one_column() -> None:
    found = by_namespace(JOBS)
    assert found["a"] == {
        **{"jobs": 3, "completed": 2, "live": 1, "rejected": 0, "lost": 0, "utility": 7.5},
        **{"kept": 1, "broken": 1, "open": 1},
    }
    assert (found["b"]["rejected"], found["b"]["lost"], found["b"]["broken"]) == (1, 2, 1)
    *_, total = namespace_rows(found)
    assert total == ("all", "6", "2", "1", "1", "2", "7.5", "1 of 3")
    assert len(namespace_rows({"a": found["a"]})) == 1


@pytest.mark.parametrize("phase", PHASES)
def test_a_job_of_any_phase_is_in_one_column(phase: str) -> None:
    (row,) = by_namespace([job("a/one", phase)]).values()
    assert sum(row[part] for part in ("completed", "live", "rejected", "lost")) == 1


def test_what_happened_is_a_row_beside_the_policies() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    figures = actual_figures(JOBS, {"a/one": 3, "a/job/two": 3})
    assert (figures["total_utility"], figures["finished"], figures["unfinished"]) == (7.5, 2, 4)
    assert (figures["mean_completion"], figures["p95_completion"]) == (6.0, 7.0)
    found = with_actual(compare(instance, {}), figures)
    _, ((name, utility, *_rest),) = comparison_table(found)
    assert (name, utility) == (ACTUAL, "7.5")


def test_the_cluster_gets_a_share_of_the_optimum_too() -> None:
    instance = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=1, horizon=6, seed=1)
    optimum = solve(instance).objective
    assert optimum > 0
    earned = {**actual_figures([], {}), "total_utility": 0.8 * optimum}
    found, notes = reporting.measured(instance, ["fifo"], earned, {"time_limit": 30.0}, 0)
    assert notes == []
    row = found.policies[ACTUAL]
    assert row["certified_share_lower"] == pytest.approx(0.8)
    assert row["certified_share_upper"] == pytest.approx(0.8)
    # Without a search, what was earned is the best that is known.
    found, notes = reporting.measured(instance, [], earned, {"gap": float("inf")}, 0)
    row = found.policies[ACTUAL]
    assert row["certified_share_lower"] <= 0.8 + 1e-9 <= row["certified_share_upper"] + 2e-9 <= 1.1


def test_more_than_the_bound_is_said() -> None:
    instance = oasis.generate("testbed", jobs=4, worker_servers=3, ps_servers=1, horizon=6, seed=1)
    earned = {**actual_figures([], {}), "total_utility": 1e6}
    _, notes = reporting.measured(instance, [], earned, {"time_limit": 30.0}, 0)
    assert notes == [
        "this cluster earned 1e+06, more than the bound: jobs needed less work than they declare"
    ]


def test_a_job_that_nobody_has_read_arrives_in_the_slot_after_its_creation() -> None:
    clock = SlotClock(60.0, 0.0, 0.0)
    assert reporting.slot_of(clock, "1970-01-01T00:02:05Z") == 3


def test_the_document_can_be_read_again_and_drawn() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    found = with_actual(compare(instance, {"fifo": FIFO}), actual_figures([], {}))
    document = json.loads(json.dumps(found.to_dict()))
    assert Comparison.from_dict(document).to_dict() == document
    assert comparison_page(Comparison.from_dict(document)).axes
    document |= {"cluster": {"namespaces": {}}, "instance": instance_reference(instance, None)}
    assert ACTUAL in report_page([section_of("day.json", document, None)])
