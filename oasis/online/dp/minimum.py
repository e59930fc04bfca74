"""A job that in each slot works with a minimum of workers or more, or with none.

A slot with less work than the minimum does costs what the minimum costs. A split at such costs is
then one of workers, each count raised to the minimum (docs/theory-search, "A minimum of workers").
"""

from __future__ import annotations

import numpy as np

from oasis.model.rounding import FloatArray, IntArray


def costs_of_work(rows: FloatArray, least: int, work: int) -> FloatArray:
    """What 0, 1, .. worker-slots cost in a slot that has no worker, or `least` at least.

    Parameters
    ----------
    rows : (q, N + 1) float array
        Cost of 0..N workers in one slot of each of q runs, N >= `least` or N = 0; it is written
        over.
    least : int
        The minimum of workers, at least 2.
    work : int
        Worker-slots to do; a slot with more of them is not needed.

    Examples
    --------
    >>> import numpy as np
    >>> costs_of_work(np.array([[0.0, 1.0, 2.0, 5.0, np.inf]]), least=3, work=3)
    array([[0., 5., 5., 5.]])
    """
    if rows.shape[1] > 1:
        rows[:, 1:least] = rows[:, least, None]
    return rows[:, : work + 1]


def workers_for(counts: IntArray, least: int, work: int | None) -> IntArray:
    """Workers of each slot in which so many worker-slots are to be done.

    Parameters
    ----------
    counts : (n,) int array
        Worker-slots of each slot.
    least : int
        The minimum of workers.
    work : int or None
        Worker-slots to do in all, at most the sum of `counts`. Slots with fewer than `least` of
        them do more: the slots after the work is done are left out, and as far as there still is
        more than the work, the latest slots that can have fewer workers have fewer. None: all
        counts stay what they are, or are raised.

    Examples
    --------
    The two workers that are not asked for in slot 0 do the work of slot 2.

    >>> import numpy as np
    >>> workers_for(np.array([1, 4, 2]), least=3, work=7)
    array([3, 4])
    >>> workers_for(np.array([6, 1]), least=3, work=7)
    array([4, 3])
    >>> workers_for(np.array([1, 0, 4, 2]), least=3, work=None)
    array([3, 0, 4, 3])
    """
    workers: IntArray = np.where(counts > 0, np.maximum(counts, least), 0)
    if work is None:
        return workers
    done = workers.cumsum()
    last = int(done.searchsorted(work))
    workers, surplus = workers[: last + 1], done[last] - work
    spare = np.maximum(workers - least, 0)
    of_later_slots = spare[::-1].cumsum()[::-1] - spare
    workers -= np.minimum(np.maximum(surplus - of_later_slots, 0), spare)
    return workers
