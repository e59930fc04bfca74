"""How few parameter servers some work takes, summed over slots: the cheapest way to split it.

By (6) each slot rounds its parameter servers up, so that a job may take more of them than its work
times b_i / B_i, however its workers are spread.
"""

from __future__ import annotations

import numpy as np

from oasis.model.job import Job
from oasis.model.rounding import IntArray


def fewest_ps(job: Job, work: int, most: int, slots: int) -> IntArray:
    """Fewest parameter servers in total that work takes within 1, 2, ... `slots` slots.

    A dynamic program over slots: the first slot takes some workers, the others do the rest.

    Parameters
    ----------
    job : Job
        Its `ps_needed` says how many parameter servers the workers of a slot take.
    work : int
        Worker-slots to do.
    most : int
        Most workers in one slot, at least 1.
    slots : int
        Most slots.

    Returns
    -------
    (slots,) int array
        0 where there are too few slots to do the work at all.

    Examples
    --------
    Four workers share a parameter server, the fifth one takes another.

    >>> import oasis
    >>> from dataclasses import replace
    >>> job = oasis.generate("testbed", jobs=1, seed=1).jobs[0]
    >>> worker, ps = {"cpu": 1, "bandwidth_gbps": 1.0}, {"cpu": 1, "bandwidth_gbps": 4.0}
    >>> job = replace(job, worker=worker, ps=ps)
    >>> fewest_ps(job, work=10, most=5, slots=4).tolist()  # 5 + 5 workers, and 4 + 4 + 2
    [0, 4, 3, 3]
    """
    needed = job.ps_needed(np.arange(most + 1))
    numbers = np.unique(needed)
    workers = [min(work, int(np.flatnonzero(needed <= n)[-1])) for n in numbers.tolist()]
    never = np.iinfo(np.int64).max // 2
    fewest = np.where(np.arange(work + 1) > 0, never, 0)  # for each number of worker-slots to do
    found = np.zeros(slots, dtype=np.int64)
    for k in range(slots):
        before, fewest = fewest, fewest.copy()
        for number, done in zip(numbers.tolist(), workers, strict=True):
            np.minimum(fewest[done:], before[: work + 1 - done] + number, out=fewest[done:])
            np.minimum(fewest[1 : done + 1], number, out=fewest[1 : done + 1])
        found[k] = fewest[work] if fewest[work] < never else 0
        if (fewest == before).all():
            found[k:] = found[k]
            break
    return found
