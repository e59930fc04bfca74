"""The outcome of splitting work over slots."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.model.rounding import IntArray


@dataclass(frozen=True, slots=True)
class Split:
    """Work by slot, counted from the job's arrival.

    Parameters
    ----------
    payoff : float
        Utility minus cost.
    completion : int
        The last slot with a worker.
    counts : (n,) int array
        Workers in each slot.
    """

    payoff: float
    completion: int
    counts: IntArray
