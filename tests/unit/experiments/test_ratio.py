"""The competitive ratio, of unfinished runs and of any policy; certified shares; the worst case."""

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import oasis
from baselines import DRF, FIFO
from experiments import competitive_ratio
from experiments.cli.commands.ratio import print_jobs
from experiments.cli.exit_codes import LIMIT
from experiments.cli.main import main
from experiments.evaluation import comparison
from experiments.evaluation import competitive_ratio as ratio
from experiments.evaluation.elastic_jobs import compare_elastic
from experiments.evaluation.policies import RIVALS, make_policy
from experiments.evaluation.tables import comparison_table, optimum_facts
from experiments.plotting import comparison_page
from experiments.report import section_of
from oasis.scheduling import Plan, View
from oasis.simulator import elastic_from_dict
from oasis.simulator.result import Run
from oasis.solvers import Status
from oasis.testing import small_instances
from offline import WarmStart, solve
from offline.state import SolveState
from tests import builders
from tests.builders import elastic_data
from tests.strategies import fewer

INSTANCE = oasis.read("docs/examples/congested.json")


@pytest.fixture(scope="module")
def result():
    return competitive_ratio(INSTANCE, time_limit=60)


def test_every_job_is_compared_once_with_what_both_make_of_it(result):
    rows = comparison.compare_jobs(INSTANCE, result)
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
    assert kinds == set(comparison.TAKEN_BY)  # the shipped example has all four
    sums = comparison.totals(rows)
    assert sum(group["jobs"] for group in sums.values()) == len(INSTANCE.jobs)
    for key, whole in (
        ("online_utility", result.online_utility),
        ("offline_utility", result.offline_objective),
    ):
        assert math.fsum(group[key] for group in sums.values()) == pytest.approx(whole)
    assert sums["online"]["offline_utility"] == sums["offline"]["online_utility"] == 0
    entries = [row.to_dict() for row in rows]
    assert json.loads(json.dumps(entries, allow_nan=False)) == entries
    assert {entry["taken_by"] for entry in entries} == set(sums)


def test_job_table_names_who_takes_what_and_says_when_nothing_is_proven(result, capsys):
    rows = comparison.compare_jobs(INSTANCE, result)
    print_jobs(rows, comparison.totals(rows), "OASiS", is_proven=True)
    proven = capsys.readouterr().out
    for row in rows:
        lines = [line for line in proven.splitlines() if line.split()[:1] == [row.job_id]]
        assert len(lines) == (row.taken_by != "neither")
    assert "the optimum takes and OASiS does not: " in proven
    assert "not proven" not in proven


def test_each_incumbent_is_verified_once_and_the_result_at_the_end(monkeypatch):
    """`oasis ratio` asks `verify` once for each incumbent and once at the end, never again."""
    real = importlib.import_module("oasis.certify.verify").verify
    verified: list[object] = []
    incumbents: list[float] = []
    found = SolveState.record_solution

    def counted(instance: oasis.Instance, result: Any) -> float:
        verified.append(result)
        return real(instance, result)

    def noted(self: SolveState, *args: Any, **more: Any) -> float:
        before = self.incumbent
        value = found(self, *args, **more)
        if self.incumbent != before and value not in incumbents:
            incumbents.append(value)
        return value

    users = [m for m in list(sys.modules.values()) if getattr(m, "verify", None) is real]
    for module in users:
        monkeypatch.setattr(module, "verify", counted)
    monkeypatch.setattr(SolveState, "record_solution", noted)
    with pytest.raises(SystemExit) as ended:
        main(["ratio", "docs/examples/congested.json", "--work-limit", "0.5"])
    assert ended.value.code == LIMIT  # so the search went on to the end of its limit
    assert len(incumbents) >= 3
    assert len(verified) == len(incumbents) + 1


def test_unfinished_online_run_still_gives_an_interval(result, monkeypatch):
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


def test_an_interrupted_run_of_another_policy_is_a_schedule_too():
    """What it has earned by then bounds the optimum from below, and the report can be written."""
    part = competitive_ratio(INSTANCE, policy=Stopped())
    earned = sum(decision.utility for decision in part.run.decisions)
    assert part.offline.objective == pytest.approx(earned)
    assert earned > 0
    document = json.loads(json.dumps(part.to_dict(), allow_nan=False)) | {"kind": "ratio"}
    assert document["method"] == "auto"
    assert section_of("x", document, None).title.startswith("Competitive ratio of fifo: between")


def test_optimum_above_the_corrected_theorem_4_stops_the_run(monkeypatch):
    first, second = (builders.job(name, value=worth) for name, worth in (("a", 1.0), ("b", 7.0)))
    pair = builders.instance(first, second, horizon=1, on=builders.cluster(gpus=1.0))
    assert competitive_ratio(pair).ratio == pytest.approx(7)
    real = ratio.certify

    def wrong(instance: oasis.Instance, run: oasis.Run) -> oasis.Certificate:
        return replace(real(instance, run), log_alpha_x=0.0, payoff_gap=0.0)

    monkeypatch.setattr(ratio, "certify", wrong)
    with pytest.raises(oasis.VerificationError, match="corrected Theorem 4"):
        competitive_ratio(pair)


TESTBED = oasis.generate("testbed", jobs=4, worker_servers=3, seed=1)
OPTIMUM = solve(TESTBED, "milp")


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_has_a_ratio_to_the_proven_optimum(name):
    result = competitive_ratio(TESTBED, method="milp", policy=make_policy(name, TESTBED))
    assert result.proven
    assert result.run.policy == name
    assert (result.certificate is None) == (name != "oasis"), "only prices have one"
    assert result.offline_objective == pytest.approx(OPTIMUM.objective)
    if result.online_utility > 0:
        assert result.ratio == pytest.approx(OPTIMUM.objective / result.online_utility)
        assert result.ratio >= 1 - 1e-9
    else:
        assert result.ratio is None


def test_the_interval_of_an_unproven_ratio_contains_what_the_policy_earned_itself():
    """Without time to solve, the policy's own schedules are the best known."""
    busy = oasis.generate("testbed", jobs=8, worker_servers=5, seed=0)
    policy = make_policy("recourse", busy)
    result = competitive_ratio(busy, method="benders", work_limit=0.0, policy=policy)
    assert not result.proven
    assert result.lower == pytest.approx(1.0)
    assert result.upper > 1.0
    unknown = replace(result.offline, status=Status.INTERRUPTED, objective=0.0, schedules={})
    ended = replace(result, offline=unknown)
    assert (ended.lower, ended.upper) == (1.0, pytest.approx(result.upper))


def test_one_solve_serves_several_policies(monkeypatch):
    names = ("fifo", "srtf", "recourse")
    each = {name: competitive_ratio(TESTBED, make_policy(name, TESTBED)) for name in names}
    monkeypatch.delattr("experiments.evaluation.competitive_ratio.solve")
    for name, alone in each.items():
        policy = make_policy(name, TESTBED)
        together = competitive_ratio(TESTBED, policy, offline=each["srtf"].offline)
        assert together.proven
        assert together.ratio == pytest.approx(alone.ratio, rel=1e-6)


def test_a_known_optimum_must_be_of_the_instance_and_leaves_nothing_to_limit():
    known = competitive_ratio(TESTBED, method="milp").offline
    with pytest.raises(oasis.InputError, match="offline: expected no limits beside it"):
        competitive_ratio(TESTBED, offline=known, time_limit=5)
    with pytest.raises(oasis.VerificationError):
        competitive_ratio(oasis.generate("testbed", jobs=1, seed=1), offline=known)
    low = replace(known, objective=0.0, schedules={}, upper_bound=1.0)
    with pytest.raises(oasis.SolverError, match="more than the offline upper bound 1"):
        competitive_ratio(TESTBED, make_policy("fifo"), offline=low)


@fewer(5)
@given(small_instances())
def test_the_true_share_lies_between_the_two_ends(instance):
    runs: list[Run] = []
    found = comparison.compare(instance, {"fifo": FIFO, "drf": DRF}, on_run=runs.append)
    best = max(runs, key=lambda run: run.total_utility)
    truth = solve(instance, method="bruteforce").objective
    start = WarmStart(best.schedules, value=best.total_utility)
    proven = comparison.with_optimum(found, solve(instance, warm_start=start))
    # So little work that the two ends are apart, where there is anything to search.
    early = comparison.with_optimum(
        found, solve(instance, "milp", warm_start=start, gap=float("inf"))
    )
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


def test_a_mean_over_seeds_is_a_share_too():
    instance = TESTBED
    found = comparison.compare(
        instance, {"fifo": lambda seed: FIFO(seed=seed or 0)}, {"fifo": [0, 1]}
    )
    optimum = solve(instance)
    row = comparison.with_optimum(found, optimum).policies["fifo"]
    assert row["certified_share_lower"] == pytest.approx(row["total_utility"] / optimum.objective)


def test_on_elastic_jobs_the_bound_and_the_best_policy_enclose_the_optimum():
    worth = {"kind": "sigmoid", "priority": 40.0, "decay": 0.0008, "target": 4000.0}
    document = elastic_data(6)
    jobs = [{**job, "utility": worth} for job in document["jobs"]]
    made = elastic_from_dict({**document, "jobs": jobs})
    found = comparison.with_best_known(compare_elastic(made, {"fifo": {}, "dragon": {}}))
    best = max(row["total_utility"] for row in found.policies.values())
    for row in found.policies.values():
        assert row["certified_share_lower"] == row["of_bound"]
        assert row["certified_share_upper"] == pytest.approx(row["total_utility"] / best)
        assert 0 < row["certified_share_lower"] <= row["certified_share_upper"] <= 1
    columns, rows = comparison_table(found)
    assert [name for name, _ in columns][:3] == ["policy", "utility", "of optimum"]
    assert all(len(row) == len(columns) for row in rows)


def test_document_table_and_picture_say_what_is_proven(call):
    oasis.write(TESTBED, "i.json")
    line = "compare i.json --policies oasis,fifo --ratio"
    code, said, _ = call(line)
    assert (code, "(proven)" in said) == (0, True)
    code, said, _ = call(f"{line} --gap inf --method milp --json")
    document = json.loads(said)
    assert (code, document["optimum"]["proven"]) == (3, False)
    found = comparison.Comparison.from_dict(document)
    assert found.to_dict() == document
    (_, text), (_, proof) = optimum_facts(found)
    assert proof.startswith("the best schedule found was checked; the upper bound ")
    assert "not proven: gap limit" in text
    assert document["command"].endswith(" --policies oasis,fifo --ratio --gap inf --method milp")
    first = comparison_page(found).axes[0]
    assert "optimum in here" in first.get_legend_handles_labels()[1]


TINY = oasis.Space(jobs=2, slots=1, gpus=1, workers=1, work=1, values=(1, 7))
SPACE = oasis.Space(jobs=3, slots=3, gpus=2, workers=2, work=3)
make_oasis = oasis.OASiS.from_instance


class Idle(oasis.BasePolicy):
    def decide(self, view: View) -> Plan:
        return Plan()


def test_it_finds_the_counterexamples_of_the_errata():
    worst = oasis.worst_case(make_oasis, TINY, evaluations=20)
    assert worst.ratio == 7.0
    assert worst.ratio > (worst.result.bound_2alpha or math.inf)
    space = oasis.Space(jobs=2, slots=1, gpus=1000, workers=510, work=510, values=(1, 1e6))
    assert oasis.worst_case(make_oasis, space, evaluations=5).ratio == pytest.approx(1e6)


def test_it_finds_the_chain_on_which_recourse_gives_up_job_after_job():
    space = oasis.Space(jobs=3, slots=4, gpus=1, workers=1, work=2, values=(10, 14))
    worst = oasis.worst_case(lambda _: oasis.Recourse(), space, evaluations=10)
    assert worst.ratio > 1.8  # 22 / 12 by hand, in steps of a tenth


@pytest.mark.parametrize("seed", [0, 1])
def test_the_ratio_is_that_of_the_instance(seed):
    worst = oasis.worst_case(lambda _: oasis.SRTF(), SPACE, evaluations=25, seed=seed)
    earned = oasis.verify(worst.instance, oasis.simulate(worst.instance, oasis.SRTF()))
    optimum = solve(worst.instance, method="bruteforce").objective
    assert worst.result.proven
    assert worst.ratio == (pytest.approx(optimum / earned) if earned else math.inf)
    assert len(worst.instance.jobs) == SPACE.jobs
    assert all(1 <= job.work(3600.0) <= SPACE.work for job in worst.instance.jobs)


def test_a_seed_gives_the_same_instance_again_and_more_instances_are_no_better():
    found = [oasis.worst_case(make_oasis, SPACE, evaluations=n, seed=3) for n in (15, 15, 40)]
    assert found[0].instance == found[1].instance
    assert found[0].ratio <= found[2].ratio
    assert found[0].ratio <= (found[0].result.corrected_ratio_bound or math.inf)


def test_how_a_search_ends():
    nothing = oasis.worst_case(lambda _: Idle(), SPACE, evaluations=50)  # which earns nothing
    assert (nothing.ratio, nothing.is_complete) == (math.inf, True)
    assert nothing.evaluations < 50
    assert "earned nothing" in repr(nothing)
    small = oasis.Space(jobs=1, slots=1, gpus=1, workers=1, work=1, values=(2, 2))
    whole = oasis.worst_case(make_oasis, small, evaluations=100)
    assert (whole.ratio, whole.is_complete) == (1.0, True)
    late = oasis.worst_case(lambda _: FIFO(), SPACE, evaluations=10**6, time_limit=1e-9)
    assert (late.evaluations, late.is_complete) == (3, False), "what is known to hurt"

    def interrupt(count: int, _: float) -> None:
        if count == 3:
            raise KeyboardInterrupt

    part = oasis.worst_case(make_oasis, SPACE, evaluations=50, on_progress=interrupt)
    assert (part.evaluations, part.is_complete) == (3, False)
