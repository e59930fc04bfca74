"""Numbers of equal servers: the best assignment, and which servers are equal."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import oasis
from oasis.model.groups import TaskGroup
from oasis.online.assignment import largest_assignment
from oasis.online.recourse.staying import kinds_of
from tests.strategies import fewer


@fewer(1)
@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.integers(0, 5), min_size=n * n, max_size=n * n))
)
def test_the_assignment_is_the_best_of_all(entries):
    n = int(len(entries) ** 0.5)
    weight = np.array(entries).reshape(n, n)
    found = largest_assignment(weight)
    assert sorted(found.tolist()) == list(range(n))
    best = max(weight[range(n), list(order)].sum() for order in itertools.permutations(range(n)))
    assert weight[range(n), found].sum() == best
    if weight.trace() == best:
        assert found.tolist() == list(range(n))


@pytest.mark.parametrize("seed", range(40))
def test_a_large_assignment_is_as_good_as_scipys(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(7, 64))
    weight = rng.integers(0, 9, (n, n)) * (rng.random((n, n)) < 0.3)
    found = largest_assignment(weight)
    assert sorted(found.tolist()) == list(range(n))
    rows, columns = linear_sum_assignment(weight, maximize=True)
    assert weight[np.arange(n), found].sum() == weight[rows, columns].sum()


def test_servers_with_other_labels_are_not_equal():
    amounts = {"gpu": 4.0}
    workers = (
        oasis.Server("a", amounts, labels={"zone": "x"}),
        oasis.Server("b", amounts, labels={"zone": "y"}),
        oasis.Server("c", {"gpu": 2.0}),
        oasis.Server("d", amounts, labels={"zone": "x"}, count=2),
    )
    cluster = oasis.Cluster(("gpu",), workers, (oasis.Server("p", amounts),), 60.0)
    assert kinds_of(cluster)[TaskGroup.WORKER].tolist() == [0, 1, 2, 0, 0]
