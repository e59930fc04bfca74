"""What all methods share: signature, criteria, parameters, starts, phases, the interval so far."""

from __future__ import annotations

import importlib
import json
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from experiments import competitive_ratio
from oasis.model.validation import LARGEST_SEED
from oasis.solvers import TRUST, SolveProgress, Status
from oasis.solvers.budget import Budget
from offline import Gap, Stop, WorkLimit, solve
from offline import result as results
from offline.column_generation.bound import configuration_bound
from offline.params import (
    AutoParams,
    BendersParams,
    ColumnGenerationParams,
    CompactParams,
    Params,
    Range,
    hints_of,
)
from offline.problem import Method
from offline.result import Milestone, OfflineResult
from offline.solve import LONG_COUNTS, METHOD_BY_NAME, METHODS, SHORT, chosen_by_size, params_of
from offline.state import (
    Phase,
    SolveState,
    WarmStart,
    conclude,
    decide,
    trivial_bound,
    warm_start_of,
)

solving = importlib.import_module("offline.solve")
CLI = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
ROWS = tomllib.loads(Path(__file__).with_name("method_rows.toml").read_text())
LIMITED = ("milp", "colgen", "benders")
TINY = oasis.generate("testbed", jobs=2, worker_servers=1, ps_servers=1, horizon=3, seed=3)
ONLINE = oasis.simulate(TINY, oasis.OASiS.from_instance(TINY))
# No method proves it in a few seconds.
CONGESTED = oasis.generate("testbed", jobs=8, worker_servers=3, ps_servers=1, seed=2)


# -- criteria --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_criteria_and_their_shorthands_are_the_same(method):
    one = solve(TINY, method, stop=WorkLimit(0.3) | Gap(0.5))
    same = solve(TINY, method, stop=Gap(0.5), work_limit=0.3)
    told = one.status, one.objective, one.parameters
    assert told == (same.status, same.objective, same.parameters)
    if method != "bruteforce":
        assert one.parameters.items() >= {"work_limit": 0.3, "gap": 0.5}.items()
        assert "time_limit" not in one.parameters


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("row", ROWS["refused"], ids=lambda row: row["argument"])
def test_a_number_that_is_not_allowed_is_refused_by_its_name(method, row):
    """NumPy and HiGHS refused seeds in words of their own, or not at all."""
    argument = row["argument"]
    for value in row["values"]:
        expected = re.escape(f"{argument}: {row['says']}, got {value}")
        with pytest.raises(ValueError, match=f"^{expected}$"):
            solve(TINY, method, **{argument: value})
        if argument == "time_limit":
            with pytest.raises(ValueError, match=f"^{expected}$"):
                configuration_bound(TINY, time_limit=value)


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_seed_is_taken_by_every_solver(method):
    assert solve(TINY, method, seed=LARGEST_SEED).status is Status.OPTIMAL or method == "colgen"


@pytest.mark.parametrize("method", LIMITED)
def test_a_gap_that_the_start_has_ends_the_solve_before_it_begins(method):
    online = oasis.simulate(CONGESTED, oasis.OASiS.from_instance(CONGESTED)).total_utility
    gap = (trivial_bound(CONGESTED) - online) / online * 1.001
    result = solve(CONGESTED, method, time_limit=None, gap=gap)
    assert (result.status, result.objective) == (Status.GAP_LIMIT, online)
    assert result.objective_by == Phase.ONLINE
    assert result.gap <= gap


@pytest.mark.parametrize("method", LIMITED)
@pytest.mark.parametrize(
    ("criteria", "status"),
    [
        ({"work_limit": 60.0, "gap": 0.5}, Status.GAP_LIMIT),
        ({"work_limit": 1000.0, "no_improvement": 0.05}, Status.NO_IMPROVEMENT),
        ({"work_limit": 0.1, "gap": 1e-4, "no_improvement": 900.0}, Status.WORK_LIMIT),
    ],
)
def test_what_is_met_first_ends_the_solve_at_the_same_point_always(method, criteria, status):
    one, same = (solve(CONGESTED, method, **criteria) for _ in range(2))  # type: ignore[arg-type]
    assert one.status is status
    assert one.gap > 1e-6
    assert status is not Status.GAP_LIMIT or one.gap <= criteria["gap"]
    assert one.parameters.items() >= criteria.items()
    assert (one.objective, one.upper_bound) == (same.objective, same.upper_bound)
    assert one.schedules == same.schedules


@pytest.mark.parametrize("method", LIMITED)
def test_seconds_without_improvement_end_a_solve_without_a_limit(method):
    hard = oasis.generate("testbed", jobs=60, seed=2)  # a gap of 9 % after 20 s
    result = solve(hard, method, time_limit=None, no_improvement=0.1)
    assert result.status is Status.NO_IMPROVEMENT
    assert 1e-6 < result.gap < math.inf


@pytest.mark.parametrize("method", ["milp", "benders", "bruteforce"])
def test_a_proof_is_a_proof_whatever_gap_was_asked_for(method):
    result = solve(TINY, method, time_limit=math.inf, gap=1e-9, no_improvement=1e6)
    assert result.status is Status.OPTIMAL
    assert result.to_dict()["parameters"].get("time_limit") is None


def test_a_ratio_takes_the_criteria_of_its_solve():
    ratio = competitive_ratio(CONGESTED, time_limit=None, gap=2.0)
    assert ratio.offline.status is Status.GAP_LIMIT
    assert not ratio.proven
    ratio = competitive_ratio(CONGESTED, work_limit=900.0, no_improvement=0.05)
    assert ratio.offline.status is Status.NO_IMPROVEMENT


# -- starts ----------------------------------------------------------------------------------------


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


STARTS = (None, {}, ONLINE.schedules, WarmStart({}))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", STARTS, ids=["none", "empty", "schedules", "without prices"])
def test_oasis_runs_once_or_not_at_all(runs, method, start):
    solve(TINY, method, work_limit=0.3, warm_start=start)
    needs_prices = method in ("benders", "colgen")
    assert len(runs) == (1 if start is None or needs_prices else 0)


def test_a_start_that_has_prices_needs_no_run(runs):
    _, start = decide(SolveState(TINY, Budget()), lambda: oasis.OASiS.from_instance(TINY))
    assert len(runs) == 1
    for method in METHODS:
        solve(TINY, method, work_limit=0.3, warm_start=start)
    configuration_bound(TINY, warm_start=start)
    assert len(runs) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_start_is_kept_and_said_and_without_one_it_is_oasis_own(method):
    seen: list[SolveProgress] = []
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
    twice = {job.id: ONLINE.schedules[next(iter(ONLINE.schedules))] for job in TINY.jobs}
    with pytest.raises(oasis.VerificationError):
        solve(TINY, method, warm_start=twice)


def test_prices_of_a_start_are_those_of_the_run():
    made = oasis.OASiS.from_instance(TINY)
    oasis.simulate(TINY, made)
    state = SolveState(TINY, Budget())
    start = warm_start_of({}, state, needs_prices=True)
    assert start.prices is not None
    assert (start.prices.worker == made.ledger.worker_prices).all()
    assert (start.prices.ps == made.ledger.ps_prices).all()
    assert start.prices.schedules.keys() == ONLINE.schedules.keys()
    assert state.incumbent is None  # a run for its prices alone is no solution


# -- parameters ------------------------------------------------------------------------------------


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values that a field of this type allows."""
    if get_origin(hint) is Annotated:
        allowed: Range = get_args(hint)[1]
        most = min(allowed.most, 1e6)
        if allowed.is_integer:
            return st.integers(int(allowed.least), int(most))
        return st.floats(allowed.least, most, allow_subnormal=False)
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    return st.booleans() if hint is bool else params(hint)


def params(kind: type[Params]) -> st.SearchStrategy[Params]:
    return st.builds(kind, **{name: values(hint) for name, hint in hints_of(kind).items()})


@given(st.sampled_from([ColumnGenerationParams, *map(params_of, METHODS)]).flatmap(params))
def test_plain_data_says_it_all(made):
    read = json.loads(json.dumps(made.to_dict()))
    assert type(made).from_dict(read) == made


@pytest.mark.parametrize("row", ROWS["parameters"], ids=lambda row: row["says"])
def test_parameters_that_are_not_allowed_are_named(row):
    kind = ColumnGenerationParams if "classes" in row["data"] else AutoParams
    with pytest.raises(oasis.InputError, match=f"^{re.escape(row['says'])}") as error:
        kind.from_dict(row["data"])
    assert error.value.field == row["says"].partition(":")[0]


@pytest.mark.parametrize("method", METHODS)
def test_parameters_of_another_method_are_refused(method):
    expected = f"^params: expected .*Params for method '{method}', got Column"
    with pytest.raises(oasis.InputError, match=expected):
        solve(TINY, method, params=ColumnGenerationParams())
    with pytest.raises(oasis.InputError, match=r"^milp: expected CompactParams, got"):
        AutoParams.from_dict({"milp": BendersParams()})


@pytest.mark.parametrize("method", METHOD_BY_NAME)
def test_a_result_has_the_parameters_that_it_can_be_made_again_with(method):
    result = solve(TINY, method, work_limit=0.5, seed=4)
    told = json.loads(json.dumps(result.parameters))
    kind = METHOD_BY_NAME[method].kind
    assert kind.from_dict(told["params"]) == kind()
    again = solve(TINY, method, work_limit=0.5, seed=4, params=told["params"])
    assert again.parameters == result.parameters
    assert again.objective == result.objective


def test_parameters_reach_the_method_that_auto_chooses():
    params = AutoParams(compact_size=0, benders=BendersParams(window=7))
    for given_params in (params, params.to_dict()):
        result = solve(TINY, params=given_params)
        assert result.method == "benders"
        assert result.parameters["params"]["window"] == 7
    assert solve(TINY).method == "milp"


class Lazy(Method[CompactParams]):
    name, kind = "lazy", CompactParams

    def solve(self, *given: object) -> Status:
        return Status.TIME_LIMIT


def test_a_new_method_is_one_class(monkeypatch):
    monkeypatch.setattr(solving, "METHODS", ("auto", "lazy"))
    monkeypatch.setattr(solving, "METHOD_BY_NAME", {"lazy": Lazy})
    result = solve(TINY, "lazy", time_limit=1.0)
    assert isinstance(result, OfflineResult)
    assert (result.method, result.objective) == ("lazy", ONLINE.total_utility)
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)


# -- phases and the rules of "auto", as the page says them -----------------------------------------


def table() -> dict[str, list[str]]:
    """Methods by phase, as the page has them."""
    (section,) = re.findall(r"^### Phases of a solve\n(.*?)^##? ", CLI, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| .+ \|$", section, re.MULTILINE)
    assert len(rows) == len(dict(rows))
    return {phase: methods.split(", ") for phase, methods in rows}


def test_every_phase_has_an_entry_and_every_entry_phases_and_methods_that_exist():
    assert list(table()) == [str(phase) for phase in Phase]
    named = {method for methods in table().values() for method in methods}
    assert named == {"all", *METHODS} - {"auto"}


@pytest.mark.parametrize("method", METHOD_BY_NAME)
def test_a_method_enters_only_phases_that_the_page_names_and_says_which_found_and_proved(method):
    sizes = {"jobs": 4, "worker_servers": 2, "ps_servers": 2, "horizon": 6}
    instance = oasis.generate("testbed", **sizes, seed=3)
    seen: list[SolveProgress] = []
    result = solve(
        TINY if method == "bruteforce" else instance,
        method,
        work_limit=0.2,
        on_progress=seen.append,
    )
    assert seen
    for phase in {news.phase for news in seen} | {result.bound_by, result.objective_by}:
        assert {"all", method} & set(table()[phase]), phase
    last = result.history[-1]
    assert last.objective == pytest.approx(result.objective, rel=1e-6)
    assert last.upper_bound == pytest.approx(result.upper_bound, rel=1e-6)


def test_rule_of_auto_is_the_one_in_the_code():
    """The table has the numbers of the code, and examples on either side of each."""
    found = re.findall(r"^\| (?:size|counts).*? ([\d,]{3,})", CLI, re.MULTILINE)
    auto = AutoParams()
    numbers = [auto.compact_size, LONG_COUNTS, auto.counts_size]
    assert [int(number.replace(",", "")) for number in found] == numbers
    (seconds,) = re.findall(r"above (\d+) s, or none", CLI)
    assert float(seconds) == SHORT


@pytest.mark.parametrize("row", ROWS["auto"], ids=str)
def test_auto_chooses_by_size_and_time(row):
    tiny = oasis.generate("testbed", jobs=1, worker_servers=1, ps_servers=1, seed=1)
    several = tuple(replace(tiny.jobs[0], id=f"j{k}", arrival=0) for k in range(row["jobs"]))
    instance = replace(tiny, jobs=several, horizon=row["horizon"])
    chosen = chosen_by_size(AutoParams(), instance, Stop(**row["criteria"]))
    assert chosen.name == row["method"]


# -- the interval so far ---------------------------------------------------------------------------

EXAMPLE = oasis.generate("testbed", jobs=4, seed=3)
EXAMPLE_ONLINE = oasis.simulate(EXAMPLE, oasis.OASiS.from_instance(EXAMPLE))


class Clock(Budget):
    """A budget whose clock the test sets."""

    now = 0.0

    @property
    def elapsed(self) -> float:
        return Clock.now

    seconds = elapsed


def test_what_is_found_and_proved_is_credited_to_the_phase_of_that_moment():
    seen: list[SolveProgress] = []
    state = SolveState(EXAMPLE, Budget(), seen.append)
    state.enter("first")
    state.record_bound(EXAMPLE_ONLINE.total_utility)
    assert state.record_solution({}) == 0.0
    state.enter("second")
    worth = state.record_solution(EXAMPLE_ONLINE.schedules)
    assert worth == pytest.approx(EXAMPLE_ONLINE.total_utility)
    state.record_solution({}, worth=worth)  # no better: not taken
    state.record_bound(1e7)
    result = state.result(Status.TIME_LIMIT, "m", {})
    assert (result.objective_by, result.bound_by) == ("second", "first")
    assert result.schedules == EXAMPLE_ONLINE.schedules
    assert result.objective == pytest.approx(EXAMPLE_ONLINE.total_utility)
    assert [p.phase for p in seen] == ["first"] * 3 + ["second"] * 2
    assert [m.objective for m in result.history] == [None, 0.0, worth]


def test_what_a_solver_says_is_shown_but_is_no_solution_and_is_forgotten_once_refused():
    state = SolveState(EXAMPLE, Clock())
    for Clock.now in (1.0, 2.0, 3.0):
        state.record_progress(SolveProgress(0.0, 5.0 + Clock.now, 1e6 - Clock.now, math.inf))
    assert (state.incumbent, state.bound, state.history[-1].objective) == (None, 1e6 - 3.0, 8.0)
    assert state.result(Status.TIME_LIMIT, "m", {}).objective == 0.0
    state.withdraw()
    assert {m.objective for m in state.history} == {None}
    state.record_solution({}, worth=1.0)
    Clock.now = 4.0
    state.record_progress(SolveProgress(0.0, 9.0, 20.0, math.inf))
    state.withdraw()
    Clock.now = 5.0
    state.record_bound(19.0)
    objectives = [m.objective for m in state.history]
    known = objectives.index(1.0)
    assert set(objectives[:known]) == {None}
    assert set(objectives[known:]) == {1.0}
    assert (state.history[-1].upper_bound, state.incumbent) == (19.0, 1.0)
    Clock.now = 0.0


@pytest.mark.parametrize("bound_first", [True, False])
def test_a_bound_just_below_a_schedule_is_its_value_and_one_further_below_is_refused(bound_first):
    def told(bound: float) -> OfflineResult:
        state = SolveState(EXAMPLE, Budget())
        state.enter("LP")
        if bound_first:
            state.record_bound(bound)
        state.record_solution(EXAMPLE_ONLINE.schedules)
        state.record_bound(bound)
        return state.result(Status.TIME_LIMIT, "m", {})

    result = told(EXAMPLE_ONLINE.total_utility * (1 - 0.9 * TRUST))
    assert result.status is Status.OPTIMAL
    assert result.upper_bound == result.objective == EXAMPLE_ONLINE.total_utility
    with pytest.raises(oasis.SolverError, match=r"LP claims the bound .*; a schedule is worth"):
        told(EXAMPLE_ONLINE.total_utility * (1 - 1.1 * TRUST))


def test_history_is_as_fine_as_a_hundredth_of_the_time_and_keeps_the_last():
    state = SolveState(EXAMPLE, Clock())
    for k in range(10_000):
        Clock.now = 1e-3 * k
        state.record_bound(1e6 - k)
    seconds = [milestone.seconds for milestone in state.history]
    assert len(seconds) < 1000
    assert seconds == sorted(seconds)
    assert state.history[-1].upper_bound == 1e6 - 9999
    for moment in (0.5, 2.0, 7.77):
        known = max(m.seconds for m in state.history if m.seconds <= moment)
        assert known >= moment * 0.98


def test_a_result_is_plain_data_with_its_gap_and_that_at_each_moment():
    history = Milestone(1.0, None, math.inf), Milestone(2.0, 4.0, 8.0)
    result = OfflineResult(Status.TIME_LIMIT, 1.0, 2.0, {}, "milp", 0.0, history=history)
    assert [result.gap_at(s) for s in (0.5, 1.5, 2.0, 99.0)] == [math.inf, math.inf, 1.0, 1.0]
    document = result.to_dict()
    assert (document["gap"], document["version"]) == (1.0, results.__version__)
    assert document["history"][0] == {"seconds": 1.0, "objective": None, "upper_bound": None}
    assert json.loads(json.dumps(document)) == document


def test_ctrl_c_leaves_the_trivial_bound_and_nothing_admitted_if_nothing_else_is_known():
    def work() -> Status:
        raise KeyboardInterrupt

    result = conclude(SolveState(EXAMPLE, Budget()), work, "milp", {"seed": 1})
    assert (result.status, result.objective) == (Status.INTERRUPTED, 0.0)
    assert result.upper_bound == trivial_bound(EXAMPLE)
    assert (result.bound_by, result.objective_by) == ("every job at its best", "")
    assert result.parameters == {"seed": 1}


def test_ctrl_c_during_the_online_run_leaves_what_it_has_decided(monkeypatch):
    submit, calls = oasis.OASiS.submit, []

    def interrupted(self: oasis.OASiS, job: oasis.Job) -> oasis.Decision:
        calls.append(job.id)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return submit(self, job)

    monkeypatch.setattr(oasis.OASiS, "submit", interrupted)
    result = solve(EXAMPLE)
    assert result.status is Status.INTERRUPTED
    decided = {d.job_id: d.schedule for d in EXAMPLE_ONLINE.decisions[:2] if d.schedule is not None}
    assert decided
    assert result.schedules == decided
    assert result.objective <= EXAMPLE_ONLINE.total_utility <= result.upper_bound
    assert oasis.verify(EXAMPLE, result) == result.objective


def test_a_bound_by_the_configuration_lp_takes_seconds_or_none():
    assert configuration_bound(EXAMPLE, time_limit=0.0).bound == math.inf
    bounds = [configuration_bound(EXAMPLE, time_limit=limit) for limit in (None, math.inf)]
    bounds.append(configuration_bound(EXAMPLE, work_limit=math.inf))
    assert {result.status for result in bounds} == {Status.OPTIMAL}
    assert len({result.bound for result in bounds}) == 1
