"""What a master learns of a plan: never too much, and never nothing for ever."""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oasis
from oasis import Cluster, Constant, Instance, Job, Schedule, Server
from oasis.model.schedule import placements
from oasis.solvers import PROOF, Solution, Status
from oasis.solvers.budget import Budget
from oasis.solvers.running import RunningSolve
from oasis.testing import small_instances
from offline import solve
from offline.benders import decomposition as masters
from offline.benders import primal
from offline.benders import solve as benders
from offline.benders.master import CountModel
from offline.benders.primal import PlanLimits, close_plan, whole_plan
from offline.benders.subproblem import Separation
from offline.model.arrays import GROUPS, OfflineArrays
from offline.problem import OfflineProblem
from offline.state import SolveState, warm_start_of
from tests.oracle.odds import CROSSED, at_odds, quarrels, unit_job
from tests.strategies import fewer
from tests.unit.offline.test_benders import (
    SMALL,
    Patience,
    assert_satisfies,
    assert_within,
    feasible,
    hurried,
    misfits,
    optimum,
    placeable,
    unaided,
)


def tight(*sizes):
    """One slot, servers of 7 and 5: sizes 4, 3, 3, 2 fit, but not the largest first."""
    servers = tuple(Server(f"w{h}", {"cpu": c}) for h, c in enumerate((7.0, 5.0)))
    jobs = tuple(
        Job(f"j{k}", 0, 1, 1, 1, 1.0, 0.0, {"cpu": size}, {}, Constant(1.0))
        for k, size in enumerate(sizes)
    )
    return Instance(1, Cluster(("cpu",), servers, (Server("p", {}),), 1.0), jobs)


@given(st.one_of(quarrels(), small_instances()), st.data())
@fewer(3)
def test_what_a_plan_teaches_spares_every_feasible_schedule(instance, data):
    solutions = feasible(instance)
    model = CountModel(OfflineArrays.of(instance))
    assume(model.jobs)
    separation, slots = Separation(model), range(instance.horizon)
    places = [(group, slot) for group in ("worker", "ps") for slot in slots]
    choices = [(*place, counts) for place in places for counts in misfits(model, *place)]
    assume(choices)
    for _ in range(3):
        group, slot, counts = data.draw(st.sampled_from(choices))
        if not separation.cut_off(group, np.array(counts), slots, Budget()):
            separation.forbid(group, np.array(counts), [slot], Budget())
    for schedules in solutions:
        assert_satisfies(model, list(model.problem.constraints()), model.values_of(schedules))


def test_a_cut_is_as_tight_as_the_placements_and_no_tighter():
    """Of three jobs two fit: the cut of all three allows exactly these."""
    friends = set(combinations(range(3), 2))
    instance = at_odds((friends - {(0, 1)},), *(unit_job(f"j{k}", 1.0) for k in range(3)))
    model = CountModel(OfflineArrays.of(instance))
    assert Separation(model).cut_off("worker", np.array([1, 1, 1]), [0], Budget())
    for counts in [(1, 0, 1), (0, 1, 1), (1, 0, 0)]:
        assert placeable(model, "worker", counts)
        assert all(not cut.is_violated(np.array(counts, float)) for cut in model.cuts["worker"])


@pytest.mark.parametrize("limit", [None, 0.0])
def test_counts_that_fit_are_never_forbidden(limit):
    """Neither when the placement is found, nor when there is no time to find it."""
    model = CountModel(OfflineArrays.of(tight(4.0, 3.0, 3.0, 2.0)))
    rows = len(model.problem.constraints())
    Separation(model).forbid("worker", np.ones(4, dtype=np.int64), [0], Budget(limit))
    assert len(model.problem.constraints()) == rows


def test_what_is_forbidden_fits_with_one_unit_less_of_any_job():
    separation = Separation(CountModel(OfflineArrays.of(tight(4.0, 3.0, 1.0, 0.5))))
    for counts in ([9, 9, 9, 9], [0, 0, 0, 40], [0, 1, 12, 30]):
        least = separation._shrunk("worker", np.array(counts), Budget())
        assert separation._is_misfit("worker", least, Budget())
        for job in np.flatnonzero(least):
            fewer = least - np.eye(4, dtype=np.int64)[job]
            assert not separation._is_misfit("worker", fewer, Budget())


def proven(instance, params):
    """The result of Benders from nothing, which ends with a proof."""
    result = solve(
        instance,
        "benders",
        time_limit=None,
        params=params,
        warm_start={},
        on_progress=Patience(1000),
    )
    assert result.status is Status.OPTIMAL
    return result


def test_a_placement_that_took_too_long_once_is_looked_for_again(
    monkeypatch,
):
    """Whole counts, nothing to cut, nothing to forbid: only the placement itself ends it."""
    unaided(monkeypatch)
    monkeypatch.setattr(primal, "PLACEMENT_LIMIT", 0.0)
    params = hurried(whole_size=0)
    instance = tight(4.0, 3.0, 3.0, 2.0)
    result = proven(instance, params)
    assert oasis.verify(instance, result) == 4.0


@pytest.fixture
def _unaided(monkeypatch):
    """No search for better schedules."""
    unaided(monkeypatch)


def decomposition(instance, limit=None):
    """A decomposition that is ready for its first master, and knows no schedule."""
    state = SolveState(instance, Budget(limit))
    start = warm_start_of({}, state, needs_prices=True)
    state.record_solution({})
    rng = np.random.default_rng(0)
    problem = OfflineProblem(start, state)
    return benders.Benders(hurried()).prepare(problem, state.budget, rng)


def with_cuts_that_change_nothing(patch):
    """A solve that believes to have found a cut after each master."""
    run = decomposition(tight(4.0, 3.0, 3.0, 2.0))
    patch.setattr(run, "search_near_plan", lambda: 0)
    patch.setattr(run, "refine", lambda *_: 1)
    return run


@pytest.mark.usefixtures("_unaided")
def test_a_plan_that_taught_cuts_is_followed_by_a_master_of_the_same_level(
    monkeypatch,
):
    monkeypatch.setattr(masters, "SLOW", 0.0)
    run = with_cuts_that_change_nothing(monkeypatch)
    for _ in range(3):
        run.cycle()
        assert run._level == 0
    monkeypatch.setattr(run, "refine", lambda *_: 0)
    run.cycle()
    run.cycle()
    assert run._level > 0


@pytest.mark.usefixtures("_unaided")
def test_cuts_that_do_not_lower_the_bound_do_not_keep_the_level(
    monkeypatch,
):
    run = with_cuts_that_change_nothing(monkeypatch)
    for _ in range(9):
        before = run.state.bound
        run.cycle()
        if run._level > 0:
            break
    assert run._level > 0
    assert before - run.state.bound <= masters.SLOW * before


@pytest.mark.usefixtures("_unaided")
def test_a_job_that_misses_one_slot_of_its_plan_is_not_kept():
    """j0 finds its place in slot 1, not in slot 0, where it is worth least."""
    jobs = [unit_job("j0", 0.1, work=2), *(unit_job(f"j{k}", 1.0) for k in (1, 2, 3))]
    run = decomposition(at_odds(CROSSED, *jobs, unit_job("last", 1.0, arrival=1)))
    slots = {"j0": [0, 1], "j1": [0], "j2": [0], "j3": [0], "last": [1]}
    plan = {
        name: Schedule(name, placements([(t, 0, 1) for t in here]), placements([]))
        for name, here in slots.items()
    }
    misfits = run.primal.place(plan, Budget(), math.inf)
    assert [misfit.slots for misfit in misfits] == [[0]]
    assert "j0" not in run.best.solution.by_id
    assert run.best.value == 4.0


@given(small_instances())
@fewer(2)
def test_counts_become_whole_slot_after_slot_and_never_more(instance):
    model, best = CountModel(OfflineArrays.of(instance)), optimum(instance)
    assume(model.jobs)
    near = model.near(model.completions(model.values_of(best)), 1)
    stages: list[Solution] = []

    def noted(*given):
        stages.append(close_plan(*given))
        return stages[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(primal, "close_plan", noted)
        given = model, near, Budget(), PlanLimits(slots_at_once=1), [], 0.0
        found = whole_plan(*given, range(instance.horizon))
    assert len(stages) == instance.horizon
    whole = {name: round(v) for name, v in found.values.items()}
    assert_satisfies(model, model.problem.constraints(), whole)
    assert_within(near, whole)
    for group, slot in product(GROUPS, range(instance.horizon)):
        counts = np.array([model.counts(stage.values, group, slot) for stage in stages[slot:]])
        assert counts == pytest.approx(np.rint(counts), abs=1e-6)
        assert (counts <= counts[0] + 1e-6).all()


@pytest.mark.usefixtures("_unaided")
def test_ctrl_c_after_the_time_limit_is_still_ctrl_c(monkeypatch):
    run = decomposition(tight(4.0, 3.0, 3.0, 2.0), 60.0)

    def late(master, on_progress):
        run.budget.stopping.end(Status.TIME_LIMIT)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunningSolve, "_report", late)
    master = run._start(0.0, run.budget)
    with pytest.raises(KeyboardInterrupt):
        run._finish(master)


@pytest.mark.usefixtures("_unaided")
@pytest.mark.parametrize("small", [SMALL, 0])
def test_what_a_solver_leaves_within_its_tolerance_does_not_keep_a_solve_going(monkeypatch, small):
    """A master's bound above its plan by less than what counts as a proof, time after time."""
    asked = []
    finish = RunningSolve.finish

    def above(master, on_progress=None):
        asked.append(master)
        solution = finish(master)
        return replace(solution, bound=solution.bound * (1 + PROOF / 100))

    monkeypatch.setattr(RunningSolve, "finish", above)
    instance, params = tight(4.0, 3.0, 3.0, 3.0), hurried(small)
    proven(instance, params)
    assert asked


@pytest.mark.usefixtures("_unaided")
def test_a_bound_close_to_a_plan_is_none_of_the_instance():
    """Close to the plan of no job nothing is worth anything; the instance is worth two."""
    run = decomposition(tight(4.0, 4.0, 4.0))
    run._near = run.model.near({}, 0)
    everything = {v.name: 1.0 for v in run.model.problem.variables()}
    assert run.refine(Solution(Status.OPTIMAL, 3.0, 3.0, 0.0, everything), Budget())
    run.search_near_plan()
    assert run.state.bound >= 2.0
