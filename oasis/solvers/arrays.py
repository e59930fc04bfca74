"""Linear and mixed-integer models as arrays: read once from PuLP's dictionaries.

Parts of a model are made without PuLP: with other limits of its variables, with further rows, and
without the variables that have only one value left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pulp

from oasis.model.rounding import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]  # whole or not
Limits = Mapping[str, tuple[float, float]]  # least and most value of a variable, by its name

FORGIVEN = 1e-9  # by which a row without variables may miss its limits, as in HiGHS


def blocks(rows: Sequence[Sequence[Numbers | None]]) -> FloatArray:
    """Assemble a table from blocks, as `numpy.block` does; None is a block of zeros."""
    heights = [next(len(block) for block in row if block is not None) for row in rows]
    columns = zip(*rows, strict=True)
    widths = [next(block.shape[1] for block in c if block is not None) for c in columns]
    table = [
        [
            np.zeros((height, width)) if b is None else b
            for b, width in zip(row, widths, strict=True)
        ]
        for height, row in zip(heights, rows, strict=True)
    ]
    whole: FloatArray = np.block(table)
    return whole


def narrowed(limits: Limits, further: Limits) -> Limits:
    """Return both limits together, by variable; a variable may be in one of the two only."""
    both = dict(limits)
    for name, (least, most) in further.items():
        lower, upper = both.get(name, (-math.inf, math.inf))
        both[name] = max(lower, least), min(upper, most)
    return both


@dataclass(frozen=True, slots=True)
class RowArrays:
    """Rows of a model in compressed form: row r has the entries ``starts[r]:starts[r + 1]``.

    Parameters
    ----------
    starts : (M + 1,) int array
        Index of the first entry of each row.
    columns, values : (E,) arrays
        Variable and coefficient of each entry.
    lower, upper : (M,) arrays
        Limits of each row, infinite where it has none.
    """

    starts: IntArray
    columns: IntArray
    values: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of_table(cls, table: FloatArray, upper: FloatArray) -> RowArrays:
        """Make the rows ``table @ x <= upper`` of a table (M, N)."""
        rows, columns = np.nonzero(table)
        starts = np.searchsorted(rows, np.arange(len(table) + 1))
        lower = np.full(len(table), -math.inf)
        return cls(starts, columns, table[rows, columns], lower, upper)

    @classmethod
    def of_terms(
        cls, terms: Sequence[tuple[IntArray, FloatArray]], lower: FloatArray, upper: FloatArray
    ) -> RowArrays:
        """Make rows from a pair (columns, coefficients) for each row, and the limits of rows."""
        lengths = [len(columns) for columns, _ in terms]
        columns = np.concatenate([np.zeros(0, np.int64), *(columns for columns, _ in terms)])
        values = np.concatenate([np.zeros(0), *(values for _, values in terms)])
        return cls(np.append(0, np.cumsum(lengths, dtype=np.int64)), columns, values, lower, upper)

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def row_of(self) -> IntArray:
        """The row of each entry, shape (E,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def sums(self, terms: FloatArray) -> FloatArray:
        """Sum one number per entry, shape (E,), over each row, shape (M,)."""
        sums: FloatArray = np.bincount(self.row_of, terms, len(self)).astype(float)
        return sums

    def chosen(self, rows: BoolArray, entries: BoolArray) -> RowArrays:
        """Return the rows and entries where the masks (M,) and (E,) are true."""
        row_of = self.row_of
        is_left = entries & rows[row_of]
        lengths = np.bincount(row_of[is_left], minlength=len(rows))[rows]
        return replace(
            self,
            starts=np.append(0, np.cumsum(lengths)),
            columns=self.columns[is_left],
            values=self.values[is_left],
            lower=self.lower[rows],
            upper=self.upper[rows],
        )

    def followed_by(self, others: RowArrays) -> RowArrays:
        """Return these rows followed by `others`, which are over the same variables."""
        return RowArrays(
            np.append(self.starts, self.starts[-1] + others.starts[1:]),
            np.append(self.columns, others.columns),
            np.append(self.values, others.values),
            np.append(self.lower, others.lower),
            np.append(self.upper, others.upper),
        )


@dataclass(frozen=True, slots=True)
class ArrayModel:
    """A linear or mixed-integer model.

    Parameters
    ----------
    names : list of str
        Names of the N variables.
    costs : (N,) array
        Coefficients of the objective.
    constant : float
        Constant term of the objective.
    lower, upper : (N,) arrays
        Limits of the variables, infinite where there are none.
    is_whole : (N,) bool array
        Mask of the integer variables.
    rows : RowArrays
        The rows.
    maximise : bool
        Whether the objective is maximised.
    """

    names: list[str]
    costs: FloatArray
    constant: float
    lower: FloatArray
    upper: FloatArray
    is_whole: BoolArray
    rows: RowArrays
    maximise: bool

    @classmethod
    def of(cls, problem: pulp.LpProblem) -> ArrayModel:
        """Make the arrays of a PuLP model, with the variables in PuLP's order."""
        variables, rows = problem.variables(), problem.constraints()
        # By identity: PuLP's own hash takes far longer.
        number = {id(variable): k for k, variable in enumerate(variables)}
        columns = np.array([number[id(variable)] for row in rows for variable in row], np.int64)
        values = np.array([value for row in rows for value in row.values()], float)
        array_rows = RowArrays(
            np.append(0, np.cumsum([len(row) for row in rows], dtype=np.int64)),
            columns,
            values,
            _limits((row.getLb() for row in rows), -math.inf),
            _limits((row.getUb() for row in rows), math.inf),
        )
        # PuLP has no objective at all until one is set.
        objective = problem.objective or pulp.LpAffineExpression()
        costs = np.zeros(len(variables))
        for variable, cost in objective.items():
            costs[number[id(variable)]] = cost
        return cls(
            [variable.name for variable in variables],
            costs,
            float(objective.constant),
            _limits((variable.lowBound for variable in variables), -math.inf),
            _limits((variable.upBound for variable in variables), math.inf),
            np.array([variable.cat == pulp.LpInteger for variable in variables], bool),
            array_rows.chosen(np.ones(len(rows), bool), values != 0),
            problem.sense == pulp.LpMaximize,
        )

    @classmethod
    def packing(
        cls, worth: FloatArray, most: Numbers, table: FloatArray, room: Numbers
    ) -> ArrayModel:
        """Build an integer model: maximise worth @ x, ``table @ x <= room``, ``0 <= x <= most``."""
        number = len(worth)
        return cls(
            *([str(k) for k in range(number)], worth, 0.0, np.zeros(number), most.astype(float)),
            *(np.ones(number, bool), RowArrays.of_table(table, room.astype(float))),
            maximise=True,
        )

    def wider(self, names: Sequence[str], most: Numbers, *, is_whole: bool) -> ArrayModel:
        """Return the model with further variables from 0 to `most`, in no row and no objective."""
        none = np.zeros(len(names))
        return replace(
            self,
            names=[*self.names, *names],
            costs=np.append(self.costs, none),
            lower=np.append(self.lower, none),
            upper=np.append(self.upper, most),
            is_whole=np.append(self.is_whole, np.full(len(names), is_whole)),
        )

    def with_rows(self, rows: RowArrays) -> ArrayModel:
        """Return the model with further rows."""
        return replace(self, rows=self.rows.followed_by(rows))

    def below(self, levels: Sequence[tuple[IntArray, int]], name: str) -> ArrayModel:
        """Return the model with a further condition: at least one of these levels is not reached.

        A level is reached by variables, given by their columns, that add up to a number. Where
        there are several, a binary variable for each says which one is not; its name begins with
        `name`. The model is the same if one of the levels cannot be reached anyway.
        """
        most = np.array([self.upper[columns].sum() for columns, _ in levels])
        least = np.array([count for _, count in levels], float)
        if (most < least).any():
            return self
        ones = [(columns, np.ones(len(columns))) for columns, _ in levels]
        if len(levels) == 1:
            return self.with_rows(RowArrays.of_terms(ones, np.array([-math.inf]), least - 1))
        wider = self.wider(
            [f"{name}_{k}" for k in range(len(levels))], np.ones(len(levels)), is_whole=True
        )
        which = np.arange(len(self.names), len(wider.names))
        terms = [
            (np.append(columns, one), np.append(values, fewer))
            for (columns, values), one, fewer in zip(ones, which, most - least + 1, strict=True)
        ]
        terms.append((which, np.ones(len(which))))
        lower = np.append(np.full(len(levels), -math.inf), 1.0)
        return wider.with_rows(RowArrays.of_terms(terms, lower, np.append(most, math.inf)))

    def limited(self, limits: Limits) -> ArrayModel:
        """Return the model with these further limits of variables; unknown names are ignored."""
        # Models share their arrays; a change in place would be one of the others, too.
        lower, upper = self.lower.copy(), self.upper.copy()
        limited = [(k, limits[name]) for k, name in enumerate(self.names) if name in limits]
        columns = np.array([k for k, _ in limited], np.int64)
        narrower = np.array([pair for _, pair in limited], float).reshape(-1, 2)
        lower[columns] = np.maximum(lower[columns], narrower[:, 0])
        upper[columns] = np.minimum(upper[columns], narrower[:, 1])
        return replace(self, lower=lower, upper=upper)

    @property
    def is_fixed(self) -> BoolArray:
        """Mask of the variables with equal bounds, shape (N,)."""
        fixed: BoolArray = self.lower == self.upper
        return fixed

    @property
    def fixed(self) -> dict[str, float]:
        """The values of the variables with equal bounds, by name."""
        columns = np.flatnonzero(self.is_fixed).tolist()
        return {self.names[k]: float(self.lower[k]) for k in columns}

    def without_fixed(self) -> ArrayModel:
        """Return the model without fixed variables; their values move to limits and costs.

        Rows that hold whatever the other variables are go, too. A row that cannot hold stays, if
        need be without variables; where all variables are fixed, the first one stays, because
        HiGHS looks at no row of a model without columns.
        """
        is_open = ~self.is_fixed
        if not is_open.any():
            is_open[:1] = True
        values = np.where(is_open, 0.0, self.lower)
        # What the fixed variables use of each row is gone from its limits.
        constants = self.rows.sums(self.rows.values * values[self.rows.columns])
        rows = self.rows.chosen(np.ones(len(constants), bool), is_open[self.rows.columns])
        rows = replace(rows, lower=rows.lower - constants, upper=rows.upper - constants)
        ends = self.lower[rows.columns], self.upper[rows.columns]
        least, most = (
            rows.sums(rows.values * np.where(rows.values > 0, *pair)) for pair in (ends, ends[::-1])
        )
        slack = np.where(np.diff(rows.starts) == 0, FORGIVEN, 0.0)
        # A row that holds at the worst values of its variables holds always.
        can_fail = (least < rows.lower - slack) | (most > rows.upper + slack)
        rows = rows.chosen(can_fail, np.ones(len(rows.columns), bool))
        number = np.cumsum(is_open) - 1
        return replace(
            self,
            names=[
                name for name, is_here in zip(self.names, is_open.tolist(), strict=True) if is_here
            ],
            costs=self.costs[is_open],
            constant=self.constant + float(self.costs @ values),
            lower=self.lower[is_open],
            upper=self.upper[is_open],
            is_whole=self.is_whole[is_open],
            rows=replace(rows, columns=number[rows.columns]),
        )


def _limits(values: Iterable[float | None], missing: float) -> FloatArray:
    return np.array([missing if value is None else value for value in values], float)
