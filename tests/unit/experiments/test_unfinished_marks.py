"""Completion times of the finished jobs only are marked, with the number of the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oasis
from baselines import DRF, FIFO
from experiments import competitive_ratio
from experiments.evaluation import tables
from experiments.evaluation.comparison import Comparison, compare, replay_each
from experiments.evaluation.elastic_jobs import compare_elastic
from experiments.plotting import plot_comparison, run_page
from experiments.plotting.comparison import plot_means
from experiments.report.sections import section_of
from experiments.sweep import summarise
from experiments.sweep.summary import notes_of, rows_of
from oasis.simulator import Workload, elastic_from_dict
from tests.builders import elastic_file

CLOSED = """
from oasis.scheduling import BasePolicy, Plan


class Closed(BasePolicy):
    def decide(self, view):
        return Plan(rejected={job.index: "closed" for job in view.arrived})
"""
POLICIES: dict[str, dict[str, Any]] = {"kubernetes-default": {}, "fifo": {}}


def stuck() -> Workload:
    """Two gangs of three workers on four GPUs, and a small job before them.

    The default scheduler binds pods one by one, and the two hold two GPUs each for ever.
    """

    def job(name: str, arrival: float, work: float, workers: int) -> dict[str, Any]:
        counts = {"min": workers, "max": workers, "initial": workers}
        own = {"id": name, "arrival": arrival, "work": work, "workers": counts}
        return own | {"worker": {"gpu": 1}, "utility": {"kind": "constant", "value": 1.0}}

    jobs = [job("c", 0, 30, 1), job("a", 10, 90, 3), job("b", 10, 60, 3)]
    return elastic_from_dict(elastic_file(jobs, {"id": "n0", "capacity": {"gpu": 4}}))


@pytest.fixture(scope="module")
def replayed() -> Comparison:
    return replay_each(stuck(), POLICIES, {"version": "1"})


def test_a_replay_says_who_deadlocked_and_marks_the_mean(replayed: Comparison) -> None:
    """c waits for nobody; a and b wait from 10 to the end at 30 + 30 + 20."""
    found = replayed.policies["kubernetes-default"]
    assert (found["finished"], found["unfinished"], found["rejected"]) == (1, 2, 0)
    assert found["mean_waiting"] == pytest.approx((70 + 70) / 3)
    assert found["mean_completion"] < replayed.policies["fifo"]["mean_completion"]
    assert replayed.policies["fifo"]["unfinished"] == 0
    stuck_row, fifo_row = tables.comparison_table(replayed)[1]
    assert stuck_row[1:7] == ("1", *[f"30{tables.SPACE}s*"] * 3, f"47{tables.SPACE}s*", "90.6%*")
    assert fifo_row[6] == "75%"  # the two that never run hold more
    assert not any("*" in cell for cell in fifo_row)
    first, second, third = tables.unfinished_notes(replayed)
    assert first == ("*: of the finished jobs only. Not finished, of 3 jobs: kubernetes-default 2")
    assert "end of the run" in second
    assert third == "Use*: what such a job holds counts as used"


def test_a_policy_that_rejects_all_has_no_waiting_that_can_be_compared(tmp_path: Path) -> None:
    """It waits for nothing, which is no merit."""
    (tmp_path / "closed.py").write_text(CLOSED, encoding="utf-8")
    made, name = stuck(), f"{tmp_path / 'closed.py'}:Closed"
    found = replay_each(made, {name: {}})
    row = found.policies[name]
    assert (row["mean_waiting"], row["rejected"]) == (0.0, 3)
    assert tables.comparison_table(found)[1][0][1:7] == (
        "0",
        "-",
        "-",
        "-",
        f"0{tables.SPACE}s*",
        "0%*",
    )


def test_without_unfinished_jobs_there_is_no_note() -> None:
    assert tables.unfinished_notes(replay_each(stuck(), {"fifo": {}})) == []


def test_elastic_jobs_are_marked_too() -> None:
    found = compare_elastic(stuck(), POLICIES)
    assert found.policies["kubernetes-default"]["unfinished"] == 2
    assert found.unfinished == {"kubernetes-default": 2, "fifo": 0}
    stuck_row, fifo_row = tables.comparison_table(found)[1]
    assert stuck_row[3:7] == ("1", "30*", "30*", "47*")
    assert (stuck_row[8], fifo_row[8]) == ("90.6%*", "75%")
    assert not any("*" in cell for cell in fifo_row)


def test_rejected_jobs_are_no_survivors_either() -> None:
    """OASiS rejects; its mean is one of the jobs that it took and finished."""
    instance = oasis.generate("testbed", jobs=8, seed=1)
    makers = {"oasis": lambda: oasis.OASiS.from_instance(instance), "drf": DRF}
    found = compare(instance, makers)
    row = found.policies["oasis"]
    assert row["rejected"] > 0
    assert row["unfinished"] == len(instance.jobs) - row["finished"]
    assert tables.comparison_table(found)[1][0][5].endswith("*")


def test_means_over_seeds_are_marked_if_one_run_lost_a_job() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    found = compare(instance, {"fifo": lambda seed: FIFO(seed=seed)}, {"fifo": [0, 1]})
    row = found.policies["fifo"]
    assert row["unfinished"] == 4 - row["finished"] > 0
    assert row["over_seeds"]["figures"]["unfinished"]["values"] == [3, 3]
    assert tables.comparison_table(found)[1][0][5].endswith("*")


def test_the_plot_marks_the_bar_and_says_how_many(replayed: Comparison) -> None:
    ax = plot_comparison(replayed, measure="completion")
    labels = [text.get_text() for text in ax.texts]
    assert labels.count("30*") == 3
    assert sum(label.endswith("*") for label in labels) == 3  # those of FIFO are not marked
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[0].startswith("kubernetes")
    assert names[0].endswith("\n* 2 of 3 unfinished")
    assert names[1] == "fifo"
    for measure in ("waiting", "use"):
        other = plot_comparison(replayed, measure=measure)
        assert sum(text.get_text().endswith("*") for text in other.texts) == 1
        assert "2 of 3 unfinished" in other.get_yticklabels()[0].get_text()


def test_the_report_has_the_note(replayed: Comparison) -> None:
    section = section_of("replay.json", replayed.to_dict() | {"kind": "replay"}, None)
    assert any("Not finished, of 3 jobs: kubernetes-default 2" in note for note in section.notes)
    assert section.tables[0].rows[0][2] == f"30{tables.SPACE}s*"


def test_a_run_says_how_many_admitted_jobs_did_not_finish() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    run = oasis.simulate(instance, FIFO())
    assert run.admitted_unfinished == 3
    assert run.simulation is not None
    assert run.simulation["unfinished"] == 3
    said = ("did not finish", "3 of 4 admitted jobs, which earn nothing")
    assert said in tables.run_facts(run, {})
    again = oasis.Run.from_dict(json.loads(json.dumps(run.to_dict())))
    assert said in tables.run_facts(again, {})
    assert "3 of them did not finish" in run_page(instance, run).get_suptitle()
    section = section_of("run.json", run.to_dict() | {"kind": "run"}, None)
    assert section.title == "Run of fifo: 4 of 4 jobs admitted, 3 of them did not finish"
    whole = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    assert whole.admitted_unfinished == 0
    assert "did not finish" not in dict(tables.run_facts(whole, {}))


def test_a_ratio_says_how_many_admitted_jobs_did_not_finish() -> None:
    """It says of how many jobs the policy was paid, not only how many it took."""
    instance = oasis.generate("testbed", jobs=4, seed=1)
    result = competitive_ratio(instance, method="milp", policy=FIFO())
    said = ("did not finish", "3 of 4 admitted jobs, which earn nothing")
    assert said in tables.ratio_facts("fifo", result, 4)
    assert said not in tables.ratio_facts("fifo", replace(result, is_complete=False), 4)
    section = section_of("ratio.json", result.to_dict(), instance)
    assert said in section.facts
    assert "did not finish" in repr(result.run)
    best = competitive_ratio(instance, method="milp")
    assert "did not finish" not in dict(tables.ratio_facts("OASiS", best, 4))
    assert "did not finish" not in repr(best.run)


def cells(**columns: Any) -> pd.DataFrame:
    same = {"seed": [0, 1], "status": "done", "policy.name": "las", "finished": [2.0, 4.0]}
    return pd.DataFrame(same | {"jobs": 4, "mean_completion": [3.0, 5.0]} | columns)


@pytest.mark.parametrize("columns", [{"unfinished": [2.0, 0.0]}, {}])
def test_the_means_of_a_sweep_are_marked(columns: dict[str, Any]) -> None:
    means = summarise(cells(**columns), ["finished", "mean_completion"])
    assert means["unfinished"].tolist() == [1.0]
    (row,) = rows_of(means, ["finished", "mean_completion"])
    assert row[-1].endswith("†")
    assert not row[-2].endswith("†")
    note = notes_of(means, ["finished", "mean_completion"])[-1]
    assert note == "†: of the finished jobs only. Not finished: las 1"


def test_a_sweep_in_which_all_jobs_finish_has_no_mark() -> None:
    means = summarise(cells(finished=[4.0, 4.0]), ["mean_completion"])
    assert not rows_of(means, ["mean_completion"])[0][-1].endswith("†")
    assert not any("†" in note for note in notes_of(means, ["mean_completion"]))


def test_the_plot_of_means_says_how_many_did_not_finish() -> None:
    point = {"mean": 3.0, "low": 2.0, "high": 4.0, "unfinished": 2.5}
    ax = plot_means([("las", point)], "mean_completion")
    assert [text.get_text() for text in ax.texts] == ["2.5 unfinished"]
    assert not plot_means([("las", point)], "total_utility").texts


def test_results_of_versions_that_did_not_count_unfinished_jobs_have_their_number() -> None:
    rows = {"las": {"finished": 3, "mean_completion": 7.0}, "fifo": {"finished": 5}}
    found = Comparison("replay", rows, {"jobs": 5})
    assert found.unfinished == {"las": 2, "fifo": 0}
    (note,) = tables.unfinished_notes(found)
    assert note.endswith("Not finished, of 5 jobs: las 2")


def test_large_counts_and_long_times_keep_their_digits() -> None:
    rows = {"mine": {"unfinished": 12345, "finished": 98765, "mean_waiting": 1.0}}
    (first, *_) = tables.unfinished_notes(Comparison("replay", rows, {"jobs": 111110}))
    assert first.endswith("mine 12345")
    assert (tables.brief(98765), tables.brief(1234.5, 3), tables.brief(4.891, 3)) == (
        "98765",
        "1234",
        "4.89",
    )
    assert tables.interval({"mean": 23456.0, "low": 1234.0, "high": 98765.0}) == (
        "23456 (1234 to 98765)"
    )
