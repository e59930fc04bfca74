"""Plans of dives made again: what stays, what may change, and how much may be lost."""

from __future__ import annotations

from typing import Any

import pulp
import pytest

import oasis
from oasis.solvers import Solution, Status
from oasis.solvers.arrays import Limits
from offline.benders.dive import Dive
from offline.benders.repair import Stage
from tests.unit.offline.test_dive import PAIR, TWO, WIDE, dive, three
from tests.unit.offline.test_shortfall import job, work


def again(run: Dive, closed: range, least: float) -> tuple[list[int] | None, list[int]]:
    """Completions of a plan that is made again without workers in closed slots, and its attempts.

    Of each attempt, for how many jobs it leaves the workers of the last slot open.
    """
    model, slots = run.model, range(run.model.arrays.horizon)
    near = {c.workers[t, 0].name: (0.0, 0.0) for c in model.jobs for t in closed}
    model.require(pulp.LpContinuous, pulp.LpContinuous)
    relaxed = run.repair._plan({}, work()).values
    before = run.repair.cut(relaxed, Stage(slots, slots[:0], {}), lambda: 0.0, work())
    assert before is not None
    assert sorted(model.completions(before).values()) == [0, 1]
    solved, attempts = run.repair._plan, list[int]()

    def counted(limits: Limits, *given: Any) -> Solution:
        fixed = model.read().limited(limits).fixed
        attempts.append(sum(c.workers[slots[-1], 0].name not in fixed for c in model.jobs))
        return solved(limits, *given)

    run.repair._plan = counted  # type: ignore[assignment,method-assign]
    values = run.repair.again(before, {0}, Stage(slots, slots[:0], near), lambda: least, work())
    done = None if values is None else sorted(model.completions(values).values())
    return done, attempts


def test_completions_stay_where_they_can_and_change_where_they_must() -> None:
    """Without slot 0 both jobs are a slot late, which costs 4.4 of 14.4."""
    assert again(dive(*WIDE, horizon=4), range(0), 0.0) == ([0, 1], [0])
    assert again(dive(*WIDE, horizon=4, attempts=1), range(1), 0.0) == ([1, 2], [0, 2])


@pytest.mark.parametrize(("attempts", "made"), [(2, 1), (3, 2), (4, 3)])
def test_each_attempt_may_lose_twice_as_much(attempts: int, made: int) -> None:
    """The plan loses 4.4 of 14.4: less than a half, more than a quarter."""
    found, open_jobs = again(dive(*WIDE, horizon=4, attempts=attempts), range(1), 0.0)
    assert found == [1, 2]
    assert open_jobs == [0] + made * [2]


def test_a_plan_that_would_lose_too_much_is_none() -> None:
    """A plan that is worth no more than the least to begin with is not even tried."""
    assert again(dive(*WIDE, horizon=4), range(1), 15.0) == (None, [])
    assert again(dive(*WIDE, horizon=4, attempts=2), range(1), 11.0) == (None, [0, 2, 2])


def test_far_slots_change_only_where_nothing_else_costs_little() -> None:
    """Both jobs need slots 2 and 3, which are far: they stay as they are in two attempts."""
    run = dive(*WIDE, horizon=4, span=2, attempts=2)
    assert again(run, range(2), 0.0) == ([2, 3], [0, 0, 0, 2])


@pytest.mark.parametrize(
    ("status", "ahead"), [(Status.TIME_LIMIT, [4, 2, 1]), (Status.INFEASIBLE, [4])]
)
def test_fewer_slots_are_whole_where_that_is_neither_found_nor_refuted(
    status: Status, ahead: list[int]
) -> None:
    """What a dive has learnt of that holds for its later slots."""
    run, seen = dive(*PAIR, horizon=4, look_ahead=25), list[int]()
    slots, require = range(4), run.model.require_whole
    before = run.repair._plan({}, work()).values
    none = Solution(status, None, 0.0, 0.0, {})

    def required(workers: range, ps: range) -> None:
        seen.append(len(ps))
        require(workers, ps)

    run.model.require_whole = required  # type: ignore[method-assign]
    run.repair._plan = lambda *_: none  # type: ignore[assignment,method-assign]
    assert run.repair.again(before, {0}, Stage(slots, slots[:1], {}), lambda: 0.0, work()) is None
    assert seen == ahead
    run.repair.again(before, {1}, Stage(slots[1:], slots[1:2], {}), lambda: 0.0, work())
    assert seen[len(ahead) :] == ([1] if status is Status.TIME_LIMIT else [3])


@pytest.mark.parametrize(
    ("reserve", "whole", "room", "complete"),
    [
        (0.0, 0, [3.0, 3.0, 3.0], 9),
        (0.5, 0, [1.5, 1.5, 0.75], 3),
        (0.5, 1, [3.0, 1.5, 0.75], 5),
        (1.0, 1, [3.0, 0.0, 0.0], 3),
    ],
)
def test_plans_leave_the_reserve_of_later_slots_free(
    reserve: float, whole: int, room: list[float], complete: int
) -> None:
    """Three slots of three GPUs, nine jobs that each want one for a slot; the last has more of it.

    The slot whose workers are whole numbers has no reserve. A plan made again keeps it, too.
    """
    jobs = [job(name, 1.0, 1, 5.0, due=3) for name in "abcdefghi"]
    run, slots = dive(*jobs, horizon=3, last_slots=1, last_factor=1.5), range(3)
    run.repair.reserve = reserve
    first = run.repair.first(Stage(slots, slots[:whole], {}), lambda: 0.0, 0.0, work())
    for values in (first, run.repair.losing({}, 5.0 * complete, 0.1, work())):
        assert values is not None
        used = [run.model.counts(values, "worker", slot).sum() for slot in slots]
        assert all(here <= most + 1e-6 for here, most in zip(used, room, strict=True))
        assert len(run.model.completions(values)) == complete


@pytest.mark.parametrize(("least", "rounds"), [(5.0, 8), (11.0, 3)])
def test_a_first_plan_that_is_cut_off_is_made_anew(least: float, rounds: int) -> None:
    """Three workers of 2 on two servers of 3: by total capacity all fit, one by one only two.

    As soon as a plan is worth no more than the least, no further cut is looked for.
    """
    run = dive(*three(3.0, 4.0, 5.0), horizon=1, cluster=TWO, rounds=rounds)
    looked, cut = list[int](), run.repair.separation.cut

    def noted(*given: Any) -> Any:
        looked.append(1)
        return cut(*given)

    run.repair.separation.cut = noted  # type: ignore[method-assign]
    values = run.repair.first(Stage(range(1), range(0), {}), lambda: least, 0.0, work())
    if least == 5.0:
        assert values is not None
        assert run.model.completions(values) == {1: 0, 2: 0}
        assert run.cuts == len(looked) - 1 > 0
    else:
        assert values is None
        assert len(looked) == run.cuts == 1


def test_a_later_stage_frees_the_reserve_of_its_slot() -> None:
    """Six jobs that each want a GPU for a slot; slot 1 has three, a plan may use 0.75 of slot 2."""
    jobs = [job(name, 1.0, 1, 5.0, due=3) for name in "abcdef"]
    run, slots = dive(*jobs, horizon=3, last_slots=1, last_factor=1.5), range(3)
    run.repair.reserve = 0.5
    over = {c.workers[0, 0].name: (0.0, 0.0) for c in run.model.jobs}
    values = run.repair.first(Stage(slots[1:], slots[1:2], over), lambda: 0.0, 0.0, work())
    assert values is not None
    used = [run.model.counts(values, "worker", slot).sum() for slot in slots]
    assert used[1] == pytest.approx(3.0)
    assert used[2] <= 0.75 + 1e-6
    assert len(run.model.completions(values)) == 3


def test_parameter_servers_of_other_slots_stay_at_first() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    run = dive(*instance.jobs, horizon=instance.horizon, cluster=instance.cluster)
    slots, seen = range(instance.horizon), list[Limits]()
    run.model.require_whole(slots[:0], slots)
    before = run.repair._plan({}, work()).values
    solved = run.repair._plan

    def noted(limits: Limits, *given: Any) -> Solution:
        seen.append(limits)
        return solved(limits, *given)

    run.repair._plan = noted  # type: ignore[assignment,method-assign]
    values = run.repair.again(before, {1}, Stage(slots, slots[:0], {}), lambda: 0.0, work())
    assert values is not None
    fixed = run.model.read().limited(seen[0]).fixed
    servers = [(slot, z.name) for c in run.model.jobs for (slot, _), z in c.ps.items()]
    others = [name for slot, name in servers if slot != 1]
    assert {slot for slot, name in servers if name not in fixed} == {1}
    assert [fixed[name] for name in others] == [round(before[name]) for name in others]
    assert sum(before[name] for name in others) > 0


def test_parameter_servers_in_fractions_are_not_kept() -> None:
    """Those of the last slot that becomes whole were fractions in the plan before."""
    instance = oasis.generate("testbed", jobs=4, seed=1)
    run = dive(*instance.jobs, horizon=instance.horizon, cluster=instance.cluster)
    slots = range(instance.horizon)
    run.model.require(pulp.LpContinuous, pulp.LpContinuous)
    before = run.repair._plan({}, work()).values
    kept = run.repair.kept_ps(slots, before, 0)
    names = {z.name for c in run.model.jobs for z in c.ps.values()}
    fractions = {name for name in names if abs(before[name] - round(before[name])) > 1e-3}
    assert fractions
    assert kept
    assert not fractions & set(kept)


def test_a_known_plan_is_kept_where_the_reserve_leaves_it() -> None:
    """Three slots of three GPUs, and jobs that each want one for a slot."""
    jobs = [job(name, 1.0, 1, 5.0, due=3) for name in "abcde"]
    run, slots = dive(*jobs, horizon=3, last_slots=1, last_factor=1.0), range(3)
    stage, plan = Stage(slots, slots[:0], {}), {0: 1, 1: 2}
    values = run.repair.as_planned(plan, stage, lambda: 0.0, work())
    assert values is not None
    assert run.model.completions(values) == plan
    assert run.repair.as_planned(plan, stage, lambda: 10.0, work()) is None
    run.repair.reserve = 1.0
    assert run.repair.as_planned(plan, stage, lambda: 0.0, work()) is None


@pytest.mark.parametrize(
    ("plan", "completed"), [({0: 1}, {0}), (dict.fromkeys(range(4), 0), {0, 1, 2, 3})]
)
def test_a_dive_begins_with_its_plan_or_with_the_best_one(
    plan: dict[int, int], completed: set[int]
) -> None:
    """Four jobs cannot all be done in the first slot, so that they may then choose others."""
    jobs = [job(name, 1.0, 1, 5.0, due=3) for name in "abcd"]
    run = dive(*jobs, horizon=3)
    run.begin(plan)
    found = run.search({}, lambda: 0.0, 0.0, work())
    assert found is not None
    assert set(found[1]) == completed
