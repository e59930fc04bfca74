"""The library that comes with the package: a sample is verified always, all of it nightly."""

from __future__ import annotations

import pytest

from experiments.library import PROBLEMS, Library
from experiments.library.store import OPTIMAL, SHIPPED
from oasis.solvers import PROOF, Status
from offline import solve

LIBRARY = Library()
RECORDS = LIBRARY.records()
SAMPLE = tuple(RECORDS)[::20]
REST = [pytest.param(name, marks=pytest.mark.nightly) for name in RECORDS if name not in SAMPLE]
MOST_BYTES = 5_000_000
CLOSE = "testbed-t10-w7-p2-j12-critical-s6"


def test_every_instance_has_its_row_and_its_schedules_and_nothing_else_is_there() -> None:
    assert list(RECORDS) == list(PROBLEMS)
    named = {f"{record.name}.{record.schedules}.xz" for record in RECORDS.values()}
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert {path.name for path in files} == named | {"table.csv", "families.csv"}
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


@pytest.mark.parametrize("name", [*SAMPLE, *REST])
def test_stored_schedules_verify_to_the_value_of_the_table(name: str) -> None:
    record = RECORDS[name]
    assert LIBRARY.verify(record) == record.value


PROVEN = sorted(name for name, record in RECORDS.items() if record.proof == OPTIMAL)
AGAIN = [pytest.param(name, marks=() if name == CLOSE else pytest.mark.nightly) for name in PROVEN]


@pytest.mark.parametrize("name", AGAIN)
def test_what_is_proven_optimal_is_found_again_with_another_seed(name: str) -> None:
    """Proven means within a millionth, so that two proofs may end with different schedules.

    `CLOSE` has schedules that are worth a ten-millionth less than the best ones: there, the best
    ones are found again.
    """
    record, instance = RECORDS[name], PROBLEMS[name].instance()
    found = solve(instance, "benders", work_limit=300.0, seed=7)
    assert found.status is Status.OPTIMAL
    assert found.objective <= record.bound
    assert found.upper_bound >= record.value * (1 - 1e-9)
    # a record says no more of the optimum than that it lies between its value and its bound
    exact = max(2e-9 * record.value, record.bound - record.value)
    apart = exact if name == CLOSE else PROOF * record.value
    assert found.objective == pytest.approx(record.value, rel=0.0, abs=apart)
