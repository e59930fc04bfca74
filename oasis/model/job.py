"""A training job of the paper's section III: its work, its demands and its utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from oasis.model import rounding
from oasis.model.errors import InstanceError
from oasis.model.forms import ANY_MACHINE, REQUIREMENT, SIZE, Form, InForms, Speeds
from oasis.model.records import AMOUNTS, ListOf, RecordOf, Text, Whole, check, entry
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import IntArray
from oasis.model.summary import Facts, Summarised, Unchanging
from oasis.model.utility import UTILITY, Constant, Deadline, Utility, later
from oasis.model.validation import integer, number
from oasis.model.worker_counts import WorkerCounts

GBIT_PER_MB = 8e-3  # 8 Gbit in 1000 MB
MOST_WORK = 1e300  # worker-slots: no horizon is that long, but sums of it are still finite


@dataclass(frozen=True, slots=True, repr=False)
class Job(InForms, WorkerCounts, Summarised, Unchanging):
    """A training job.

    Parameters
    ----------
    id : str
        Unique within an instance.
    arrival : int
        Slot of arrival, counted from 0 (the paper's a_i).
    epochs : int
        Times that the job goes over its data (E_i).
    chunks : int
        Chunks of its data, and the most workers it can use in a slot (N_i).
    minibatches : int
        Mini-batches in a chunk (M_i).
    minibatch_time : float
        Time to train one mini-batch, in slots (tau_i).
    gradient_mb : float
        Size of the gradients: megabytes (10^6 bytes) that a worker sends to the parameter servers,
        and receives again, per mini-batch (e_i).
    worker : ResourceVector or mapping
        What one worker needs of each resource (w_i^r); its ``bandwidth_gbps`` is the paper's b_i.
    ps : ResourceVector or mapping
        What one parameter server needs of each resource (s_i^r); its ``bandwidth_gbps`` is B_i. A
        job whose workers reserve no bandwidth has no parameter servers (for example, its workers
        exchange gradients by all-reduce): ``ps={}``.
    utility : Utility
        What the job is worth, by the slots from its arrival to its completion (f_i).
    min_workers : int
        Fewest workers in a slot in which the job runs; the paper's jobs have 1.
    requires, ps_requires : mapping of str to list of str
        Labels that a machine must have for its workers, and for its parameter servers, each with
        one of these values. The paper's jobs run on any machine.
    forms : tuple of Form
        Ways to run it, each as far as it differs from the fields above. A schedule uses one of them
        from beginning to end. Empty: there is one, as the fields say.
    speeds : Speeds, optional
        A short way to say forms that differ in speed alone; not beside `forms`.
    owner : str, optional
        Who submitted it: a user or a team. The problem does not depend on it; policies and
        constraints of one's own may.

    Attributes
    ----------
    in_forms : tuple of Job
        The job in each of its forms, as jobs that have one; itself if it has no others.

    Raises
    ------
    InstanceError
        With the path of the offending field.

    Examples
    --------
    >>> import oasis
    >>> job = oasis.Job(
    ...     id="j0",
    ...     arrival=0,
    ...     epochs=20,
    ...     chunks=10,
    ...     minibatches=3,
    ...     minibatch_time=0.002,
    ...     gradient_mb=100.0,
    ...     worker={"gpu": 1, "cpu": 4, "bandwidth_gbps": 1.0},
    ...     ps={"cpu": 2, "bandwidth_gbps": 5.0},
    ...     utility=oasis.Sigmoid(priority=50.0, decay=0.5, target=4.0),
    ... )
    >>> job.work(slot_seconds=1200.0)  # worker-slots
    2
    >>> job.shortest_duration(slot_seconds=1200.0)  # slots, with 10 workers in each
    1
    >>> job.ps_needed([1, 5, 10])
    array([1, 1, 2])

    The same on machines of two kinds, of which one is twice as fast:

    >>> from dataclasses import replace
    >>> either = replace(job, speeds=oasis.Speeds("gpu", {"a100": 1.0, "h100": 2.0}))
    >>> [(one.minibatch_time, one.requires["gpu"]) for one in either.in_forms]
    [(0.002, ('a100',)), (0.001, ('h100',))]
    """

    PACED: ClassVar = ("minibatch_time",)
    id: str = entry(Text(), "Name; unique among the jobs.")
    arrival: int = entry(Whole(), "Slot of arrival, counted from 0; less than the horizon (a_i).")
    epochs: int = entry(Whole(1), "Times that the job goes over its data (E_i).")
    chunks: int = entry(Whole(1), "Chunks of data; also the most workers at once (N_i).")
    minibatches: int = entry(Whole(1), "Mini-batches in a chunk (M_i).")
    minibatch_time: float = entry(SIZE, "Time to train one mini-batch, in slots (tau_i).")
    gradient_mb: float = entry(
        SIZE, "Megabytes (10^6 bytes) sent, and again received, for each mini-batch (e_i)."
    )
    worker: Mapping[str, float] = entry(
        AMOUNTS, "What one worker needs (w_i); its bandwidth_gbps is b_i."
    )
    ps: Mapping[str, float] = entry(
        AMOUNTS,
        "What one parameter server needs (s_i); its bandwidth_gbps is B_i. A job whose workers "
        "reserve no bandwidth has no parameter servers and may leave it out.",
        absent={},
    )
    utility: Utility = entry(UTILITY)
    min_workers: int = entry(
        Whole(1), "Least number of workers in a slot in which the job works; at most chunks.", 1
    )
    requires: Mapping[str, Sequence[str]] = entry(
        REQUIREMENT,
        "Machines for its workers: each of these labels with one of these values.",
        ANY_MACHINE,
    )
    ps_requires: Mapping[str, Sequence[str]] = entry(
        REQUIREMENT, "Machines for its parameter servers, in the same way.", ANY_MACHINE
    )
    forms: tuple[Form, ...] = entry(
        ListOf(RecordOf(Form, named="form")),
        "Ways to run the job; what one leaves out is as the job has it. One schedule, one form.",
        (),
    )
    speeds: Speeds | None = entry(
        RecordOf(Speeds, named="speeds"),
        "Forms that differ in speed alone: one for each value of a label; not beside forms.",
        None,
    )
    owner: str | None = entry(Text(), "Who submitted it: a user or a team.", None)
    _in_forms: tuple[Job, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check(self)
        if self._make_forms():
            return
        least = self.min_workers
        if least > self.chunks:
            raise InstanceError("min_workers", f"expected at most chunks ({self.chunks})", least)
        if self.minibatch_time == 0 and self.gradient_mb == 0:
            raise InstanceError(
                "minibatch_time", "expected > 0 for a job without gradients to send"
            )
        if self.bandwidth == 0 and self.gradient_mb > 0:
            expected = "expected > 0 for a job with gradients to send"
            raise InstanceError(f"worker.{BANDWIDTH}", expected, self.bandwidth)
        if self.bandwidth > self.ps_bandwidth:
            expected = f"expected at most that of a parameter server ({self.ps_bandwidth:g})"
            raise InstanceError(f"worker.{BANDWIDTH}", expected, self.bandwidth)

    def summary(self) -> tuple[str, Facts]:
        """Name, arrival, numbers of workers, mini-batches, demand of a worker and utility."""
        steps = f"{self.epochs} x {self.chunks} x {self.minibatches}"
        demand = ", ".join(f"{amount:g} {name}" for name, amount in self.worker.items())
        several = [("forms", f"{len(self.in_forms)}")] if len(self.in_forms) > 1 else []
        requires = [("on", str(self.requires))] if self.requires else []
        return "Job", [
            ("id", self.id),
            ("arrival", f"{self.arrival}"),
            ("workers", f"{self.min_workers} to {self.chunks}"),
            ("mini-batches", steps),
            ("a worker", demand or "demands nothing"),
            *several,
            *requires,
            ("utility", str(getattr(self.utility, "kind", type(self.utility).__name__))),
        ]

    @property
    def worker_counts(self) -> range:
        """Numbers of workers that the job may have in a slot, the fewest first; constraint (3)."""
        return range(self.min_workers, self.chunks + 1)

    @property
    def bandwidth(self) -> float:
        """b_i, Gbit/s reserved by one worker."""
        return self.worker.get(BANDWIDTH, 0.0)

    @property
    def ps_bandwidth(self) -> float:
        """B_i, Gbit/s reserved by one parameter server."""
        return self.ps.get(BANDWIDTH, 0.0)

    @property
    def needs_ps(self) -> bool:
        """Whether constraint (6) requires at least one parameter server."""
        return self.bandwidth > 0

    @property
    def ps_per_worker(self) -> float:
        """b_i / B_i, the part of a parameter server that one worker needs; 0.0 if it needs none."""
        return self.bandwidth / self.ps_bandwidth if self.needs_ps else 0.0

    def minibatch_slots(self, slot_seconds: float) -> float:
        """Return kappa_i = tau_i + 2 e_i / b_i: slots to train, push and pull one mini-batch."""
        if self.gradient_mb == 0:
            return self.minibatch_time
        transfer_seconds = self.gradient_mb * GBIT_PER_MB / self.bandwidth
        return self.minibatch_time + 2 * transfer_seconds / slot_seconds

    def work(self, slot_seconds: float) -> int:
        """Return ceil(W_i) worker-slots, where W_i = E_i N_i M_i kappa_i (constraint (2))."""
        minibatches = float(self.epochs * self.chunks * self.minibatches)
        slots = minibatches * self.minibatch_slots(slot_seconds)
        if not slots <= MOST_WORK:
            expected = f"expected a job of at most {MOST_WORK:g} worker-slots, got {slots:g}"
            raise InstanceError("minibatch_time", expected)
        # A job that takes less than any tolerance still has to run once.
        return max(1, rounding.ceil_number(slots))

    def shortest_duration(self, slot_seconds: float) -> int:
        """Return the slots that the job takes with N_i workers all the time."""
        return -(-self.work(slot_seconds) // self.chunks)

    def ps_needed(self, workers: npt.ArrayLike) -> IntArray:
        """Return ceil(n b_i / B_i) parameter servers for each count n of workers; see (6)."""
        return rounding.ceil(np.asarray(workers) * self.ps_per_worker).astype(np.int64)


def remaining_job(job: Job, remaining: int, now: int, slots: int, end: int | None = None) -> Job:
    """Return a job of `remaining` worker-slots from slot `now`, worth 0 from `end`; see `later`."""
    until = None if end is None else max(0, end - now)
    return replace(
        job,
        arrival=now,
        epochs=1,
        minibatches=1,
        # One mini-batch a chunk: N_i of this length are exactly the worker-slots that remain.
        minibatch_time=remaining / job.chunks,
        gradient_mb=0.0,
        utility=later(job.utility, now - job.arrival, slots, until),
    )


def gpu_job(
    id: str,
    gpus: int,
    hours: float,
    worth: float,
    *,
    slot_seconds: float,
    arrival: int = 0,
    min_gpus: int | None = None,
    deadline_hours: float | None = None,
) -> Job:
    """Make a job from what people say of one: four GPUs for two hours, worth 50.

    Parameters
    ----------
    id : str
        Unique within an instance.
    gpus : int
        How many it uses at most; a worker is one GPU.
    hours : float
        How long it takes with all of them.
    worth : float
        Its utility when it is complete.
    slot_seconds : float
        Length of a slot of the instance that the job is for.
    arrival : int
        Slot of arrival, counted from 0.
    min_gpus : int, optional
        The fewest that it works with; it takes longer then, in proportion. Default: `gpus`.
    deadline_hours : float, optional
        From the beginning of its slot of arrival to the end of the slot in which it completes, a
        slot at least; beyond, it is worth nothing. Default: none.

    Returns
    -------
    Job
        Without parameter servers: its workers exchange gradients among themselves. Its work is
        rounded up to whole worker-slots, as the work of all jobs is.

    Raises
    ------
    InstanceError
        With the name of what is wrong.

    Examples
    --------
    >>> import oasis
    >>> job = oasis.gpu_job("bert", gpus=4, hours=2, worth=50, slot_seconds=1800)
    >>> job.work(1800), job.shortest_duration(1800)  # worker-slots; slots with four workers
    (16, 4)
    >>> oasis.gpu_job("a", 4, 2, 50, slot_seconds=1800, deadline_hours=6).utility
    Deadline(value=50.0, deadline=11.0)
    """
    gpus = integer(gpus, "gpus", minimum=1)
    fewest = gpus if min_gpus is None else integer(min_gpus, "min_gpus", minimum=1, maximum=gpus)
    slots = 3600.0 / number(slot_seconds, "slot_seconds", above=True)
    worth = number(worth, "worth")
    utility: Utility = Constant(worth)
    if deadline_hours is not None:
        # A job that completes in its slot of arrival has a delay of 0, and has taken a slot.
        least = 1.0 / slots
        delay = number(deadline_hours, "deadline_hours", minimum=least) * slots - 1.0
        utility = Deadline(worth, delay)
    return Job(
        id,
        arrival,
        epochs=1,
        chunks=gpus,  # each is one mini-batch as long as the job
        minibatches=1,
        minibatch_time=number(hours, "hours", above=True) * slots,
        gradient_mb=0.0,
        worker={"gpu": 1},
        ps={},
        utility=utility,
        min_workers=fewest,
    )
