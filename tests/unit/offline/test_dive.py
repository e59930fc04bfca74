"""Dives whose slots can be followed by hand: what is planned, placed, and left for later slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pulp
import pytest

import oasis
from oasis import Cluster, Instance, Job, Server
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import Sigmoid
from oasis.solvers.budget import Budget
from offline.benders.dive import Dive
from offline.benders.master import CountModel
from offline.benders.params import DiveParams
from offline.benders.separation import Separation
from offline.benders.slot_model import SlotModel, Units
from offline.model.arrays import OfflineArrays
from offline.patterns.params import CutParams
from tests.unit.offline.test_shortfall import CLUSTER, job, work

TWO = Cluster(
    ("gpu",),
    (Server("w0", {"gpu": 3.0}), Server("w1", {"gpu": 3.0})),
    (Server("p", {"gpu": 1.0}),),
    1.0,
)


def dive(*jobs: Job, horizon: int, cluster: Cluster = CLUSTER, **params: float) -> Dive:
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


def test_every_slot_is_placed_and_every_job_completes() -> None:
    found = search(dive(*PAIR, horizon=2))
    assert found is not None
    units, done = found
    first, second = workers(units)
    assert sorted([first, second]) == [[0, 1, 1], [1, 0, 1]]
    assert set(done) == {"a", "b", "c"}


def test_it_ends_when_what_is_left_is_not_worth_more() -> None:
    assert search(dive(*PAIR, horizon=2), least=11.9) is not None
    assert search(dive(*PAIR, horizon=2), least=12.0) is None


def test_what_finds_no_server_is_left_for_the_next_slot() -> None:
    """Three workers of 2 on two servers of 3: by total capacity all fit, one by one only two."""
    found = search(dive(*three(5.0, 4.0, 3.0), horizon=2, cluster=TWO, rounds=0))
    assert found is not None
    units, done = found
    assert [sum(here) for here in workers(units)] == [2, 1]
    assert set(done) == {"a", "b", "c"}


def test_cuts_tell_before_that_something_finds_no_server() -> None:
    """In one slot, the job that is worth least is left out, not any of them."""
    run = dive(*three(3.0, 4.0, 5.0), horizon=1, cluster=TWO)
    found = search(run)
    assert found is not None
    assert run.cuts > 0
    assert found[1] == {"b": 0, "c": 0}
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


def planned(run: Dive, slot: int, closed: range, gap: float) -> tuple[list[int], list[int]]:
    """Completions after the plan of a slot if closed slots have no worker, and the attempts made.

    Of each attempt, the number of slots whose cuts count.
    """
    model, slots = run.model, range(run.model.arrays.horizon)
    near = {c.workers[t, 0].name: (0.0, 0.0) for c in model.jobs for t in closed}
    model.require(pulp.LpContinuous, pulp.LpContinuous)
    before = run._cut(slots, {}, 0.0, work(), slots)
    assert before is not None
    assert sorted(model.completions(before).values()) == [0, 1]
    cut, attempts = run._cut, list[int]()
    run._cut = lambda *given: (attempts.append(len(given[0])), cut(*given))[1]  # type: ignore
    values = run._planned(slots[slot:], near, before, gap, work())
    assert values is not None
    return sorted(model.completions(values).values()), attempts


def test_completions_stay_where_they_can_and_change_where_they_must() -> None:
    """Without slot 0 both jobs are a slot late, which the second attempt finds."""
    assert planned(dive(*WIDE, horizon=4), 1, range(0), 20.0) == ([0, 1], [3])
    assert planned(dive(*WIDE, horizon=4), 1, range(1), 20.0)[1] == [3, 3]
    assert planned(dive(*WIDE, horizon=4), 1, range(1), 0.0) == ([1, 2], [3, 3])


@pytest.mark.parametrize(("gap", "found"), [(0.0, ([2, 3], [2, 4, 2, 4])), (20.0, ([], [2, 4, 2]))])
def test_far_slots_change_only_where_nothing_else_costs_little(
    gap: float, found: tuple[list[int], list[int]]
) -> None:
    """Both jobs need slots 2 and 3, which are far; to give up both is cheap with the large gap."""
    assert planned(dive(*WIDE, horizon=4, span=2), 0, range(2), gap) == found


def test_parameter_servers_of_the_slots_ahead_are_whole() -> None:
    seen: list[tuple[range, range]] = []
    run = dive(*PAIR, horizon=3, look_ahead=2)
    require = run.model.require_whole
    run.model.require_whole = lambda *slots: (seen.append(slots), require(*slots))[1]  # type: ignore
    search(run)
    assert seen[0] == (range(1), range(2))
    assert seen[2] == (range(2, 3), range(2, 4))


def test_without_time_there_is_no_dive() -> None:
    run = dive(*PAIR, horizon=2)
    assert run.search({}, lambda: 0.0, 0.0, Budget(0.0)) is None


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
