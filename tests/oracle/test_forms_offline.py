"""Offline optima of jobs in several forms on machines of several kinds: one answer of all."""

from __future__ import annotations

import pytest

import oasis
from oasis.solvers import Status
from offline import solve
from tests.oracle.forms import defined_optimum, of_kinds


@pytest.fixture(scope="module")
def optima() -> dict[int, float]:
    """What the definition says of 150 instances, by seed."""
    seeds = [seed for seed in range(400) if any(len(j.in_forms) > 1 for j in of_kinds(seed).jobs)]
    return {seed: defined_optimum(of_kinds(seed)) for seed in seeds[:150]}


def test_the_enumeration_agrees_with_the_definition(optima: dict[int, float]) -> None:
    for seed, exact in optima.items():
        found = solve(of_kinds(seed), "bruteforce", warm_start={})
        assert oasis.verify(of_kinds(seed), found) == pytest.approx(exact, rel=1e-6), seed


def test_the_compact_model_agrees_with_the_definition(optima: dict[int, float]) -> None:
    for seed, exact in optima.items():
        found = solve(of_kinds(seed), "milp", warm_start={})
        assert found.status is Status.OPTIMAL
        assert oasis.verify(of_kinds(seed), found) == pytest.approx(exact, rel=1e-6), seed
