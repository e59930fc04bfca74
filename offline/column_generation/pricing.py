"""Pricing problem of the configuration LP: the best schedule of one job (21), (27)."""

from __future__ import annotations

import numpy as np

from oasis.model.job import Job
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.schedule import Schedule
from oasis.online.ledger import Ledger
from oasis.online.search import Search
from offline.model.arrays import OfflineArrays

# Work of one call of `price`, in units of about a second, measured.
PRICE_WORK, PRICE_WORK_PER_PRICE = 5e-4, 2e-8


def pricing_work(arrays: OfflineArrays) -> float:
    """Work of one call of `price` on this cluster and horizon."""
    prices = arrays.horizon * (arrays.worker.capacity.size + arrays.ps.capacity.size)
    return PRICE_WORK + PRICE_WORK_PER_PRICE * prices


def price(
    job: Job, ledger: Ledger, surcharge: FloatArray | None = None
) -> tuple[float, Schedule | None]:
    """Best positive payoff of `job` and the schedule that has it; 0.0 and None without.

    Exact: worker-slots, and the original utilities without any floor.

    Parameters
    ----------
    job : Job
        What to run.
    ledger : Ledger
        Prices, and what others use: nothing for the bounds, their schedules for the heuristics.
    surcharge : (T, N_i + 1) float array, optional
        What 0..N_i workers cost in each slot on top; the slots of a run of the ledger have the
        same.
    """
    search = _Surcharged(job, ledger, surcharge)
    split = search.best()
    return (0.0, None) if split is None else (split.payoff, search.schedule(split))


class _Surcharged(Search):
    """The search of Algorithm 2 where each count of workers costs something on top."""

    def __init__(self, job: Job, ledger: Ledger, surcharge: FloatArray | None) -> None:
        super().__init__(job, ledger, "worker-slot", 0.0)
        self._surcharge = surcharge

    def _costs(
        self, starts: IntArray, fit: IntArray, room: FloatArray, ps_room: FloatArray
    ) -> FloatArray:
        rows = super()._costs(starts, fit, room, ps_room)
        if self._surcharge is not None:
            rows += self._surcharge[starts, : rows.shape[1]]
        return rows


def empty(arrays: OfflineArrays, worker_prices: FloatArray, ps_prices: FloatArray) -> Ledger:
    """Prices (T, H, R) and (T, K, R) on the empty cluster, as the search reads them."""
    unused = np.zeros_like(worker_prices), np.zeros_like(ps_prices)
    return Ledger.of_arrays(arrays.cluster, worker_prices, ps_prices, *unused)
