"""Linear programs that grow by columns."""

from __future__ import annotations

import numpy as np
import pytest

from oasis.solvers.lp import ColumnLp, LpColumn


@pytest.mark.parametrize("empty", [0, 2])
def test_a_table_of_columns_is_the_columns_one_by_one(empty):
    table = np.zeros((empty + 3, 4))  # columns that relieve a row at the cost of the last one
    table[empty:, :3] = -np.eye(3)
    table[empty:, 3] = [1.0, 2.0, 0.5]
    objectives = []
    for as_table in (True, False):
        lp = ColumnLp([1.0, 1.0, 1.0, 20.0])
        lp.add_columns([LpColumn(1.0, np.arange(4), np.full(4, 2.0))])
        if as_table:
            lp.add_table(table)
        else:
            used = map(np.flatnonzero, table)
            lp.add_columns(LpColumn(0.0, k, row[k]) for k, row in zip(used, table, strict=True))
        solution = lp.solve()
        assert solution is not None
        assert len(solution.values) == lp.columns == len(table) + 1
        objectives.append(solution.objective)
    assert objectives == pytest.approx([23.5 / 9, 23.5 / 9])


def test_a_table_without_columns_adds_none():
    lp = ColumnLp([1.0])
    lp.add_table(np.zeros((0, 1)))
    assert lp.columns == 0
