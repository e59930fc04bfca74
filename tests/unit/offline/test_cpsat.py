"""CP-SAT against enumeration: a second exact solver of the compact model, in whole numbers.

The benchmarks have it as a peer (`tests.unit.benchmarks.cpsat`), so what it says must be true.
"""

import math
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import oasis
from oasis import SolverError
from oasis.model.rounding import CAPACITY_TOLERANCE
from oasis.solvers import Status
from oasis.testing import small_instances
from offline import solve
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel
from offline.state import OUTWARD
from tests.builders import seeds
from tests.oracle.tiny import FALSE_OPTIMA, seeded, tiny_instance
from tests.strategies import fewer
from tests.unit.benchmarks import cpsat, whole_numbers
from tests.unit.benchmarks.whole_numbers import WholeModel, whole_model, whole_row
from tests.unit.offline.test_milp import hard, instance, job

LIMIT = 1.0 + CAPACITY_TOLERANCE

with_ortools = pytest.mark.skipif(not cpsat.is_installed(), reason=cpsat.MISSING)


# -- whole numbers ---------------------------------------------------------------------------------


@st.composite
def tight_rows(draw):
    """Coefficients and upper bounds of a row that some counts fill to the last bit."""
    fractions = st.builds(lambda n, d: n / d, st.integers(1, 9), st.sampled_from([1, 3, 10, 61]))
    coefficients = draw(st.lists(st.one_of(fractions, st.floats(1e-6, 1.0)), max_size=3))
    most = draw(st.lists(st.integers(1, 4), min_size=len(coefficients), max_size=len(coefficients)))
    some = [draw(st.integers(0, units)) for units in most]
    left = LIMIT - math.fsum(a * n for a, n in zip(coefficients, some, strict=True))
    units = draw(st.integers(1, 4))
    return [*coefficients, left / units if left > 0 else 1.0], [*most, units]


def dot(numbers, counts):
    return math.fsum(a * n for a, n in zip(numbers, counts, strict=True))


@given(tight_rows())
def test_a_row_in_whole_numbers_lets_through_what_fits_and_nothing_else_to_speak_of(row):
    coefficients, most = row
    numbers, highest = whole_row(coefficients, most, LIMIT)
    spare = sum(most) * 2.0**-whole_numbers.BITS + 3 * whole_numbers.FLOATS
    for counts in product(*(range(units + 1) for units in most)):
        used = dot(coefficients, counts)
        assert used > LIMIT or dot(numbers, counts) <= highest
        assert used <= LIMIT + spare or dot(numbers, counts) > highest


def test_simple_fractions_of_a_capacity_keep_their_numerators():
    assert whole_row([3 / 61, 4 / 61, 32 / 61], [20, 15, 1], LIMIT) == ([3, 4, 32], 61)
    assert whole_row([0.1 / 2.5], [30], LIMIT) == ([1], 25)


def test_a_row_that_cannot_be_relaxed_is_refused():
    model = CompactModel(OfflineArrays.of(instance(job())))
    model.problem += 0.5 * model.problem.variables()[0] >= 0.25
    with pytest.raises(ValueError, match="lower limit"):
        whole_model(model.problem)


def assert_holds(whole, values):
    for value, most in zip(values, whole.upper, strict=True):
        assert 0 <= value <= most
    for columns, numbers, low, high in whole.rows:
        used = sum(a * values[k] for k, a in zip(columns, numbers, strict=True))
        assert low is None or used >= low
        assert high is None or used <= high


@given(small_instances())
def test_the_best_schedules_fit_the_whole_model_and_are_worth_no_less_there(instance):
    try:
        best = solve(instance, "bruteforce")
    except ValueError:
        assume(False)
    model = CompactModel(OfflineArrays.of(instance))
    whole = whole_model(model.problem)
    known = model.values_of(best.schedules)
    values = [int(known.get(name, 0)) for name in whole.names]
    assert_holds(whole, values)
    worth = sum(cost * values[k] for k, cost in zip(*whole.costs, strict=True))
    slack = whole.value(len(best.schedules))
    assert best.objective <= whole.value(worth) * (1 + 1e-15)
    assert whole.value(worth) <= (best.objective + slack) * (1 + 1e-15)


# -- CP-SAT ----------------------------------------------------------------------------------------


def assert_agrees_with_enumeration(instance):
    try:
        exact = solve(instance, "bruteforce").objective
    except ValueError:
        assume(False)
    found = cpsat.solve_cpsat(instance)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(exact, rel=1e-6)
    assert found.upper_bound >= exact * (1 - 1e-12)
    outward = 1 + OUTWARD + 1e-12
    assert found.upper_bound <= (exact + found.parameters["bound_slack"]) * outward
    assert found.parameters["refused"] == []
    assert oasis.verify(instance, found) == found.objective


@with_ortools
@pytest.mark.parametrize("chosen", [*seeds(2, range(100, 600, 50)), FALSE_OPTIMA])
def test_cpsat_agrees_with_enumeration(chosen):
    for seed in chosen:
        assert_agrees_with_enumeration(tiny_instance(seeded(seed)))


@with_ortools
@fewer(20)
@given(small_instances())
def test_cpsat_agrees_with_enumeration_on_nasty_instances(instance):
    assert_agrees_with_enumeration(instance)


@with_ortools
def test_a_limited_cpsat_encloses_the_optimum_from_the_warm_start_on():
    problem = hard()
    start = oasis.simulate(problem, oasis.OASiS.from_instance(problem))
    result = cpsat.solve_cpsat(problem, warm_start=start.schedules, work_limit=0.3)
    assert result.status is Status.WORK_LIMIT
    assert start.total_utility <= result.objective < result.upper_bound < math.inf
    assert oasis.verify(problem, result) == result.objective
    assert result.bound_by == "CP-SAT"
    assert result.gap_at(math.inf) == pytest.approx(result.gap)


@with_ortools
def test_a_solution_that_breaks_a_capacity_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(whole_numbers, "FLOATS", 1.0)  # twice the capacity
    with pytest.raises(SolverError, match=r"does not verify: .*\(4\) worker capacity"):
        cpsat.solve_cpsat(instance(job(), job("b"), ps=9.0))


@with_ortools
def test_a_bound_below_a_schedule_is_an_error(monkeypatch):
    monkeypatch.setattr(WholeModel, "value", lambda self, scaled: scaled * 2.0 ** -(self.shift + 1))
    with pytest.raises(SolverError, match="claims the bound"):
        cpsat.solve_cpsat(instance(job()))
