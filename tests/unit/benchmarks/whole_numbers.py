"""A PuLP model in whole numbers, for a solver that knows no others.

What is feasible in the PuLP model stays feasible, and no solution is worth less, so that a bound
of the whole model holds for the PuLP model too. The other way round:

- A row of whole numbers stays as it is, and one of simple fractions, such as 3 of 61 GB, is
  multiplied by their common denominator: the same solutions.
- Any other coefficient a, such as a bandwidth, becomes round(a 2^40), and the limit grows by all
  that this rounding can take away. That lets solutions in which exceed the limit by at most
  2^-40 of a unit for every unit of the variables' upper bounds: 1e-10 of a server's capacity where
  its row sums up to a hundred units. What the solver finds must therefore be verified.
- Costs are multiplied by a power of two, the same for all, and rounded up: a solution with n of the
  variables that have a cost seems to be worth at most n units of 1 / scale more than it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pulp

BITS = 40  # of the scale where there is no common denominator, and of the largest cost
SMALL = 2**20  # up to which a denominator counts as simple
FLOATS = 1e-12  # relative: more than the rounding of floats moves a row

Row = tuple[list[int], list[int], int | None, int | None]


@dataclass(frozen=True, slots=True)
class WholeModel:
    """Maximise costs x subject to low <= row x <= high, 0 <= x <= upper, x whole."""

    names: list[str]  # in the PuLP model
    upper: list[int]
    rows: list[Row]  # variables, coefficients, low, high; None is no limit
    costs: tuple[list[int], list[int]]  # variables, 2^shift times the PuLP model's, rounded up
    shift: int

    def value(self, scaled: float) -> float:
        """A value of the PuLP model's objective from one of the whole model's."""
        return math.ldexp(scaled, -self.shift)


def whole_model(problem: pulp.LpProblem) -> WholeModel:
    """`problem` in whole numbers; its variables are integers from 0 on, its objective a maximum."""
    variables = problem.variables()
    index = {variable: k for k, variable in enumerate(variables)}
    upper = [int(variable.upBound) for variable in variables]
    rows = []
    for row in problem.constraints():
        terms = {index[variable]: float(a) for variable, a in row.items() if a != 0}
        rows.append(_row(terms, row.getLb(), row.getUb(), upper))
    objective = {index[v]: float(a) for v, a in (problem.objective or {}).items() if a != 0}
    shift = BITS - math.frexp(max(objective.values(), default=1.0))[1]
    costs = [math.ceil(math.ldexp(cost, shift)) for cost in objective.values()]
    names = [variable.name for variable in variables]
    return WholeModel(names, upper, rows, (list(objective), costs), shift)


def _row(
    terms: dict[int, float], low: float | None, high: float | None, upper: Sequence[int]
) -> Row:
    columns, coefficients = list(terms), list(terms.values())
    if all(a.is_integer() for a in coefficients):
        lowest = None if low is None else math.ceil(low)
        highest = None if high is None else math.floor(high)
        return columns, [int(a) for a in coefficients], lowest, highest
    if low is not None or high is None:
        raise ValueError(f"expected whole numbers in a row with a lower limit, got {coefficients}")
    numbers, highest = whole_row(coefficients, [upper[k] for k in columns], high)
    return columns, numbers, None, highest


def whole_row(
    coefficients: Sequence[float], most: Sequence[int], limit: float
) -> tuple[list[int], int]:
    """Whole coefficients and limit of a row that lets through all that this one does."""
    margin = FLOATS * max(1.0, abs(limit))
    common = math.lcm(*map(_denominator, coefficients))
    for scale in (common, 2**BITS) if common <= SMALL else (2**BITS,):
        numbers = [round(a * scale) for a in coefficients]
        taken = math.fsum(
            abs(a * scale - number) * units
            for a, number, units in zip(coefficients, numbers, most, strict=True)
        )
        highest = math.floor((limit + margin) * scale + taken)
        if highest + taken <= (limit - margin) * scale:
            break  # nothing else gets through
    return numbers, highest


@cache
def _denominator(coefficient: float) -> int:
    return Fraction(coefficient).limit_denominator(SMALL).denominator
