"""A model in HiGHS's own form, which knows how to maximise."""

from __future__ import annotations

import math

import highspy
import numpy as np

from oasis.solvers.arrays import ArrayModel


def objective_scale(model: ArrayModel) -> float:
    """Power of two that brings the largest cost to about 1: HiGHS's tolerances are absolute."""
    largest = float(np.abs(model.costs).max(initial=0.0))
    return 2.0 ** -math.frexp(largest)[1] if largest else 1.0


def translated(model: ArrayModel, scale: float, row_scale: float = 1.0) -> highspy.HighsLp:
    """HiGHS's form of a model, its objective multiplied by `scale`.

    Rows with a coefficient that is no whole number are multiplied by `row_scale`, a power of two.
    """
    rows = model.rows
    has_fraction = rows.sums((rows.values != np.floor(rows.values)).astype(float)) > 0
    factors = np.where(has_fraction, row_scale, 1.0)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.names), len(rows.lower)
    lp.sense_ = highspy.ObjSense.kMaximize if model.maximise else highspy.ObjSense.kMinimize
    lp.offset_ = model.constant * scale
    lp.col_cost_ = model.costs * scale
    lp.col_lower_, lp.col_upper_ = model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = rows.lower * factors, rows.upper * factors
    kinds = highspy.HighsVarType
    lp.integrality_ = [
        kinds.kInteger if is_whole else kinds.kContinuous for is_whole in model.is_whole.tolist()
    ]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = rows.starts.astype(np.int32)
    lp.a_matrix_.index_ = rows.columns.astype(np.int32)
    lp.a_matrix_.value_ = rows.values * factors[rows.row_of]
    return lp
