"""``oasis compare --ratio``: the share of the optimum that each policy earned, with certainty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

import oasis
from baselines import DRF, FIFO
from experiments.evaluation.comparison import (
    Comparison,
    compare,
    with_best_known,
    with_optimum,
)
from experiments.evaluation.elastic_jobs import compare_elastic
from experiments.evaluation.tables import comparison_table, optimum_facts
from experiments.plotting import comparison_page
from oasis.simulator import elastic_from_dict
from oasis.simulator.result import Run
from offline import WarmStart, solve
from tests.builders import elastic_data, exit_code
from tests.strategies import fewer, small_instances


def small(seed: int, jobs: int = 4) -> oasis.Instance:
    return oasis.generate(
        "testbed", jobs=jobs, worker_servers=3, ps_servers=1, horizon=6, seed=seed
    )


def compared(instance: oasis.Instance) -> tuple[Comparison, Run]:
    runs: list[Run] = []
    found = compare(instance, {"fifo": FIFO, "drf": DRF}, on_run=runs.append)
    return found, max(runs, key=lambda run: run.total_utility)


@fewer(5)
@given(small_instances())
def test_the_true_share_lies_between_the_two_ends(instance: oasis.Instance) -> None:
    found, best = compared(instance)
    truth = solve(instance, method="bruteforce").objective
    start = WarmStart(best.schedules, value=best.total_utility)
    proven = with_optimum(found, solve(instance, warm_start=start))
    # So little work that the two ends are apart, where there is anything to search.
    early = with_optimum(found, solve(instance, "milp", warm_start=start, gap=float("inf")))
    for name, row in found.policies.items():
        if truth == 0:
            assert proven.policies[name]["certified_share_lower"] is None
            continue
        share = row["total_utility"] / truth
        exact, rough = proven.policies[name], early.policies[name]
        assert exact["certified_share_lower"] == pytest.approx(share, abs=1e-6)
        assert exact["certified_share_upper"] == exact["certified_share_lower"]
        assert rough["certified_share_lower"] <= share + 1e-6
        assert rough["certified_share_upper"] is None or (
            share - 1e-6 <= rough["certified_share_upper"] <= 1 + 1e-9
        )


def test_a_mean_over_seeds_is_a_share_too() -> None:
    instance = small(3)
    found = compare(instance, {"fifo": lambda seed: FIFO(seed=seed or 0)}, {"fifo": [0, 1]})
    optimum = solve(instance)
    row = with_optimum(found, optimum).policies["fifo"]
    assert row["certified_share_lower"] == pytest.approx(row["total_utility"] / optimum.objective)


def test_on_elastic_jobs_the_bound_and_the_best_policy_enclose_the_optimum() -> None:
    worth = {"kind": "sigmoid", "priority": 40.0, "decay": 0.0008, "target": 4000.0}
    document = elastic_data(6)
    jobs = [{**job, "utility": worth} for job in document["jobs"]]
    made = elastic_from_dict({**document, "jobs": jobs})
    found = with_best_known(compare_elastic(made, {"fifo": {}, "dragon": {}}))
    best = max(row["total_utility"] for row in found.policies.values())
    for row in found.policies.values():
        assert row["certified_share_lower"] == row["of_bound"]
        assert row["certified_share_upper"] == pytest.approx(row["total_utility"] / best)
        assert 0 < row["certified_share_lower"] <= row["certified_share_upper"] <= 1
    columns, rows = comparison_table(found)
    assert [name for name, _ in columns][:3] == ["policy", "utility", "of optimum"]
    assert all(len(row) == len(columns) for row in rows)


def test_document_table_and_picture_say_what_is_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "instance.json"
    oasis.write(small(1), file)
    words = ["compare", file, "--policies", "oasis,fifo", "--ratio"]
    assert exit_code(*words) == 0
    said = capsys.readouterr().out
    assert "(proven)" in said
    assert exit_code(*words, "--gap", "inf", "--method", "milp", "--json") == 3
    document = json.loads(capsys.readouterr().out)
    assert document["optimum"]["proven"] is False
    found = Comparison.from_dict(document)
    assert found.to_dict() == document
    (_, text), (_, proof) = optimum_facts(found)
    assert proof.startswith("the best schedule found was checked; the upper bound ")
    assert "not proven: gap limit" in text
    assert document["command"].endswith(" --policies oasis,fifo --ratio --gap inf --method milp")
    first = comparison_page(found).axes[0]
    assert "optimum in here" in first.get_legend_handles_labels()[1]
