"""The first completion, where no later one can pay as much (docs/theory-search).

Utilities mostly fall from slot to slot by more than a job has to pay for all of its work. Then
neither the costs of later slots are needed nor bounds on the later completions.
"""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray
from oasis.online.dp.envelope import Envelope
from oasis.online.dp.split import Split
from oasis.online.dp.worker_slots import below, cheapest, noise_of


def falls_after(utility: FloatArray, slot: int) -> bool:
    """Whether every later completion is worth less, even if this one cost next to nothing."""
    soon = float(utility[slot])
    return soon > 0 and _later(utility, slot) + noise_of(utility) < soon


def first_if_best(
    rows: FloatArray, lengths: IntArray, utility: FloatArray, demand: int
) -> Split | None:
    """The earliest completion, if its payoff is above what any later one is worth.

    The result is that of `best_split` with all slots, to the last bit.

    Parameters
    ----------
    rows, lengths, demand
        See `Envelope`; the runs end with the first slot in which the work can be complete.
    utility : (n,) float array
        Value of completing in each slot, also in those after the runs: 0 where that is impossible,
        then never rising.

    Returns
    -------
    Split or None
        None if a later completion may be better, or if the first does not pay.

    Examples
    --------
    Two workers at once cost 6. Completing a slot later is worth 5 less, so it cannot pay as much.

    >>> import numpy as np
    >>> from oasis.online.dp.first import first_if_best
    >>> rows, one_slot = np.array([[0.0, 1.0, 3.0]]), np.array([1])
    >>> split = first_if_best(rows, one_slot, utility=np.array([10.0, 5.0]), demand=2)
    >>> split.payoff, split.completion, split.counts
    (7.0, 0, array([2, 0]))
    >>> first_if_best(rows, one_slot, utility=np.array([10.0, 8.0]), demand=2) is None
    True
    """
    last = int(lengths.sum()) - 1
    soon, noise = float(utility[last]), noise_of(utility)
    beyond = _later(utility, last) + noise
    least = demand * float((rows[:, 1:] / np.arange(1, rows.shape[1])).min())  # before the envelope
    if not beyond < soon - least:
        return None
    envelope = Envelope(below(rows, float(utility.max())), lengths, demand)
    if envelope.earliest > last:  # without the costs that are above every utility
        return None
    cost, slots = cheapest(envelope, last, soon, noise)
    if slots is None or not beyond < soon - cost:
        return None
    return envelope.split(slots, utility)


def _later(utility: FloatArray, slot: int) -> float:
    return float(utility[slot + 1 :].max(initial=0.0))
