"""Every method ends as soon as a criterion is met, says which, and repeats it in work."""

from __future__ import annotations

import math

import pytest

import oasis
from experiments import competitive_ratio
from offline import Status, solve
from offline.result import OfflineResult
from offline.state import Phase, trivial_bound

# No method proves it in a few seconds.
CONGESTED = oasis.generate("testbed", jobs=8, worker_servers=3, ps_servers=1, seed=2)
HARD = oasis.generate("testbed", jobs=60, seed=2)  # a gap of 9 % after 20 s
LIMITED = ("milp", "colgen", "benders")


def outcome(result: OfflineResult) -> tuple[object, ...]:
    return result.status, result.objective, result.upper_bound, result.schedules


@pytest.mark.parametrize("method", LIMITED)
def test_a_gap_that_the_start_has_ends_the_solve_before_it_begins(method: str) -> None:
    online = oasis.simulate(CONGESTED, oasis.OASiS.from_instance(CONGESTED))
    most = trivial_bound(CONGESTED)
    gap = (most - online.total_utility) / online.total_utility
    result = solve(CONGESTED, method, time_limit=None, gap=gap * 1.001)
    assert result.status is Status.GAP_LIMIT
    assert result.objective == online.total_utility
    assert result.objective_by == Phase.ONLINE
    assert result.gap <= gap * 1.001


@pytest.mark.parametrize("method", LIMITED)
def test_a_gap_ends_the_solve_without_a_proof(method: str) -> None:
    result = solve(CONGESTED, method, work_limit=60.0, gap=0.5)
    assert result.status is Status.GAP_LIMIT
    assert 1e-6 < result.gap <= 0.5
    assert result.parameters["gap"] == 0.5


@pytest.mark.parametrize("method", LIMITED)
def test_no_improvement_ends_the_solve_at_the_same_point_always(method: str) -> None:
    criteria = {"work_limit": 1000.0, "no_improvement": 0.05}
    one, same = (solve(CONGESTED, method, **criteria) for _ in range(2))  # type: ignore[arg-type]
    assert one.status is Status.NO_IMPROVEMENT
    assert outcome(one) == outcome(same)
    assert one.parameters["no_improvement"] == 0.05


@pytest.mark.parametrize("method", LIMITED)
def test_seconds_without_improvement_end_a_solve_without_a_limit(method: str) -> None:
    result = solve(HARD, method, time_limit=None, no_improvement=0.1)
    assert result.status is Status.NO_IMPROVEMENT
    assert 1e-6 < result.gap < math.inf


@pytest.mark.parametrize("method", LIMITED)
def test_what_is_met_first_ends_the_solve(method: str) -> None:
    criteria = {"gap": 1e-4, "no_improvement": 900.0}
    result = solve(CONGESTED, method, work_limit=0.1, **criteria)  # type: ignore[arg-type]
    assert result.status is Status.WORK_LIMIT


def test_a_proof_is_a_proof_whatever_gap_was_asked_for() -> None:
    sizes = {"jobs": 2, "worker_servers": 1, "ps_servers": 1, "horizon": 3}
    small = oasis.generate("testbed", **sizes, seed=3)
    for method in ("milp", "benders", "bruteforce"):
        result = solve(small, method, time_limit=None, gap=1e-9, no_improvement=1e6)
        assert result.status is Status.OPTIMAL


def test_a_ratio_takes_the_criteria_of_its_solve() -> None:
    ratio = competitive_ratio(CONGESTED, time_limit=None, gap=2.0)
    assert ratio.offline.status is Status.GAP_LIMIT
    assert not ratio.proven
    ratio = competitive_ratio(CONGESTED, work_limit=900.0, no_improvement=0.05)
    assert ratio.offline.status is Status.NO_IMPROVEMENT


@pytest.mark.parametrize("method", [*LIMITED, "bruteforce", "auto"])
@pytest.mark.parametrize("name", ["gap", "no_improvement"])
def test_a_criterion_that_is_none_is_refused_by_its_name(method: str, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: expected an? \w+ >= 0, or None .* got nan"):
        solve(CONGESTED, method, **{name: math.nan})  # type: ignore[arg-type]
