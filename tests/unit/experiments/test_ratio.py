"""The competitive ratio: what it says of unfinished runs, job by job, and that it checks theory."""

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import replace
from typing import Any

import pytest

import oasis
from baselines import FIFO
from experiments import competitive_ratio
from experiments.cli.commands.ratio import print_jobs
from experiments.cli.exit_codes import LIMIT
from experiments.cli.main import main
from experiments.evaluation import competitive_ratio as ratio
from experiments.evaluation.comparison import TAKEN_BY, compare_jobs, to_dict, totals
from experiments.report import section_of
from oasis import Cluster, Constant, Instance, Job, Server
from oasis.scheduling import Plan, View
from oasis.solvers import Status
from offline.state import SolveState

INSTANCE = oasis.read("docs/examples/congested.json")


@pytest.fixture(scope="module")
def result() -> ratio.CompetitiveRatio:
    return competitive_ratio(INSTANCE, time_limit=60)


def test_every_job_is_compared_once_with_what_both_make_of_it(
    result: ratio.CompetitiveRatio,
) -> None:
    rows = compare_jobs(INSTANCE, result)
    assert [row.job_id for row in rows] == [job.id for job in INSTANCE.jobs]
    decisions = {decision.job_id: decision for decision in result.run.decisions}
    for row in rows:
        decision = decisions[row.job_id]
        assert (row.online is not None) == decision.admitted
        if row.online is not None:
            assert row.online.completion == decision.completion
            assert row.online.utility == pytest.approx(decision.utility)
        assert (row.offline is not None) == (row.job_id in result.offline.schedules)
    kinds = {row.taken_by for row in rows}
    assert kinds == set(TAKEN_BY)  # the shipped example has all four
    assert [row for row in rows if row.taken_by == "offline" and row.online is not None] == []


def test_totals_of_the_jobs_add_up_to_the_two_objectives(result: ratio.CompetitiveRatio) -> None:
    sums = totals(compare_jobs(INSTANCE, result))
    assert sum(group["jobs"] for group in sums.values()) == len(INSTANCE.jobs)
    online = math.fsum(group["online_utility"] for group in sums.values())
    offline = math.fsum(group["offline_utility"] for group in sums.values())
    assert online == pytest.approx(result.online_utility)
    assert offline == pytest.approx(result.offline_objective)
    assert sums["online"]["offline_utility"] == sums["offline"]["online_utility"] == 0


def test_job_table_shows_every_job_that_is_taken_and_says_when_nothing_is_proven(
    result: ratio.CompetitiveRatio, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = compare_jobs(INSTANCE, result)
    print_jobs(rows, "OASiS", is_proven=True)
    proven = capsys.readouterr().out
    for row in rows:
        lines = [line for line in proven.splitlines() if line.split()[:1] == [row.job_id]]
        assert len(lines) == (row.taken_by != "neither")
    assert "the optimum takes and OASiS does not: " in proven
    assert "not proven" not in proven
    print_jobs(rows, "srtf", is_proven=False)
    open_ = capsys.readouterr().out
    assert "the best schedule found takes and srtf does not" in open_
    assert "OASiS" not in open_
    assert "not proven optimal" in open_


def test_per_job_document_is_plain_data(result: ratio.CompetitiveRatio) -> None:
    document = to_dict(compare_jobs(INSTANCE, result))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert {entry["taken_by"] for entry in document["jobs"]} == set(document["totals"])


def test_each_incumbent_is_verified_once_and_the_result_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`oasis ratio` asks `verify` once for each incumbent and once at the end, never again."""
    real = importlib.import_module("oasis.certify.verify").verify
    verified: list[object] = []
    incumbents: list[float] = []
    found = SolveState.record_solution

    def counted(instance: Instance, result: Any) -> float:
        verified.append(result)
        return real(instance, result)

    def noted(self: SolveState, value: float, *args: Any) -> None:
        before = self.incumbent
        found(self, value, *args)
        if self.incumbent != before and value not in incumbents:
            incumbents.append(value)

    users = [m for m in list(sys.modules.values()) if getattr(m, "verify", None) is real]
    for module in users:
        monkeypatch.setattr(module, "verify", counted)
    monkeypatch.setattr(SolveState, "record_solution", noted)
    with pytest.raises(SystemExit) as ended:
        main(["ratio", "docs/examples/congested.json", "--work-limit", "0.5"])
    assert ended.value.code == LIMIT  # so the search went on to the end of its limit
    assert len(incumbents) >= 3
    assert len(verified) == len(incumbents) + 1


def test_unfinished_online_run_still_gives_an_interval(
    result: ratio.CompetitiveRatio, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, calls = oasis.OASiS.submit, []

    def interrupted(self: oasis.OASiS, job: oasis.Job) -> oasis.Decision:
        calls.append(job.id)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return submit(self, job)

    with monkeypatch.context() as patch:
        patch.setattr(oasis.OASiS, "submit", interrupted)
        part = competitive_ratio(INSTANCE)
    assert part.certificate is None
    assert part.offline.status is Status.INTERRUPTED
    assert not part.proven
    assert len(part.run.decisions) == 5
    assert part.lower == 1.0
    assert part.upper is not None
    assert result.ratio is not None
    assert 1.0 <= result.ratio <= part.upper
    document = json.loads(json.dumps(part.to_dict(), allow_nan=False))
    bounds = ("bound_2alpha", "log_alpha_x", "corrected_bound", "corrected_ratio_bound")
    assert [document[name] for name in bounds] == [None] * len(bounds)
    assert document["online_utility"] <= result.online_utility


class Stopped(FIFO):
    """Ctrl-C comes when a job has finished."""

    def decide(self, view: View) -> Plan:
        if view.now >= 7:
            raise KeyboardInterrupt
        return super().decide(view)


def test_an_interrupted_run_of_another_policy_is_a_schedule_too() -> None:
    """What it has earned by then bounds the optimum from below, and the report can be written."""
    part = competitive_ratio(INSTANCE, policy=Stopped())
    earned = sum(decision.utility for decision in part.run.decisions)
    assert part.offline.objective == pytest.approx(earned)
    assert earned > 0
    document = json.loads(json.dumps(part.to_dict(), allow_nan=False)) | {"kind": "ratio"}
    assert document["method"] == "auto"
    assert section_of("x", document, None).title.startswith("Competitive ratio of fifo: between")


def test_optimum_above_the_corrected_theorem_4_stops_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(("gpu",), (Server("w", {"gpu": 1}),), (Server("p", {}),), 1.0)
    jobs = tuple(
        Job(name, 0, 1, 1, 1, 1.0, 0.0, {"gpu": 1}, {}, Constant(worth))
        for name, worth in (("first", 1.0), ("second", 7.0))
    )
    pair = Instance(1, cluster, jobs)
    assert competitive_ratio(pair).ratio == pytest.approx(7)
    real = ratio.certify

    def wrong(instance: oasis.Instance, run: oasis.Run) -> oasis.Certificate:
        return replace(real(instance, run), log_alpha_x=0.0, payoff_gap=0.0)

    monkeypatch.setattr(ratio, "certify", wrong)
    with pytest.raises(oasis.VerificationError, match="corrected Theorem 4"):
        competitive_ratio(pair)
