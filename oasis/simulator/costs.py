"""Time that a job loses when its allocation changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from oasis.model.records import Number, check, entry
from oasis.model.validation import LARGEST_COUNT
from oasis.scheduling.job import Allocation, PolicyJob


class GangChange(StrEnum):
    """What a new allocation means to a job; each value is a field of `ChangeCosts`."""

    START = "start"
    RESUME = "resume"
    RESIZE = "resize"
    MIGRATE = "migrate"

    @classmethod
    def of(cls, before: Allocation, after: Allocation, started: bool) -> GangChange:
        """Return the kind of change from `before` to `after`; `started`: the job ran earlier."""
        # What it held before does not matter once it has given that up: it starts or resumes.
        if not before.workers:
            return cls.RESUME if started else cls.START
        same = before.worker_count == after.worker_count and before.ps_count == after.ps_count
        return cls.MIGRATE if same else cls.RESIZE


TIME = Number(maximum=LARGEST_COUNT)  # a clock can still tell it from the next second


@dataclass(frozen=True, slots=True)
class ChangeCosts:
    """Time without work around a change, in units of the workload's time: the same for every job.

    A subclass may go by the job, in `overhead` and in `saving`.

    Parameters
    ----------
    start : float
        Time without work when a job that never ran before starts.
    resume : float
        Time without work when a job that was paused, lost a server or changes its form restarts
        from what was saved.
    resize : float
        Time without work when the number of workers or parameter servers changes.
    migrate : float
        Time without work when the numbers stay and tasks move.
    save : float
        Time to save the state of a job at work before it is paused, resized or moved; the machines
        come free afterwards.
    checkpoint_interval : float or None
        A job that loses a server goes back to its last checkpoint. It writes one whenever it has
        worked for so long, and whenever it saves. None: no work is lost.

    Examples
    --------
    >>> job = PolicyJob("a", 0.0, 1.0, ((0, 1),), max_workers=4)
    >>> one, two = Allocation(((0, 1),)), Allocation(((0, 2),))
    >>> ChangeCosts(start=5.0, resize=40.0).overhead(job, one, two, started=True)
    40.0

    Costs by the size of the job:

    >>> class ByWorkers(ChangeCosts):
    ...     def overhead(self, job, before, after, started):
    ...         return 2.0 * after.worker_count
    >>> ByWorkers().overhead(job, Allocation(), two, started=False)
    4.0
    """

    start: float = entry(TIME, "Start of a job.", 0.0)
    resume: float = entry(TIME, "Restart after a pause, a lost server or a change of form.", 0.0)
    resize: float = entry(TIME, "Change of the number of workers or parameter servers.", 0.0)
    migrate: float = entry(TIME, "Move of tasks to other machines.", 0.0)
    save: float = entry(
        TIME, "Saving of the state before a change; the machines stay busy meanwhile.", 0.0
    )
    checkpoint_interval: float | None = entry(
        Number(above=True, maximum=LARGEST_COUNT),
        "Time at work between two checkpoints; a job that loses a server returns to the last one. "
        "By default no work is lost.",
        None,
    )

    def __post_init__(self) -> None:
        check(self)

    def overhead(
        self, job: PolicyJob, before: Allocation, after: Allocation, started: bool
    ) -> float:
        """Return the time that `job` loses in the change; `after` is not empty, `before` may be."""
        lost: float = getattr(self, GangChange.of(before, after, started))
        return lost

    def saving(self, job: PolicyJob, before: Allocation, after: Allocation) -> float:
        """Return the time for which a running `job` saves its state before it leaves `before`.

        Meanwhile the machines that it leaves stay busy, and it does no work.
        """
        return self.save
