"""Servers filled with patterns as a part of a model, on servers that can be followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from offline.benders.subproblem import Filling
from offline.patterns import PatternPool, classes

# Two servers of 4 and one of 2, for items of 2 and of 1.
CAPACITY = np.array([[4.0], [2.0], [4.0]])
DEMAND = np.array([[2.0], [1.0]])
PATTERNS = {4.0: [[2, 0], [1, 2]], 2.0: [[1, 0], [0, 2]]}


def filling() -> Filling:
    pool = PatternPool(*classes(CAPACITY, None), DEMAND, np.array([9, 9]))
    tables = [np.array(PATTERNS[float(row[0])]) for row in pool.capacity]
    return Filling.of(CAPACITY, pool, tables)


def chosen(*patterns: tuple[float, int]) -> list[int]:
    """Number of servers with each of these patterns: one class of this capacity and number each."""
    made = filling()
    sizes = [CAPACITY[servers[0], 0] for servers in made.hosts]
    number = [(sizes[k], PATTERNS[sizes[k]].index(row.tolist())) for k, row in made_rows(made)]
    return [patterns.count(key) for key in number]


def made_rows(made: Filling) -> list[tuple[int, np.ndarray]]:
    return list(zip(made.kind.tolist(), made.patterns, strict=True))


@pytest.mark.parametrize(
    ("patterns", "counts", "units"),
    [
        ([(4.0, 0), (4.0, 0), (2.0, 0)], [5, 0], [[2, 1, 2], [0, 0, 0]]),
        ([(4.0, 1), (4.0, 1), (2.0, 1)], [2, 6], [[1, 0, 1], [2, 2, 2]]),
        ([(4.0, 0), (2.0, 1)], [9, 9], [[2, 0, 0], [0, 2, 0]]),
        ([], [9, 9], [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_each_server_has_one_pattern_of_its_class(
    patterns: list[tuple[float, int]], counts: list[int], units: list[list[int]]
) -> None:
    found = filling().units(np.array(chosen(*patterns)), np.array(counts))
    assert found.tolist() == units


def test_servers_and_patterns_are_counted_by_class() -> None:
    made = filling()
    assert made.number.tolist() == [len(servers) for servers in made.hosts] == [2, 1]
    assert made.of_class.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]


def test_what_a_pattern_holds_beyond_the_counts_is_left_out() -> None:
    found = filling().units(np.array(chosen((4.0, 0), (4.0, 1))), np.array([1, 1]))
    assert found.sum(axis=1).tolist() == [1, 1]


def test_units_stand_for_the_first_pattern_that_holds_them() -> None:
    """The server with one item each needs the mixed pattern; the empty one is below any."""
    found = filling().chosen(np.array([[1, 0, 2], [1, 0, 0]]))
    assert found.tolist() == chosen((4.0, 1), (4.0, 0), (2.0, 0))


def test_units_that_no_pattern_holds_stand_for_nothing() -> None:
    found = filling().chosen(np.array([[0, 0, 0], [4, 0, 0]]))
    assert found.sum() == 2  # of the two empty servers
