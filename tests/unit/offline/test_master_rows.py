"""The rows of the master, on two jobs and two slots that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pulp
import pytest

from oasis import Cluster, Constant, Instance, Job, Schedule, Server
from oasis.model.rounding import CAPACITY_TOLERANCE
from oasis.solvers.arrays import RowArrays
from offline.benders.master import CountModel, merged
from offline.model.arrays import OfflineArrays
from offline.patterns import Cut
from tests.linear import as_pulp

BANDWIDTH = "bandwidth_gbps"
CLUSTER = Cluster(
    ("cpu", BANDWIDTH, "gpu"),
    (Server("w0", {"cpu": 3.0, BANDWIDTH: 10.0}), Server("w1", {"cpu": 2.0, BANDWIDTH: 10.0})),
    (Server("p", {"cpu": 4.0, BANDWIDTH: 10.0}),),
    1.0,
)


def job(name: str, arrival: int, cpu: float, value: float, chunks: int = 3) -> Job:
    amounts = {"cpu": cpu, BANDWIDTH: 1.0}
    return Job(name, arrival, 1, chunks, 1, 1.0, 0.0, amounts, amounts, Constant(value))


A, B = job("a", 0, 1.0, 5.0), job("b", 1, 2.0, 7.0, chunks=1)
INSTANCE = Instance(2, CLUSTER, (A, B))
Row = tuple[dict[str, float], float | None, float | None]


@pytest.fixture
def model() -> CountModel:
    return CountModel(OfflineArrays.of(INSTANCE))


def read(model: CountModel, rows: RowArrays) -> list[Row]:
    """Coefficients by variable, lower and upper limit of every row."""
    problem = as_pulp(replace(model.read(), rows=rows))
    return [
        ({v.name: float(c) for v, c in row.items()}, row.getLb(), row.getUb())
        for row in problem.constraints()
    ]


def name(model: CountModel, which: str, group: str, slot: int) -> str:
    """The variable of a job's count in a slot."""
    return model.jobs["ab".index(which)].units(group)[slot, 0].name


def test_size_and_trivial_bound_count_every_job_at_its_best(model: CountModel) -> None:
    assert [(c.index, c.owner, c.form) for c in model.jobs] == [(0, 0, 0), (1, 1, 0)]
    assert model.size == 2 + 1
    assert model.trivial_bound == 12.0


def test_first_cuts_are_the_total_capacities(model: CountModel) -> None:
    """CPU: 1 and 2 of 5; bandwidth: 1 and 1 of 20. There are no GPUs, so nothing of them."""
    found = {group: [cut.weights.tolist() for cut in cuts] for group, cuts in model.cuts.items()}
    assert found["worker"] == [[1 / 5, 2 / 5], [1 / 20, 1 / 20]]
    assert found["ps"] == [[1 / 4, 2 / 4], [1 / 10, 1 / 10]]


def test_cut_has_a_row_in_each_slot_in_which_it_can_bind_and_only_once(model: CountModel) -> None:
    """At most 3 workers of a and 1 of b: 0.4 each exceed 1 in both slots, 0.25 in slot 1 not."""
    cut = Cut(np.array([0.4, 0.4]))
    rows = read(model, model.rows(model.add("worker", cut, [0, 1])))
    limit = pytest.approx(1.0 + CAPACITY_TOLERANCE, rel=1e-15)
    a0, a1, b1 = name(model, "a", "worker", 0), *(name(model, j, "worker", 1) for j in "ab")
    assert rows == [({a0: 0.4}, None, limit), ({a1: 0.4, b1: 0.4}, None, limit)]
    number = len(model.cuts["worker"]) - 1
    assert model.place("worker", number, [0, 1]) == []
    assert model.add("worker", Cut(np.array([1 / 3, 0.0])), [0, 1]) == []
    assert len(model.add("worker", Cut(np.array([0.25, 0.5])), [0, 1])) == 1
    assert len(model.add("ps", cut, [1])) == 1


def test_job_without_weight_is_no_part_of_a_row(model: CountModel) -> None:
    (row,) = read(model, model.rows(model.add("worker", Cut(np.array([0.0, 1.5])), [0, 1])))
    assert list(row[0]) == [name(model, "b", "worker", 1)]


def test_room_is_what_was_asked_for_last_and_new_cuts_count(model: CountModel) -> None:
    model.add("worker", Cut(np.array([0.4, 0.4])), [0])
    for share in (0.75, 0.5, 0.5, 0.75):
        assert [most for _, _, most in read(model, model.within({("worker", 0): share}))] == [share]
    model.add("worker", Cut(np.array([0.5, 0.5])), [0])
    assert len(model.within({("worker", 0): 0.75})) == 2


def test_kept_counts_are_rounded_and_those_of_the_slots_are_open(model: CountModel) -> None:
    a0, a1, b1 = name(model, "a", "worker", 0), *(name(model, j, "worker", 1) for j in "ab")
    limits = model.fixed_outside({a0: 1.9999999, a1: 3.0, b1: 1.0}, range(1, 2))
    assert limits == {a0: (2, 2), name(model, "a", "ps", 0): (0, 0)}


def test_completion_is_where_its_variable_is_above_one_half(model: CountModel) -> None:
    a, b = ({t: v.name for t, v in c.done.items()} for c in model.jobs)
    assert model.completions({a[0]: 0.4, a[1]: 0.6, b[1]: 0.5}) == {0: 1}
    assert model.completions({a[0]: 1.0, b[1]: 0.51}) == {0: 0, 1: 1}
    assert model.completions({}) == {}


def test_kinds_of_counts_are_set_by_group_and_slot(model: CountModel) -> None:
    whole, fraction = pulp.LpInteger, pulp.LpContinuous
    model.require(whole, fraction)
    for c in model.jobs:
        assert {v.cat for v in c.workers.values()} == {whole}
        assert {v.cat for v in c.ps.values()} == {fraction}
    model.require_whole(range(1), range(1, 2))
    a = model.jobs[0]
    assert [a.workers[t, 0].cat for t in (0, 1)] == [whole, fraction]
    assert [a.ps[t, 0].cat for t in (0, 1)] == [fraction, whole]


def test_counts_of_a_schedule_are_put_together_slot_by_slot() -> None:
    schedule = Schedule("a", [[1, 0, 2], [1, 1, 3], [4, 1, 1]], [[1, 2, 1], [4, 0, 1], [4, 1, 1]])
    together = merged(schedule)
    assert together.workers.tolist() == [[1, 0, 5], [4, 0, 1]]
    assert together.ps.tolist() == [[1, 0, 1], [4, 0, 2]]
    assert together.job_id == "a"
