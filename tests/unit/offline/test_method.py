"""Shared behaviour of all methods: one signature, one run of OASiS, one meaning of a warm start."""

from __future__ import annotations

import importlib

import pytest

import oasis
from oasis import Schedule
from oasis.model.validation import LARGEST_SEED
from oasis.solvers.budget import Budget
from offline import Gap, Status, WorkLimit, solve
from offline.column_generation.bound import configuration_bound
from offline.params import CompactParams
from offline.problem import Method
from offline.result import OfflineResult
from offline.solve import METHODS
from offline.state import Phase, SolveState, WarmStart, decide, warm_start_of

solving = importlib.import_module("offline.solve")
TINY = oasis.generate("testbed", jobs=2, worker_servers=1, ps_servers=1, horizon=3, seed=3)
ONLINE = oasis.simulate(TINY, oasis.OASiS.from_instance(TINY))
STARTS = (None, {}, ONLINE.schedules, WarmStart({}))


@pytest.mark.parametrize("method", METHODS)
def test_criteria_and_their_shorthands_are_the_same(method: str) -> None:
    one = solve(TINY, method, stop=WorkLimit(0.3) | Gap(0.5))
    same = solve(TINY, method, stop=Gap(0.5), work_limit=0.3)
    assert (one.status, one.objective, one.parameters) == (
        same.status,
        same.objective,
        same.parameters,
    )
    if method != "bruteforce":
        told = {"work_limit": 0.3, "gap": 0.5}
        assert one.parameters.items() >= told.items()
        assert "time_limit" not in one.parameters


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("time_limit", -1.0, "time_limit: expected seconds >= 0, or None for no limit, got -1.0"),
        (
            "work_limit",
            -1.0,
            "work_limit: expected units of work >= 0, or None for no limit, got -1.0",
        ),
        ("seed", -1, "seed: expected an integer >= 0, got -1"),
        ("seed", 2**31, "seed: expected an integer <= 2147483647, got 2147483648"),
        ("seed", 0.5, "seed: expected an integer >= 0, got 0.5"),
    ],
)
def test_a_number_that_is_not_allowed_is_refused_by_its_name(
    method: str, argument: str, value: float, message: str
) -> None:
    """NumPy and HiGHS refused seeds in words of their own, or not at all."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the message is compared below)
        solve(TINY, method, **{argument: value})  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_seed_is_taken_by_every_solver(method: str) -> None:
    assert solve(TINY, method, seed=LARGEST_SEED).status is Status.OPTIMAL or method == "colgen"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first job of each run of OASiS."""
    made: list[str] = []
    submit = oasis.OASiS.submit

    def noted(self: oasis.OASiS, job: oasis.Job) -> oasis.Decision:
        if job is TINY.jobs[0]:
            made.append(job.id)
        return submit(self, job)

    monkeypatch.setattr(oasis.OASiS, "submit", noted)
    return made


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", STARTS, ids=["none", "empty", "schedules", "without prices"])
def test_oasis_runs_once_or_not_at_all(
    runs: list[str], method: str, start: dict[str, Schedule] | WarmStart | None
) -> None:
    solve(TINY, method, work_limit=0.3, warm_start=start)
    needs_prices = method in ("benders", "colgen")
    assert len(runs) == (1 if start is None or needs_prices else 0)


def test_a_start_that_has_prices_needs_no_run(runs: list[str]) -> None:
    _, start = decide(TINY, SolveState(Budget()), scheduler)
    assert len(runs) == 1
    for method in METHODS:
        solve(TINY, method, work_limit=0.3, warm_start=start)
    configuration_bound(TINY, warm_start=start)
    assert len(runs) == 1


def scheduler() -> oasis.OASiS:
    return oasis.OASiS.from_instance(TINY)


@pytest.mark.parametrize("method", METHODS)
def test_without_a_start_every_method_has_oasis_own(method: str) -> None:
    seen = []
    result = solve(TINY, method, work_limit=0.0, on_progress=seen.append)
    assert seen[0].phase == Phase.ONLINE
    assert result.objective >= ONLINE.total_utility
    if method != "bruteforce":
        assert result.objective_by == Phase.ONLINE
        assert result.parameters["warm_start"] == Phase.ONLINE
    given = solve(TINY, method, work_limit=0.0, warm_start=ONLINE.schedules)
    assert given.objective == result.objective
    expected = Phase.ENUMERATION if method == "bruteforce" else Phase.WARM_START
    assert given.objective_by == expected


@pytest.mark.parametrize("method", METHODS)
def test_an_infeasible_start_is_refused(method: str) -> None:
    twice = {job.id: ONLINE.schedules[next(iter(ONLINE.schedules))] for job in TINY.jobs}
    with pytest.raises(oasis.VerificationError):
        solve(TINY, method, warm_start=twice)


class Lazy(Method[CompactParams]):
    name, kind = "lazy", CompactParams

    def solve(self, *given: object) -> Status:
        return Status.TIME_LIMIT


def test_a_new_method_is_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "METHODS", ("auto", "lazy"))
    monkeypatch.setattr(solving, "METHOD_BY_NAME", {"lazy": Lazy})
    result = solve(TINY, "lazy", time_limit=1.0)
    assert isinstance(result, OfflineResult)
    assert (result.method, result.objective) == ("lazy", ONLINE.total_utility)
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)


def test_prices_of_a_start_are_those_of_the_run() -> None:
    made = scheduler()
    oasis.simulate(TINY, made)
    state = SolveState(Budget())
    start = warm_start_of(TINY, {}, state, needs_prices=True)
    assert start.prices is not None
    assert (start.prices.worker == made.ledger.worker_prices).all()
    assert (start.prices.ps == made.ledger.ps_prices).all()
    assert start.prices.schedules.keys() == ONLINE.schedules.keys()
    assert state.incumbent is None  # a run for its prices alone is no solution
