"""DP_COST of Algorithm 2 by its recurrence, and the same for the moves that close a gap.

The reference for `oasis.online.dp`, which gets the costs of the slots as a table. One row a slot,
one column a count of workers: cost(t, D) = min_k table[t, k] + cost(t - 1, D - k), nothing clever.
`tests.oracle.reference_search` answers the whole question, from the job and the servers.
"""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def costs(table: FloatArray, demand: int) -> FloatArray:
    """Cheapest cost of `demand` worker-slots by the end of each slot; inf if they do not fit."""
    best = np.full(demand + 1, np.inf)
    best[0] = 0.0
    result = np.full(len(table), np.inf)
    for slot, row in enumerate(table):
        after = best.copy()
        for k in range(1, min(len(row) - 1, demand) + 1):
            np.minimum(after[k:], best[:-k] + row[k], out=after[k:])
        best = after
        result[slot] = best[demand]
    return result


def payoffs(table: FloatArray, utility: FloatArray, demand: int) -> FloatArray:
    """Utility minus cost of completing by each slot; -inf where that is worthless or impossible."""
    return np.where(utility > 0, utility - costs(table, demand), -np.inf)


def cheapest_moves(table: FloatArray, counts: npt.NDArray[np.int64], missing: int) -> float:
    """Least cost of changing the count of each slot at most once, so that `missing` are added."""
    slots, most = len(table), table.shape[1] - 1
    best = {0: 0.0}
    for slot in range(slots):
        after: dict[int, float] = {}
        for total, cost in best.items():
            for k in range(most + 1):
                key = total + k - int(counts[slot])
                after[key] = min(after.get(key, np.inf), cost + table[slot, k])
        best = after
    return best.get(missing, np.inf)
