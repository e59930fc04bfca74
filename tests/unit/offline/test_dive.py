"""Dives whose slots can be followed by hand: what is planned, placed, and left for later slots."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import Cluster, Instance, Job, Server
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import Sigmoid
from oasis.solvers import Solution
from oasis.solvers.budget import Budget
from offline.benders import plans
from offline.benders.dive import Dive
from offline.benders.master import CountModel
from offline.benders.params import DiveParams, PrimalParams
from offline.benders.slot_model import SlotModel, Units
from offline.benders.subproblem import Separation
from offline.model.arrays import OfflineArrays
from offline.patterns import CutParams
from tests.unit.offline.test_shortfall import CLUSTER, job, work

TWO = Cluster(
    ("gpu",),
    (Server("w0", {"gpu": 3.0}), Server("w1", {"gpu": 3.0})),
    (Server("p", {"gpu": 1.0}),),
    1.0,
)


def dive(*jobs: Job, horizon: int, cluster: Cluster = CLUSTER, **params: float) -> Dive:
    """Dives without a reserve, unless the parameters have one."""
    params = {"reserve": 0.0, **params}
    model = CountModel(OfflineArrays.of(Instance(horizon, cluster, jobs)))
    weights = np.ones(len(model.jobs))
    separation = Separation(model, CutParams())
    return Dive(model, separation, SlotModel(model, CutParams()), weights, DiveParams(**params))


def search(run: Dive, least: float = 0.0) -> tuple[list[Units], Mapping[str, int]] | None:
    """A dive in which every job may complete whenever it can."""
    return run.search({}, lambda: least, 0.0, work())


def workers(units: list[Units]) -> list[list[int]]:
    return [here["worker"].sum(axis=1).tolist() for here in units]


def three(*values: float) -> list[Job]:
    """Jobs of one worker of 2 GPUs, worth so much."""
    return [job(name, 2.0, 1, value, due=3) for name, value in zip("abc", values, strict=True)]


# Two jobs of two GPUs and one of one, on three GPUs: the pair cannot run together.
PAIR = (job("a", 2.0, 1, 5.0, due=3), job("b", 2.0, 1, 4.0, due=3), job("c", 1.0, 2, 3.0, due=3))


def test_whole_plans_of_dives_ask_for_good_solutions_rather_than_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, seen, solve = dive(*PAIR, horizon=2), list[bool](), plans.highs.solve

    def noted(*given: Any, is_search: bool, **named: Any) -> Solution:
        seen.append(is_search)
        return solve(*given, is_search=is_search, **named)

    monkeypatch.setattr(plans, "highs", SimpleNamespace(solve=noted))
    plans.close_plan(run.model, {}, work(), PrimalParams())
    assert seen == [False]
    assert search(run) is not None
    assert len(seen) > 2
    assert all(seen[1:])


def test_every_slot_is_placed_and_every_job_completes() -> None:
    found = search(dive(*PAIR, horizon=2))
    assert found is not None
    units, done = found
    first, second = workers(units)
    assert sorted([first, second]) == [[0, 1, 1], [1, 0, 1]]
    assert set(done) == {0, 1, 2}


def test_it_ends_when_what_is_left_is_not_worth_more() -> None:
    assert search(dive(*PAIR, horizon=2), least=11.9) is not None
    assert search(dive(*PAIR, horizon=2), least=12.0) is None


def test_what_finds_no_server_is_left_for_the_next_slot() -> None:
    """Three workers of 2 on two servers of 3: by total capacity all fit, one by one only two."""
    found = search(dive(*three(5.0, 4.0, 3.0), horizon=2, cluster=TWO, rounds=0))
    assert found is not None
    units, done = found
    assert [sum(here) for here in workers(units)] == [2, 1]
    assert set(done) == {0, 1, 2}


def test_cuts_tell_before_that_something_finds_no_server() -> None:
    """In one slot, the job that is worth least is left out, not any of them."""
    run = dive(*three(3.0, 4.0, 5.0), horizon=1, cluster=TWO)
    found = search(run)
    assert found is not None
    assert run.cuts > 0
    assert found[1] == {1: 0, 2: 0}
    assert workers(found[0]) == [[0, 1, 1]]


def test_it_ends_when_others_have_found_what_is_worth_more() -> None:
    told = iter([0.0, 0.0, 0.0, 12.0])
    assert dive(*PAIR, horizon=2).search({}, lambda: next(told), 0.0, work()) is None
    assert not list(told)


def test_no_job_gets_more_workers_than_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan may have them, because they cost nothing."""
    run = dive(job("a", 1.0, 3, 5.0, due=3, most=3), horizon=3)
    counts = CountModel.counts

    def more(*given: Any) -> FloatArray:
        return counts(*given) + 1.0

    monkeypatch.setattr(CountModel, "counts", more)
    monkeypatch.setattr(Separation, "cut", lambda *_: [])
    found = search(run)
    assert found is not None
    assert sum(here[0] for here in workers(found[0])) == 3


LATE = Sigmoid(10.0, 1.0, 1.5)  # worth less in each slot
# Each takes all GPUs for one slot: the two complete in slots 0 and 1.
WIDE = [Job(f"j{k}", 0, 1, 1, 1, 1.0, 0.0, {"gpu": 3.0}, {}, LATE) for k in range(2)]


def test_parameter_servers_of_the_slots_ahead_are_whole() -> None:
    seen: list[tuple[range, range]] = []
    run = dive(*PAIR, horizon=3, look_ahead=2)
    require = run.model.require_whole
    run.model.require_whole = lambda *slots: (seen.append(slots), require(*slots))[1]  # type: ignore
    search(run)
    assert seen[0] == (range(0), range(2))
    assert seen[1] == (range(1), range(2))
    assert seen[3] == (range(2, 3), range(2, 3))


def noted_reserves(run: Dive, worth: list[float]) -> list[tuple[float, int]]:
    """The reserve and the slots ahead of each first plan; `worth` are values of plans, in turn."""
    seen: list[tuple[float, int]] = []
    first, told = run.repair.first, iter(worth)

    def noted(*given: Any) -> Any:
        seen.append((run.repair.reserve, run.repair.ahead))
        return first(*given)

    run.repair.first = noted  # type: ignore[method-assign]
    run.model.value_of = lambda _: next(told)  # type: ignore[method-assign]
    return seen


HALVED = {"reserve": 0.4, "reserves": 3, "look_ahead": 2}


def test_each_dive_has_half_the_reserve_until_every_one_had_its_turn() -> None:
    run = dive(*PAIR, horizon=2, rounds=0, **HALVED)
    seen, settled = noted_reserves(run, [10.0] * 100), list[bool]()
    for _ in range(4):
        settled.append(run.is_settled)
        search(run)
    assert seen == [(0.4, 2), (0.2, 4), (0.1, 8)]
    assert settled == [False, False, False, True]
    run.begin()
    search(run)
    assert seen[3:] == [(0.4, 2)]


def test_every_reserve_has_another_turn_once_there_are_new_cuts() -> None:
    run = dive(*PAIR, horizon=2, rounds=0, **HALVED)
    seen, placed, found = noted_reserves(run, [10.0] * 100), run._placed, iter([0, 0, 5])

    def cutting(*given: Any) -> Any:
        run.repair.cuts += next(found, 0)
        return placed(*given)

    run._placed = cutting  # type: ignore[method-assign]
    while not run.is_settled:
        search(run)
    assert seen == [(0.4, 2), (0.2, 4), (0.1, 8), (0.4, 2), (0.2, 4)]


def test_a_reserve_that_leaves_no_better_plan_is_passed_over() -> None:
    run = dive(*PAIR, horizon=2, **HALVED)
    seen = noted_reserves(run, [5.0, 6.0, 5.0, 5.0, 5.0])
    assert search(run, least=5.5) is None  # the plan with 0.2 is worth more, the next one is not
    assert seen == [(0.4, 2), (0.2, 4)]


def test_none_of_all_reserves_leaves_a_better_plan() -> None:
    run = dive(*PAIR, horizon=2, **HALVED)
    seen = noted_reserves(run, [5.0] * 4)
    assert search(run, least=5.0) is None
    assert seen == [(0.4, 2), (0.2, 4), (0.1, 8)]
    assert run.is_settled


def test_jobs_that_complete_soon_are_placed_first() -> None:
    """Of two workers only one fits in slot 0, that of the job which is worth nothing later on."""
    late = job("late", 2.0, 1, 5.0, due=3)
    soon = job("soon", 2.0, 1, 4.0, due=1)
    for jobs in ([late, soon], [soon, late]):
        run = dive(*jobs, horizon=2, rounds=0, placements=1)
        due = {"late": 1, "soon": 0}
        values = {c.done[due[c.job.id]].name: 1.0 for c in run.model.jobs}
        values |= {c.workers[0, 0].name: 1.0 for c in run.model.jobs}
        found = run._placed(0, {}, values, np.array([1, 1]), lambda: 0.0, work())
        assert found is not None
        placed = total(found[1], "worker").tolist()
        assert {c.job.id: n for c, n in zip(run.model.jobs, placed, strict=True)} == {
            "soon": 1,
            "late": 0,
        }


@pytest.mark.parametrize(("placements", "wanted"), [(1, [3, 2]), (2, [3, 2, 2])])
def test_a_slot_with_a_misfit_is_planned_again_with_less_room(
    placements: int, wanted: list[int]
) -> None:
    """By total capacity three of four workers fit in slot 0; with 0.7 of it two, and two do fit."""
    pairs = [Job(name, 0, 1, 1, 1, 1.0, 0.0, {"gpu": 2.0}, {}, LATE) for name in "abcd"]
    given = {"rounds": 0, "attempts": 1, "placements": placements, "squeeze": 0.3}
    run, seen = dive(*pairs, horizon=2, cluster=TWO, **given), list[int]()
    all_of = run.slots.all_of
    run.slots.all_of = lambda n, part: (seen.append(int(n.sum())), all_of(n, part))[1]  # type: ignore
    found = search(run)
    assert found is not None
    assert seen == wanted
    assert [sum(here) for here in workers(found[0])] == [2, 2]


def test_limits_around_a_plan_in_fractions() -> None:
    """Three jobs share all six GPUs of two slots in fractions: each may complete in one slot."""
    run = dive(*three(5.0, 4.0, 3.0), horizon=2, window=0)
    limits = run.wide({}, 0.0, work())
    assert limits is not None
    most = [sum(limits[v.name][1] for v in c.done.values()) for c in run.model.jobs]
    assert most == [1.0, 1.0, 1.0]
    assert run.wide({}, 0.0, Budget(0.0)) is None


def test_without_time_there_is_no_dive() -> None:
    run = dive(*PAIR, horizon=2)
    seen = noted_reserves(run, [])
    assert run.search({}, lambda: 0.0, 0.0, Budget(0.0)) is None
    assert seen == []


def total(units: Units, group: str) -> IntArray:
    counts: IntArray = units[group].sum(axis=1)
    return counts


def test_workers_come_with_their_parameter_servers() -> None:
    instance = oasis.generate("testbed", jobs=4, seed=1)
    run = dive(*instance.jobs, horizon=instance.horizon, cluster=instance.cluster)
    found = search(run)
    assert found is not None
    needed = [run.slots.ps_of(total(here, "worker")) for here in found[0]]
    assert np.sum(needed) > 0
    for here, least in zip(found[0], needed, strict=True):
        assert (least <= total(here, "ps")).all()
