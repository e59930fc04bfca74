"""The competitive ratio of policies other than OASiS."""

from __future__ import annotations

from dataclasses import replace

import pytest

import oasis
from experiments import competitive_ratio
from experiments.evaluation.policies import RIVALS, make_policy
from oasis.solvers import Status
from offline import solve

INSTANCE = oasis.generate("testbed", jobs=4, worker_servers=3, seed=1)
OPTIMUM = solve(INSTANCE, "milp")


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_has_a_ratio_to_the_proven_optimum(name: str) -> None:
    result = competitive_ratio(INSTANCE, method="milp", policy=make_policy(name, INSTANCE))
    assert result.proven
    assert result.run.policy == name
    assert result.offline_objective == pytest.approx(OPTIMUM.objective)
    if result.online_utility > 0:
        assert result.ratio == pytest.approx(OPTIMUM.objective / result.online_utility)
        assert result.ratio >= 1 - 1e-9
    else:
        assert result.ratio is None


def test_only_a_policy_with_prices_has_a_certificate() -> None:
    priced = competitive_ratio(INSTANCE, method="milp").to_dict()
    plain = competitive_ratio(
        INSTANCE, method="milp", policy=make_policy("recourse", INSTANCE)
    ).to_dict()
    assert priced["bound_2alpha"] > 0
    assert plain["bound_2alpha"] is plain["corrected_ratio_bound"] is None
    assert plain["proven"]


def test_the_interval_of_an_unproven_ratio_contains_what_the_policy_earned_itself() -> None:
    """Without time to solve, the policy's own schedules are the best known."""
    busy = oasis.generate("testbed", jobs=8, worker_servers=5, seed=0)
    result = competitive_ratio(
        busy, method="benders", work_limit=0.0, policy=make_policy("recourse", busy)
    )
    assert not result.proven
    assert result.lower == pytest.approx(1.0)
    assert result.upper is not None
    assert result.upper > 1.0


def test_a_solve_that_ended_before_it_knew_any_schedules_leaves_a_ratio_of_one_at_least() -> None:
    result = competitive_ratio(INSTANCE, method="milp")
    unknown = replace(result.offline, status=Status.INTERRUPTED, objective=0.0, schedules={})
    ended = replace(result, offline=unknown)
    assert ended.lower == 1.0
    assert ended.upper == pytest.approx(result.upper)


def test_one_solve_serves_several_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("fifo", "srtf", "recourse")
    each = {name: competitive_ratio(INSTANCE, make_policy(name, INSTANCE)) for name in names}
    monkeypatch.delattr("experiments.evaluation.competitive_ratio.solve")
    for name, alone in each.items():
        policy = make_policy(name, INSTANCE)
        together = competitive_ratio(INSTANCE, policy, offline=each["srtf"].offline)
        assert together.proven
        assert together.ratio == pytest.approx(alone.ratio, rel=1e-6)


def test_a_known_optimum_must_be_of_the_instance_and_leaves_nothing_to_limit() -> None:
    known = competitive_ratio(INSTANCE, method="milp").offline
    with pytest.raises(oasis.InputError, match="offline: expected no limits beside it"):
        competitive_ratio(INSTANCE, offline=known, time_limit=5)
    with pytest.raises(oasis.VerificationError):
        competitive_ratio(oasis.generate("testbed", jobs=1, seed=1), offline=known)
    low = replace(known, objective=0.0, schedules={}, upper_bound=1.0)
    with pytest.raises(oasis.SolverError, match="more than the offline upper bound 1"):
        competitive_ratio(INSTANCE, make_policy("fifo"), offline=low)
