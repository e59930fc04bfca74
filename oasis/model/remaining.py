"""The remaining work of a job as a job of its own, and utilities seen from a later arrival."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oasis.model.job import Job
from oasis.model.utility import Constant, Piecewise, Utility


def later(utility: Utility, elapsed: int, slots: int, end: int | None = None) -> Utility:
    """The utility of a job that arrived `elapsed` slots ago, by the delay from now.

    The values at whole slots are the same up to `slots`, and 0 from the delay `end` on; a schedule
    never completes between them.
    """
    if isinstance(utility, Constant) and end is None:
        return utility
    if elapsed == 0 and end is None:
        return utility
    # Two points at least, as a piecewise utility needs them.
    delays = np.arange(max(2, slots + 1))
    values = np.asarray(utility(delays + elapsed), dtype=np.float64)
    if end is not None:
        values = np.where(delays < end, values, 0.0)
    return Piecewise(tuple(delays.astype(float).tolist()), tuple(values.tolist()))


def remaining_job(job: Job, remaining: int, now: int, slots: int, end: int | None = None) -> Job:
    """A job that arrives at `now` with the `remaining` worker-slots of `job`.

    It reserves what `job` reserves, and is worth at a slot what `job` is worth then: nothing from
    slot `end` on.
    """
    elapsed = now - job.arrival
    until = None if end is None else max(0, end - now)
    return replace(
        job,
        arrival=now,
        epochs=1,
        minibatches=1,
        # One mini-batch a chunk: N_i of this length are exactly the worker-slots that remain.
        minibatch_time=remaining / job.chunks,
        gradient_mb=0.0,
        utility=later(job.utility, elapsed, slots, until),
    )
