"""The twelve jobs of Table 1 on the testbed, under the default scheduler and both controllers."""

from __future__ import annotations

import numpy as np

from experiments.figures.dragon.models import BATCH, RESTART, TESTBED, document, job
from oasis.simulator import ElasticWorkload, elastic_from_dict

LETTERS = "RIIARAIRIAIA"
ASKED = (4, 4, 2, 2, 3, 2, 2, 1, 2, 2, 1, 1)
LEAST = (2, 2, 2, 2, 2, 2, 2, 1, 2, 2, 1, 1)
MOST = 4
STEPS = (2800, 3600, 1000, 450, 2100, 1000, 2000, 2400, 2500, 800, 1000, 1200)
ARRIVALS = (0.0, 0.56, 2.53, 6.34, 7.58, 13.11, 19.01, 27.54, 34.56, 42.58, 47.58, 51.19)
EARLY = 5  # "the first 5 jobs was generated with a much shorter inter-arrival time"


def arrivals(seed: int | None) -> list[float]:
    """Times of arrival as Table 1 prints them, or drawn with the same mean gaps.

    Examples
    --------
    >>> arrivals(None)[-1], len(arrivals(3))
    (51.19, 12)
    """
    if seed is None:
        return list(ARRIVALS)
    rng = np.random.default_rng(seed)
    turn, last = ARRIVALS[EARLY - 1], ARRIVALS[-1]
    late = len(ARRIVALS) - EARLY
    gaps = [*rng.exponential(turn / (EARLY - 1), EARLY - 1)]
    gaps += [*rng.exponential((last - turn) / late, late)]
    return [0.0, *np.cumsum(gaps).round(2).tolist()]


def table1(
    seed: int | None = None, *, unit: float = 60.0, batch: int = BATCH, rigid: bool = False
) -> ElasticWorkload:
    """The jobs of Table 1.

    Parameters
    ----------
    seed : int or None
        None: arrivals as printed and restarts of 50 s; else both are drawn.
    unit : float
        Seconds in the unit of the times of arrival: printed are seconds, read are minutes.
    batch : int
        Images in a step of one worker.
    rigid : bool
        As for `document`.

    Examples
    --------
    >>> made = table1()
    >>> len(made.workload.jobs), made.workload.jobs[11].arrival
    (12, 3071.4)
    """
    rng = np.random.default_rng([1, seed or 0])
    restart = sum(RESTART) / 2 if seed is None else float(rng.uniform(*RESTART))
    rows = zip(LETTERS, ASKED, LEAST, STEPS, arrivals(seed), strict=True)
    jobs = [
        job(f"job{k}", letter, round(unit * at, 3), batch * count, (least, asked, MOST), batch)
        for k, (letter, asked, least, count, at) in enumerate(rows, start=1)
    ]
    return elastic_from_dict(document(TESTBED, jobs, restart, rigid=rigid))
