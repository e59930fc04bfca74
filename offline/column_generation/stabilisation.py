"""The stability centre: the best prices so far, and how far the next ones stay with them.

References
----------
Wentges, Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming, 1997.
Pessoa, Sadykov, Uchoa, Vanderbeck, Automation and combination of linear-programming based
stabilization techniques in column generation, INFORMS J. on Computing 30(2), 2018, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from oasis.model.rounding import FloatArray
from offline.column_generation.params import ColumnGenerationParams

NO_CUTS: FloatArray = np.zeros(0)


@dataclass(slots=True)
class StabilityCentre:
    """The best prices so far.

    Parameters
    ----------
    params : ColumnGenerationParams
        How the smoothing changes.
    worker_prices, ps_prices : (T, H, R) and (T, K, R) float arrays
        Prices that prove `bound`.
    bound : float
        The smallest D(p, q) so far.
    cut_duals : (cuts,) float array
        What the cuts that were known then cost beside the resources.
    smoothing : float
        Weight of the centre in the next prices; the rest is the restricted master's.
    """

    params: ColumnGenerationParams
    worker_prices: FloatArray
    ps_prices: FloatArray
    bound: float = math.inf
    cut_duals: FloatArray = field(default_factory=lambda: NO_CUTS)
    smoothing: float = field(init=False, default=0.0)

    def move(
        self,
        prices: tuple[FloatArray, FloatArray],
        bound: float,
        cut_duals: FloatArray = NO_CUTS,
    ) -> None:
        """Take better prices for the centre, and what cuts cost beside them."""
        self.worker_prices, self.ps_prices = prices
        self.bound, self.cut_duals = bound, cut_duals

    def restart(self) -> None:
        """Smooth as at first."""
        self.smoothing = self.params.first_smoothing

    def adapt(self, *, is_idle: bool, is_beyond: bool) -> None:
        """Smooth less after prices that changed nothing, more after some beyond the minimum."""
        step = self.params.smoothing_step
        if is_idle:
            self.smoothing = max(0.0, 2 * self.smoothing - 1)
        elif is_beyond:
            more = self.smoothing + step * (1 - self.smoothing)
            self.smoothing = min(self.params.most_smoothing, more)
        else:
            self.smoothing = max(0.0, self.smoothing - step)
