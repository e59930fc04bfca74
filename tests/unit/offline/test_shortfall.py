"""Jobs make up elsewhere for the work that they lack, in slots that can be followed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oasis import Cluster, Instance, Job
from oasis.model.utility import Sigmoid
from oasis.solvers.budget import Budget, WorkLimit
from offline.benders import slot_model
from offline.benders.master import CountModel
from offline.benders.slot_model import Fill, Shortfall, SlotModel
from offline.model.arrays import OfflineArrays
from tests import builders

CLUSTER = builders.cluster(gpus=3.0)


def work() -> Budget:
    """A limit in work, which no machine is too slow for."""
    return WorkLimit(60.0).start()


def job(name: str, gpus: float, work: int, value: float, due: int, most: int = 1) -> Job:
    """`work` worker-slots, at most `most` at once, worth something until slot `due`."""
    return builders.job(name, 0, work // most, value, float(due), most, gpus=gpus)


def search(*jobs: Job, horizon: int = 2, cluster: Cluster = CLUSTER) -> Shortfall:
    model = CountModel(OfflineArrays.of(Instance(horizon, cluster, jobs)))
    return Shortfall(model, SlotModel(model), np.random.default_rng(0))


def fill(run: Shortfall, due: list[int], *workers: list[int]) -> Fill:
    """Workers of each job by slot, on the one server."""
    nothing = np.zeros((len(due), 1), dtype=np.int64)
    return Fill.of(
        ({"worker": np.array(row)[:, None], "ps": nothing} for row in workers), np.array(due)
    )


# Two jobs of two GPUs and one of one, on three GPUs: the pair cannot run together.
PAIR = (job("a", 2.0, 1, 5.0, due=3), job("b", 2.0, 1, 5.0, due=3), job("c", 1.0, 2, 4.0, due=3))


def without_a_place() -> tuple[Shortfall, Fill]:
    """The pair and the third job in two slots: b is due, and runs nowhere."""
    run = search(*PAIR)
    return run, fill(run, [1, 1, 1], [1, 0, 1], [0, 0, 1])


@pytest.mark.parametrize("rounds", [1, slot_model.ROUNDS])
def test_work_that_found_no_place_moves_to_another_slot(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """What the last round finds counts."""
    monkeypatch.setattr(slot_model, "ROUNDS", rounds)
    run, start = without_a_place()
    assert start.shortfall(run.work).tolist() == [0, 1, 0]
    found = run.search(start, 0.0, work())
    assert not found.shortfall(run.work).any()
    assert found.workers.tolist() == [[1, 0, 1], [0, 1, 1]]
    assert start.workers.tolist() == [[1, 0, 1], [0, 0, 1]]  # the start is not changed


def test_others_give_way_where_they_fit_elsewhere() -> None:
    """The wide job fits in slot 0 alone, which two thin ones hold; these have slot 1 as well."""
    wide = job("wide", 3.0, 1, 9.0, due=0)
    thin = [job(f"thin{k}", 1.0, 1, 1.0, due=1) for k in range(2)]
    run = search(wide, *thin)
    start = fill(run, [0, 1, 1], [0, 1, 1], [0, 0, 0])
    found = run.search(start, 0.0, work())
    assert found.workers.tolist() == [[1, 0, 0], [0, 1, 1]]


def test_a_job_that_cannot_make_it_completes_later_where_that_costs_little() -> None:
    slow = builders.job("slow", gpus=3.0, utility=Sigmoid(10.0, 0.1, 5.0))
    run = search(slow, job("first", 3.0, 1, 50.0, due=0), horizon=3)
    found = run.search(fill(run, [0, 0], [0, 1], [0, 0], [0, 0]), 0.0, work())
    assert found.due.tolist() == [1, 0]
    assert found.workers.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_a_job_that_cannot_make_it_at_all_leaves_and_gives_up_its_places() -> None:
    run = search(job("a", 1.0, 2, 5.0, due=1), job("b", 1.0, 1, 50.0, due=0))
    here = fill(run, [1, 0], [1, 1], [0, 0])
    before = here.units[0]["worker"].copy()
    run._relent(here, here.shortfall(run.work), 50.0)
    assert here.due.tolist() == [1, 0]  # 5 is more than a share of what the plan gains
    run._relent(here, here.shortfall(run.work), 0.0)
    assert here.due.tolist() == [-1, 0]
    assert here.workers.tolist() == [[0, 1], [0, 0]]
    assert here.units[0]["worker"].tolist() == [[0], [1]]
    assert before.tolist() == [[1], [1]]


def test_nothing_is_tried_for_a_plan_that_can_gain_nothing_or_without_time() -> None:
    run, start = without_a_place()
    assert run.search(start, 14.0, work()) is start
    assert run.search(start, 0.0, WorkLimit(0.0).start()) is start


def test_the_fill_with_the_worthiest_finished_jobs_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One slot for two: b replaces a as its weight grows, and is worth less."""
    monkeypatch.setattr(slot_model, "PATIENCE", 99)
    run = search(job("a", 3.0, 1, 5.0, due=0), job("b", 3.0, 1, 4.0, due=0), horizon=1)
    seen: list[list[int]] = []
    one_round = run._round

    def noted(here: Fill, *given: Any) -> None:
        one_round(here, *given)
        seen.append(here.workers[0].tolist())

    monkeypatch.setattr(run, "_round", noted)
    found = run.search(fill(run, [0, 0], [1, 0]), 0.0, work())
    assert [0, 1] in seen
    assert found.workers.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("growth", "rounds", "is_whole"), [(1.2, 1, False), (1.2, 4, True), (1.0, 4, False)]
)
def test_a_job_that_lacks_work_weighs_more_until_others_give_way(
    monkeypatch: pytest.MonkeyPatch, growth: float, rounds: int, is_whole: bool
) -> None:
    """One job needs all GPUs of slot 0. Two others are there, by their weights 4/3 of it."""
    for name, value in {"GROWTH": growth, "ROUNDS": rounds}.items():
        monkeypatch.setattr(slot_model, name, value)
    cluster = builders.cluster(worker={"gpu": 3.0, "memory_gb": 3.0})
    shares = [({"gpu": 3.0}, 0), ({"gpu": 2.0}, 1), ({"gpu": 1.0, "memory_gb": 2.0}, 1)]
    jobs = (
        builders.job(f"j{k}", 0, 1, 5.0, float(due), worker=worker)
        for k, (worker, due) in enumerate(shares)
    )
    run = search(*jobs, cluster=cluster)
    found = run.search(fill(run, [0, 1, 1], [0, 1, 1], [0, 0, 0]), 0.0, work())
    assert found.shortfall(run.work).any() != is_whole


def test_a_job_that_takes_next_to_nothing_makes_up_for_its_work_too() -> None:
    free = builders.job("free", 0, 2, 1.0, 2.0, worker={})
    run = search(*PAIR, free, horizon=3)
    start = fill(run, [1, 1, 1, 2], [1, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1])
    assert run.weights.tolist()[1:] == pytest.approx([2.0 / 3.0, 1.0 / 3.0, run.weights[3]])
    assert run.weights[3] > 0
    found = run.search(start, 0.0, work())
    assert not found.shortfall(run.work).any()


def test_values_are_those_of_jobs_that_are_due_and_of_those_that_lack_nothing() -> None:
    run = search(*PAIR)
    start = fill(run, [1, -1, 1], [0, 0, 1], [0, 0, 1])
    assert run.value(start) == 9.0
    assert run.value(start, finished=True) == 4.0


@pytest.mark.parametrize(("rounds", "hopeless", "last"), [(7, 99, 1), (99, 5, 2)])
def test_jobs_may_give_in_after_every_third_round_and_a_search_that_gets_nowhere_ends(
    monkeypatch: pytest.MonkeyPatch, rounds: int, hopeless: int, last: int
) -> None:
    limits = {"ROUNDS": rounds, "HOPELESS": hopeless, "PATIENCE": 3}
    for name, value in limits.items():
        monkeypatch.setattr(slot_model, name, value)
    run, start = without_a_place()
    calls: list[str] = []
    monkeypatch.setattr(run, "_round", lambda *_: calls.append("round"))
    monkeypatch.setattr(run, "_relent", lambda *_: calls.append("relent"))
    run.search(start, 0.0, work())
    turn = [*["round"] * 3, "relent"]
    assert calls == [*turn * (2 if rounds == 7 else 1), *["round"] * last]


def test_a_slot_is_asked_for_no_more_than_a_job_still_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third job has a worker-slot more than its work: none of it is asked for, nowhere."""
    run = search(*PAIR, horizon=4)
    start = fill(run, [3, 3, 3], [1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 0])
    asked: list[list[int]] = []
    monkeypatch.setattr(run.slots, "best", lambda most, *_: asked.append(most.tolist()))
    run._round(start, run.weights, work())
    assert sorted(asked) == [[0, 1, 0]] * 3 + [[1, 1, 0]]
