"""The job as a policy sees it, and what it may hold."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
import numpy.typing as npt

from oasis.model import rounding
from oasis.model.errors import InputError, PolicyError
from oasis.model.forms import NOT_ADMITTED, Requirement
from oasis.model.groups import GROUPS
from oasis.model.job import Job
from oasis.model.rounding import FloatArray
from oasis.model.summary import Facts, Summarised, Unchanging
from oasis.model.utility import Utility
from oasis.model.worker_counts import WorkerCounts

Tasks = tuple[tuple[int, int], ...]


class Allocation(NamedTuple):
    """Workers and parameter servers of one job, machine by machine.

    Parameters
    ----------
    workers, ps : tuple of (machine, count)
        Index of the machine in `Site.machines` and a positive count, each machine once.
    form : int
        The form of the job that runs, as an index of `PolicyJob.in_forms`.

    Examples
    --------
    Three workers on two machines, and a parameter server beside two of them:

    >>> held = Allocation(workers=((0, 2), (1, 1)), ps=((0, 1),))
    >>> held.worker_count, held.ps_count, held.machines
    (3, 1, {0, 1})
    """

    workers: Tasks = ()
    ps: Tasks = ()
    form: int = 0

    def __repr__(self) -> str:
        form = f", form={self.form}" if self.form else ""
        return f"Allocation(workers={self.workers}, ps={self.ps}{form})"

    @property
    def by_group(self) -> tuple[Tasks, Tasks]:
        """The tasks of each group: workers, then parameter servers, as in `GROUPS`."""
        return self.workers, self.ps

    @property
    def worker_count(self) -> int:
        """Workers on all machines."""
        return sum(count for _, count in self.workers)

    @property
    def ps_count(self) -> int:
        """Parameter servers on all machines."""
        return sum(count for _, count in self.ps)

    @property
    def machines(self) -> set[int]:
        """Every machine that hosts a task."""
        return {machine for tasks in self.by_group for machine, _ in tasks}


NOTHING = Allocation()


@dataclass(frozen=True, slots=True, repr=False)
class TrainingCurve(Summarised):
    """An evaluation function, such as a loss, by the share of the work that is done.

    Parameters
    ----------
    points : tuple of (share, value)
        Shares increase from 0 to 1; between two points the value changes linearly.

    Examples
    --------
    >>> TrainingCurve(((0.0, 2.0), (0.5, 0.4), (1.0, 0.2))).at(0.25)
    1.2
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        shares = [share for share, _ in self.points]
        rising = all(before < after for before, after in pairwise(shares))
        if len(shares) < 2 or shares[0] != 0.0 or shares[-1] != 1.0 or not rising:
            raise InputError("points", "expected shares that increase from 0 to 1", shares)
        if not all(math.isfinite(value) for _, value in self.points):
            raise InputError("points", "expected finite values")

    @classmethod
    def exponential(cls, first: float, last: float, pace: float, pieces: int = 32) -> TrainingCurve:
        """A curve that goes from `first` to `last` and slows down.

        Parameters
        ----------
        first, last : float
            Values before the training and after it.
        pace : float
            The distance to the value it tends to falls by ``exp(-pace)`` over the training.
        pieces : int
            Number of linear pieces.
        """
        if not pace > 0 or pieces < 1:
            raise InputError("", f"expected pace > 0 and pieces >= 1, got {pace:g} and {pieces}")
        whole = 1.0 - math.exp(-pace)
        shares = [k / pieces for k in range(pieces + 1)]
        done = [(1.0 - math.exp(-pace * share)) / whole for share in shares]
        points = ((s, first + (last - first) * d) for s, d in zip(shares, done, strict=True))
        return cls(tuple(points))

    def at(self, share: float) -> float:
        """Return the value at this share of the work done; shares outside 0..1 count as 0 or 1."""
        share = min(1.0, max(0.0, share))
        # At share 1 there is no point after: the last piece is meant, at its end.
        after = min(bisect_right(self.points, share, key=lambda p: p[0]), len(self.points) - 1)
        (start, low), (end, high) = self.points[after - 1], self.points[after]
        return low + (high - low) * (share - start) / (end - start)


@dataclass(frozen=True, slots=True)
class LimitedDemand:
    """Amounts that a task demands, with the only machines that admit it; compares by both."""

    # No `Sequence`, though it is one: whether a demand is limited is asked most of all, and with an
    # abstract base that takes three times as long.

    amounts: tuple[tuple[int, int], ...]  # (resource index, grid units)
    machines: frozenset[int]  # those that admit it
    requires: Requirement  # labels that it requires of them
    unmet: str | None = None  # a label that no machine has as it must be; None if some does

    def __len__(self) -> int:
        return len(self.amounts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.amounts)

    def __getitem__(self, place: Any) -> Any:
        return self.amounts[place]


Demand = tuple[tuple[int, int], ...] | LimitedDemand


def admits(demand: Demand, machine: int) -> bool:
    """Return whether `machine` admits tasks of `demand`, regardless of its free capacity."""
    return not isinstance(demand, LimitedDemand) or machine in demand.machines


@dataclass(frozen=True, slots=True)
class Unvalued:
    """Utility of a job that was given none: 1 at every delay, and not part of any total."""

    def __call__(self, delay: npt.ArrayLike) -> FloatArray:
        return np.ones_like(delay, dtype=float)

    def log_value(self, delay: npt.ArrayLike) -> FloatArray:
        return np.zeros_like(delay, dtype=float)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PolicyJob(WorkerCounts, Summarised, Unchanging):
    """The facts about a job that a policy may know after its arrival.

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
        Amounts that one worker and one parameter server reserve exclusively on their machine, in
        grid units (GPUs, memory). A `LimitedDemand` if not all machines admit them.
    min_workers, max_workers : int
        Range of its number of workers while it works.
    ps_per_worker : float
        b_i / B_i: n workers need ceil(n b_i / B_i) parameter servers (6), and at most n (7).
    utility : Utility
        Value by delay, in the time of the run: slots on an instance, seconds in a replay. A job
        of a trace has none of its own (`has_utility`): it is worth 1 at any delay.
    source : Job or None
        The job of the instance.
    index : int
        Its place in the order of arrival, which says nothing about later jobs.
    initial_workers : int or None
        Workers that its owner asked for; None if the choice is left to the policy.
    fixed_ps : int or None
        Parameter servers beside any number of workers, as most Kubernetes jobs have one; None: by
        `ps_per_worker`.
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
    speedup : tuple of float
        Speed with 1, 2, .. workers in units of one, according to its owner or a profile (`speed`);
        empty if unknown. The speed model decides the actual speed.
    forms : tuple of PolicyJob
        The job in each of its forms, if it has several; its other fields are those of one of them.
        A policy sees them if it says that it `knows_forms`; to any other, a job has one.
    may_switch : bool
        Whether a policy that sees its forms may let it go on in another one than it began in. It
        is then restarted, as if it had been paused; else it keeps its form.

    Examples
    --------
    >>> job = PolicyJob("a", 0.0, 60.0, ((0, 1),), min_workers=2, max_workers=4, fixed_ps=1)
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
    fixed_ps: int | None = None
    worker_cpu: float = 0.0
    ps_cpu: float = 0.0
    gradient_mb: float = 0.0
    step_time: float = 0.0
    curve: TrainingCurve | None = None
    owner: str = ""
    speedup: tuple[float, ...] = ()
    forms: tuple[PolicyJob, ...] = ()
    may_switch: bool = False

    def __post_init__(self) -> None:
        if any(form.index != self.index for form in self.forms):
            forms = tuple(replace(form, index=self.index) for form in self.forms)
            object.__setattr__(self, "forms", forms)
        if cast(object, self.utility) is None:  # not given, as in untyped code
            object.__setattr__(self, "utility", Unvalued())
        if self.fixed_ps is not None and (self.fixed_ps < 0 or self.ps_per_worker):
            expected = "expected at least 0 parameter servers, and no ps_per_worker beside them"
            raise InputError("fixed_ps", expected, self.fixed_ps)
        initial = self.initial_workers
        if initial is not None and not self.min_workers <= initial <= self.max_workers:
            expected = f"expected {self.min_workers}..{self.max_workers}"
            raise InputError("initial_workers", f"{expected}", initial)
        if self.gradient_mb and not self.step_time > 0:
            expected = "expected a time > 0 for a job that sends gradients"
            raise InputError("step_time", f"{expected}", self.step_time)
        if self.speedup and not min(self.speedup) > 0:
            raise InputError("speedup", "expected speeds > 0", self.speedup)

    @property
    def in_forms(self) -> tuple[PolicyJob, ...]:
        """The job in each of its forms; the job alone if it has only one."""
        return self.forms or (self,)

    def in_form(self, form: int) -> PolicyJob:
        """Return the job in the form with this index; the job itself if it has only one."""
        return self.forms[form] if self.forms else self

    @property
    def unmet(self) -> str | None:
        """Why no machine admits the tasks of the job, as a text; None if some machine does.

        Of a job of several forms: in any of them; the text is that of the first.
        """
        if self.forms:
            each = [form.unmet for form in self.forms]
            return None if None in each else each[0]
        for group in GROUPS:
            demand, count = group.of(self), self.ps_needed(self.max_workers) if group == "ps" else 1
            if count and isinstance(demand, LimitedDemand) and demand.unmet is not None:
                return f"{NOT_ADMITTED}: {group.unmet(demand.unmet, demand.requires)}"
        return None

    @property
    def worker_counts(self) -> range:
        """Numbers of workers with which the job works, the fewest first."""
        return range(self.min_workers, self.max_workers + 1)

    @property
    def has_utility(self) -> bool:
        """Whether the owner of the job gave it a utility."""
        return not isinstance(self.utility, Unvalued)

    @property
    def fixed_workers(self) -> int | None:
        """Number of workers that the job runs with unless resized; None if unknown."""
        rigid = self.min_workers == self.max_workers
        return self.max_workers if rigid else self.initial_workers

    def speed(self, workers: int) -> float:
        """Return the speed with `workers`, one worker having 1; linear without `speedup`.

        Beyond the end of `speedup` the last speed holds.

        Examples
        --------
        >>> job = PolicyJob("a", 0.0, 60.0, ((0, 1),), max_workers=4, speedup=(1.0, 1.7, 2.1))
        >>> [job.speed(workers) for workers in range(5)]
        [0.0, 1.0, 1.7, 2.1, 2.1]
        """
        if not (workers and self.speedup):
            return float(workers)
        return self.speedup[min(workers, len(self.speedup)) - 1]

    def ps_needed(self, workers: int) -> int:
        """Return the fewest parameter servers that `workers` need; on an instance those of (6)."""
        if self.fixed_ps is not None:
            return self.fixed_ps if workers else 0
        return rounding.ceil_number(workers * self.ps_per_worker) if self.ps_per_worker else 0

    def ps_most(self, workers: int) -> int:
        """Return the most parameter servers that `workers` may have; on an instance by (7)."""
        # (7): no more parameter servers than workers.
        return workers if self.fixed_ps is None else self.ps_needed(workers)

    @property
    def ps_line(self) -> tuple[float, int]:
        """(per_worker, fixed): n workers need ceil(per_worker n) + fixed parameter servers."""
        return self.ps_per_worker, self.fixed_ps or 0

    def works_with(self, allocation: Allocation) -> bool:
        """Return whether `allocation` is a complete gang.

        An incomplete gang may hold machines where the site allows that, but does no work.
        """
        workers = allocation.worker_count
        return self.min_workers <= workers <= self.max_workers and self.ps_needed(
            workers
        ) <= allocation.ps_count <= self.ps_most(workers)

    def untold(self, policy: str) -> UntoldJob:
        """Return the job without its amount of work, for a policy of this name that may not see it.

        Examples
        --------
        >>> PolicyJob("a", 0.0, 60.0, ((0, 1),)).untold("mine").work
        Traceback (most recent call last):
        oasis.model.errors.PolicyError: policy mine [job a]: asked for work of a job without \
declaring told_remaining
        """
        # Without `__init__`, which would ask for the work; what is hidden is not there at all.
        seen = object.__new__(UntoldJob)
        for name in _TOLD_TO_ALL:
            object.__setattr__(seen, name, getattr(self, name))
        object.__setattr__(seen, "forms", tuple(form.untold(policy) for form in self.forms))
        object.__setattr__(seen, "policy", policy)
        return seen

    def summary(self) -> tuple[str, Facts]:
        """Name, arrival, numbers of workers, and the work if that may be seen."""
        least, most = self.min_workers, self.max_workers
        workers = f"{most}" if least == most else f"{least} to {most}"
        work = [] if isinstance(self, UntoldJob) else [("work", f"{self.work:.6g}")]
        facts = [("id", self.id), ("arrival", f"{self.arrival:.6g}"), ("workers", workers)]
        return "PolicyJob", [*facts, *work]


class UntoldJob(PolicyJob):
    """A job in the view of a policy that does not declare `told_remaining`.

    What says how much work it is, `work`, `source` and `curve`, raises `PolicyError`.
    """

    __slots__ = ("policy",)
    policy: str

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _SAYS_WORK:  # which alone are not there
            raise AttributeError(name)
        detail = f"asked for {name} of a job without declaring told_remaining"
        raise PolicyError(self.policy, detail, job=self.id)

    # The default would read every slot, and the hidden ones raise.
    def __getstate__(self) -> list[Any]:
        return [getattr(self, name) for name in (*_TOLD_TO_ALL, "policy")]

    def __setstate__(self, state: list[Any]) -> None:
        for name, value in zip((*_TOLD_TO_ALL, "policy"), state, strict=True):
            object.__setattr__(self, name, value)


_SAYS_WORK = ("work", "source", "curve")
_TOLD_TO_ALL = tuple(f.name for f in fields(PolicyJob) if f.name not in _SAYS_WORK)
