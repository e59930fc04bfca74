"""What a job is worth to KOD2, and the state that it is in."""

from __future__ import annotations

import math
from enum import StrEnum

from baselines.shares import MachineShares
from oasis.scheduling import PolicyJob, Site

RATIO, DIFFERENCE = "ratio", "difference"


class JobState(StrEnum):
    """The four states of a job (Fig. 5 of the paper)."""

    RUNNING = "running"
    WAITING = "waiting"
    STARVING = "starving"
    COMPLETED = "completed"


class Weights:
    """The weight of a job, which grows with its fewest workers and falls with what it asks for.

    The paper prints the weight as the sigmoid (1) of w', and of w' only that it is "in proportion
    to the minimum number of worker tasks and in inverse proportion to the sum of required CPU and
    memory". Read, with n the fewest workers and d what one worker asks for:

    - ``form="ratio"``: w' = n / d, what the sentence says;
    - ``form="difference"``: w' = n - d, which also grows with n and falls with d, and which the
      sigmoid, made for numbers of both signs, fits better.

    d is the sum, over the resources, of the share of the largest machine that one worker takes:
    CPU and memory are all that the paper's tasks name, GPUs count here where tasks name them, and
    cores that a worker keeps busy (`PolicyJob.worker_cpu`) count as CPU. The demand of one worker
    and not of all is meant, or w' would not depend on n.

    Weights are compared by w': the sigmoid orders them alike, but rounds every w' above 37 to 1.

    Parameters
    ----------
    site : Site
        The machines.
    form : {"ratio", "difference"}
        How w' is read.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> site = Site(("gpu", "memory"), (Machine("n0", (4.0, 64.0)),))
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1), (1, 16)), min_workers=2, max_workers=4)
    >>> [Weights(site, form).raw(job) for form in ("ratio", "difference")]
    [4.0, 1.5]
    >>> round(Weights(site).sigmoid(4.0), 4)
    0.982
    """

    def __init__(self, site: Site, form: str = RATIO) -> None:
        if form not in (RATIO, DIFFERENCE):
            raise ValueError(f"form: expected {RATIO} or {DIFFERENCE}, got {form!r}")
        self.form = form
        self._shares = MachineShares(site, "worker")

    def raw(self, job: PolicyJob) -> float:
        """The w' of `job`: infinity if its tasks ask for nothing, by the reading as a ratio."""
        asked = math.fsum(self._shares.of(job.worker, job.worker_cpu))
        if self.form == DIFFERENCE:
            return job.min_workers - asked
        return job.min_workers / asked if asked else math.inf

    @staticmethod
    def sigmoid(raw: float) -> float:
        """The weight (1) that w' gives, between 0 and 1."""
        return 1.0 / (1.0 + math.exp(-raw)) if raw >= 0 else math.exp(raw) / (1.0 + math.exp(raw))
