"""Certificates whose numbers vanish or overflow; what they are of a run, properties say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oasis.certify.certificate import Certificate, _log_growth

LARGEST = math.exp(708.9)


@pytest.mark.parametrize(
    ("log_alpha_x", "utility", "bound", "ratio"),
    [
        (math.log(3.0), 10.0, 5.0 + 3.0 * 10.0 + 7.0, 4.2),
        (math.log(3.0), 0.5, 5.0 + 1.5 + 7.0, 27.0),
        (math.log(3.0), 0.0, 12.0, None),
        (708.9, 1.0, LARGEST, LARGEST),
        (708.0, 4.0, math.inf, None),
        (709.0, 1.0, math.inf, None),
        (709.9, 1.0, math.inf, None),
        (1e6, 1.0, math.inf, None),
        (720.0, 1e-20, math.exp(720.0 - 20 * math.log(10.0)), None),  # e^720 is no float
    ],
)
def test_bound_is_initial_dual_plus_alpha_x_times_utility_plus_gap(
    log_alpha_x: float, utility: float, bound: float, ratio: float | None
) -> None:
    made = Certificate(2.0, log_alpha_x, 5.0, 7.0, utility)
    assert made.upper_bound == pytest.approx(bound, rel=1e-9)
    assert made.ratio_bound == (None if ratio is None else pytest.approx(ratio))


def test_growth_of_a_step_too_large_for_the_exponential_is_a_finite_logarithm() -> None:
    assert _log_growth(np.array([2000.0]), np.array([[1.0]])) == pytest.approx(2000.0)
