"""The job as a policy sees it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from oasis.model import rounding
from oasis.model.errors import PolicyError
from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.summary import Facts, Summarised
from oasis.model.utility import Utility
from oasis.scheduling.allocation import Allocation
from oasis.scheduling.curve import TrainingCurve
from oasis.scheduling.parameter_servers import PsRule

Demand = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Unvalued:
    """The utility of a job whose owner gave none, as in a trace: all such jobs count the same, 1.

    A policy that goes by value can so run on a trace; no total utility is made of it.

    Examples
    --------
    >>> float(Unvalued()(1e6))
    1.0
    """

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return np.ones_like(delay, dtype=float)

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        return np.zeros_like(delay, dtype=float)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PolicyJob(Summarised):
    """What a policy may know of a job once it has arrived.

    `work`, `source` and `curve` say how much work the job has. They are for policies that are told
    so (`Policy.told_remaining`); any other policy gets an `UntoldJob`, which does not have them.

    Parameters
    ----------
    id : str
        Its name.
    arrival : float
        Time of arrival.
    work : float
        Work, in units of one worker for one unit of time.
    worker, ps : tuple of (resource index, amount)
        What one worker and one parameter server reserve on their machine, in grid units; nobody
        else can have it (GPUs, memory).
    min_workers, max_workers : int
        It works with so many workers or more, or with none.
    ps_per_worker : float
        b_i / B_i, a shorthand for the rule `ByBandwidth`.
    utility : Utility
        Value by delay, in the time of the run: slots on an instance, seconds in a replay. A job
        of a trace has none of its own (`has_utility`): it is worth 1 at any delay.
    source : Job or None
        The job of the instance.
    index : int
        Its place in the order of arrival, which says nothing about later jobs.
    initial_workers : int or None
        Workers that its owner asked for; None if the choice is left to the policy.
    ps_rule : PsRule or None
        How many parameter servers go with so many workers; None: by `ps_per_worker`.
    worker_cpu, ps_cpu : float
        Cores that one running worker and one running parameter server keep busy. They are shared,
        not reserved: a machine may be asked for more than it has, and then its tasks slow down.
    gradient_mb : float
        Size of the gradients that a worker sends in a step, MB.
    step_time : float
        Time in which one worker on its own computes a step, in units of the workload's time.
    curve : TrainingCurve or None
        What its evaluation function shows as it trains.
    owner : str
        The virtual cluster or the user that submitted it; empty if that is not known.

    Examples
    --------
    >>> from oasis.scheduling import FixedPs
    >>> job = PolicyJob("a", 0.0, 60.0, ((0, 1),), min_workers=2, max_workers=4, ps_rule=FixedPs(1))
    >>> job.ps_needed(3)
    1
    >>> job.works_with(Allocation(((0, 2),), ((0, 1),))), job.works_with(Allocation(((0, 2),)))
    (True, False)
    """

    id: str
    arrival: float
    work: float
    worker: Demand
    ps: Demand = ()
    min_workers: int = 1
    max_workers: int = 1
    ps_per_worker: float = 0.0
    utility: Utility = Unvalued()
    source: Job | None = None
    index: int = -1
    initial_workers: int | None = None
    ps_rule: PsRule | None = None
    worker_cpu: float = 0.0
    ps_cpu: float = 0.0
    gradient_mb: float = 0.0
    step_time: float = 0.0
    curve: TrainingCurve | None = None
    owner: str = ""

    def __post_init__(self) -> None:
        if cast(object, self.utility) is None:  # not given, as in untyped code
            object.__setattr__(self, "utility", Unvalued())
        if self.ps_rule is not None and self.ps_per_worker:
            raise ValueError("ps_rule: expected None beside ps_per_worker, which is a rule itself")
        initial = self.initial_workers
        if initial is not None and not self.min_workers <= initial <= self.max_workers:
            expected = f"expected {self.min_workers}..{self.max_workers}"
            raise ValueError(f"initial_workers: {expected}, got {initial}")
        if self.gradient_mb and not self.step_time > 0:
            expected = "expected a time > 0 for a job that sends gradients"
            raise ValueError(f"step_time: {expected}, got {self.step_time}")

    @property
    def has_utility(self) -> bool:
        """Whether its owner said what it is worth."""
        return not isinstance(self.utility, Unvalued)

    @property
    def fixed_workers(self) -> int | None:
        """The workers that it is to run with where nobody resizes it; None if not known."""
        rigid = self.min_workers == self.max_workers
        return self.max_workers if rigid else self.initial_workers

    def ps_needed(self, workers: int) -> int:
        """Fewest parameter servers for `workers`, (6) for an instance of the model."""
        if self.ps_rule is not None:
            return self.ps_rule.needed(workers)
        return rounding.ceil_number(workers * self.ps_per_worker) if self.ps_per_worker else 0

    def ps_most(self, workers: int) -> int:
        """Most parameter servers for `workers`, (7) for an instance of the model."""
        return workers if self.ps_rule is None else self.ps_rule.most(workers)

    @property
    def ps_line(self) -> tuple[float, int]:
        """(per_worker, fixed) of its rule: n workers need ceil(per_worker n) + fixed."""
        rule = self.ps_rule
        return (self.ps_per_worker, 0) if rule is None else (rule.per_worker, rule.fixed)

    def works_with(self, allocation: Allocation) -> bool:
        """Whether `allocation` is a complete gang: so many workers and parameter servers can work.

        An incomplete gang may hold machines where the site allows that, but does no work.
        """
        workers = allocation.worker_count
        return self.min_workers <= workers <= self.max_workers and self.ps_needed(
            workers
        ) <= allocation.ps_count <= self.ps_most(workers)

    def untold(self, policy: str) -> UntoldJob:
        """The same job as a policy of this name sees it that is not told how much work jobs have.

        Examples
        --------
        >>> PolicyJob("a", 0.0, 60.0, ((0, 1),)).untold("mine").work
        Traceback (most recent call last):
        oasis.model.errors.PolicyError: policy mine [job a]: asked for work of a job without \
declaring told_remaining
        """
        seen = object.__new__(UntoldJob)
        for name in _TOLD_TO_ALL:
            object.__setattr__(seen, name, getattr(self, name))
        object.__setattr__(seen, "policy", policy)
        return seen

    def summary(self) -> tuple[str, Facts]:
        """Name, arrival, numbers of workers and work."""
        return "PolicyJob", [*self._size(), ("work", f"{self.work:.6g}")]

    def _size(self) -> Facts:
        least, most = self.min_workers, self.max_workers
        workers = f"{most}" if least == most else f"{least} to {most}"
        return [("id", self.id), ("arrival", f"{self.arrival:.6g}"), ("workers", workers)]


class UntoldJob(PolicyJob):
    """A job in the view of a policy that does not declare `told_remaining`.

    It has all that a `PolicyJob` has but what says how much work it is: `work`, `source` and
    `curve` raise `PolicyError`.

    Examples
    --------
    A policy that sorts by work, and forgets to say that it needs to know it:

    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> class Shortest(FIFO):
    ...     name = "shortest"
    ...     def key(self, job, workers, view):
    ...         return job.work
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), Shortest())
    Traceback (most recent call last):
    oasis.model.errors.PolicyError: policy shortest [job a]: asked for work of a job without \
declaring told_remaining
    >>> class Told(Shortest):
    ...     told_remaining = True
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), Told()).completions
    [60.0]
    """

    __slots__ = ("policy",)
    policy: str

    @property
    def work(self) -> NoReturn:
        """Raise `PolicyError`."""
        self._refuse("work")

    @property
    def source(self) -> NoReturn:
        """Raise `PolicyError`."""
        self._refuse("source")

    @property
    def curve(self) -> NoReturn:
        """Raise `PolicyError`."""
        self._refuse("curve")

    def summary(self) -> tuple[str, Facts]:
        """Name, arrival and numbers of workers."""
        return "PolicyJob", self._size()

    def __getstate__(self) -> list[Any]:
        return [getattr(self, name) for name in (*_TOLD_TO_ALL, "policy")]

    def __setstate__(self, state: list[Any]) -> None:
        for name, value in zip((*_TOLD_TO_ALL, "policy"), state, strict=True):
            object.__setattr__(self, name, value)

    def _refuse(self, what: str) -> NoReturn:
        detail = f"asked for {what} of a job without declaring told_remaining"
        raise PolicyError(self.policy, detail, job=self.id)


_SAYS_WORK = ("work", "source", "curve")
_TOLD_TO_ALL = tuple(f.name for f in fields(PolicyJob) if f.name not in _SAYS_WORK)
