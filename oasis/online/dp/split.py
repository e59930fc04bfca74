"""A split: how many workers a job has in each slot."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.model.rounding import IntArray


@dataclass(frozen=True, slots=True)
class Split:
    """Workers of a job in each slot; slots are counted from its arrival.

    Parameters
    ----------
    payoff : float
        Utility minus cost.
    completion : int
        The last slot with a worker.
    counts : (n,) int array
        Workers in each slot; of a job with a minimum, the worker-slots of its work in each slot.

    Examples
    --------
    >>> import numpy as np
    >>> from oasis.online.dp import Split
    >>> split = Split(payoff=3.0, completion=2, counts=np.array([0, 4, 1]))
    >>> int(split.counts.sum())  # worker-slots
    5
    """

    payoff: float
    completion: int
    counts: IntArray
