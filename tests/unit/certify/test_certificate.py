"""Certificates whose numbers vanish or overflow."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import oasis
from oasis import Decision
from oasis.certify.certificate import Certificate, _log_growth

ONE = Certificate(
    alpha=2.0, log_alpha_x=math.log(3.0), initial_dual=5.0, payoff_gap=7.0, online_utility=10.0
)


def test_upper_bound_is_initial_dual_plus_alpha_x_times_utility_plus_gap() -> None:
    assert ONE.upper_bound == pytest.approx(5.0 + 3.0 * 10.0 + 7.0)
    assert ONE.ratio_bound == pytest.approx(4.2)


def test_run_that_earned_nothing_is_bounded_without_a_ratio() -> None:
    nothing = replace(ONE, online_utility=0.0)
    assert nothing.upper_bound == 12.0
    assert nothing.ratio_bound is None


def test_utility_below_one_is_multiplied_like_any_other() -> None:
    small = replace(ONE, online_utility=0.5)
    assert small.upper_bound == pytest.approx(5.0 + 1.5 + 7.0)
    assert small.ratio_bound == pytest.approx(27.0)


def test_bound_is_infinite_where_it_overflows_and_then_there_is_no_ratio() -> None:
    for log in (709.0, 709.9, 1e6):
        beyond = replace(ONE, log_alpha_x=log, online_utility=1.0)
        assert beyond.upper_bound == math.inf
        assert beyond.ratio_bound is None
    beyond = replace(ONE, log_alpha_x=708.0, online_utility=4.0)
    assert beyond.upper_bound == math.inf
    within = replace(ONE, log_alpha_x=708.9, online_utility=1.0)
    assert within.upper_bound == within.ratio_bound == pytest.approx(math.exp(708.9))


def test_bound_times_a_tiny_utility_does_not_overflow_with_alpha_x_alone() -> None:
    tiny = replace(ONE, log_alpha_x=720.0, online_utility=1e-20)
    assert tiny.upper_bound == pytest.approx(math.exp(720.0 - 20 * math.log(10.0)), rel=1e-9)
    assert tiny.ratio_bound is None  # e^720 is no float


def test_growth_of_a_step_too_large_for_the_exponential_is_a_finite_logarithm() -> None:
    assert _log_growth(np.array([2000.0]), np.array([[1.0]])) == pytest.approx(2000.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_nothing_was_admitted_alpha_x_is_one_and_the_gap_all_that_could_be_gained(
    seed: int,
) -> None:
    instance = oasis.generate("testbed", jobs=3, seed=seed)
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    nobody = tuple(Decision(decision.job_id, False) for decision in run.decisions)
    certificate = oasis.certify(instance, replace(run, decisions=nobody))
    assert certificate.log_alpha_x == 0.0
    first = run.decisions[0]  # at the initial prices
    assert certificate.payoff_gap >= first.payoff > 0
    assert certificate.upper_bound == certificate.initial_dual + certificate.payoff_gap
