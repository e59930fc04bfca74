"""Records of jobs in a slotted driver, its input and its output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.errors import InstanceError, located_at
from oasis.model.job import Job
from oasis.model.records import parse, plain
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.view import Tracked

# A job that trains for weeks would otherwise fill memory and checkpoints with its losses.
OBSERVED_MOST = 100


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """A job as its owner submitted it, given to the driver; a later edit replaces it."""

    uid: str  # which a later job of the same name does not share
    job: Job  # arriving in slot 0
    generation: int = 0  # changes with every edit
    initial_workers: int | None = None  # that its owner asked for
    ps_count: int | None = None  # beside any number of workers; None: by bandwidth
    resize: str = "elastic"  # one by one; "restart": all tasks start again
    on_rejection: str = "fail"  # or "retry"
    ends_itself: bool = False  # it says when it ends: its work is an estimate, extended


Spec = TypeVar("Spec", bound=Submission)
AsItWas = Callable[[Submission, Spec | None], Spec]
T = TypeVar("T")
NO_JOB = PolicyJob("", 0.0, 1.0, ())  # the policy's view of it is never read


@dataclass(slots=True, eq=False)
class Entry(Tracked, Generic[Spec]):
    """What a driver records of a live job: work, allocation, form, times and losses."""

    spec: Spec
    job: PolicyJob  # with the work that was left when it arrived, for the first time or once more
    arrived: int  # delays are counted from here
    work: float  # worker-slots in all
    done: float = 0.0  # of them
    told: PolicyJob = NO_JOB
    seen: PolicyJob = NO_JOB
    allocation: Allocation = NOTHING
    held: int = 0  # slots in which it held something
    waiting_since: float | None = None
    admitted: bool = False
    given: int | None = None  # workers that it held last; None: it never ran
    settled: Allocation = NOTHING  # what it really holds, until the next boundary
    begun: bool = False  # whether it ever held anything
    resizes: int = 0  # how often it got another gang after that,
    restarts: int = 0  # and how often no pod of it was kept
    observed: list[tuple[float, float]] = field(default_factory=list)  # slot and loss, the latest
    form: int = 0
    forms: tuple[PolicyJob, ...] = ()
    extensions: int = 0  # how often its work was used up, and more was expected
    kept_until: float = 0.0  # the first slot in which it may be changed
    early: float = 0.0  # worker-slots done before its first slot, which the policy is not told of

    @property
    def has_form(self) -> bool:
        """Whether the job has, or ever had, machines, so that its form is fixed."""
        return self.given is not None or bool(self.allocation.workers)

    def be_in(self, form: int) -> None:
        """Set the form to that with this index, and the work to that of this form."""
        Tracked.be_in(self, form)
        self.work = self.job.work

    def hold(self, allocation: Allocation, slot: int, minimum_run: int) -> None:
        """Set the allocation from `slot` on; with workers, it stays for `minimum_run` slots."""
        self.allocation, self.kept_until = allocation, 0.0
        if allocation.workers:
            self.waiting_since = None
            self.kept_until = float(slot + minimum_run) if minimum_run else 0.0
        elif self.waiting_since is None:
            self.waiting_since = slot

    def put_in_force(self) -> None:
        """Put the planned allocation into effect; count resizes and restarts, no first start."""
        if self.allocation != self.settled and self.allocation.workers:
            if self.begun:
                # A task that stays on its machine is not started
                # again; without any, the whole job is.
                kept = dict(self.settled.workers).keys() & dict(self.allocation.workers)
                self.resizes += 1
                self.restarts += self.spec.resize == "restart" or not kept
            self.begun, self.given = True, self.allocation.worker_count
        self.settled = self.allocation

    def extend(self) -> None:
        """Set the work to what is done and a tenth, or one slot, more: the larger of the two."""
        more = max(1.0, self.allocation.worker_count, self.done / 10)
        self.work, self.extensions = self.done + more, self.extensions + 1

    def observe(self, slot: int, loss: float) -> None:
        """Record the loss last reported before `slot`; drop the oldest of too many records."""
        self.observed.append((float(slot), loss))
        del self.observed[:-OBSERVED_MOST]

    @property
    def remaining(self) -> float:
        """Worker-slots left; if any are left, at least 1 for a job that reports its completion."""
        left = max(0.0, self.work - self.done)
        return max(left, min(1.0, self.work)) if self.spec.ends_itself and left else left

    @property
    def has_hardly_any_left(self) -> bool:
        """Whether the work left, less that done before the first slot, is 0 up to rounding."""
        return self.remaining - self.early <= TOLERANCE * max(1.0, self.work)

    @property
    def slots_needed(self) -> int:
        """Slots that the work left takes with the present workers, or else the initial ones."""
        count = self.allocation.worker_count
        # The most cautious guess where nothing is known: fewer workers take more slots.
        workers = count or self.job.initial_workers or self.job.worker_counts[0]
        return math.ceil(self.remaining / workers - TOLERANCE)

    def remaining_at(self, now: float) -> float:
        """Return the worker-slots left by the last record; `now` does not matter."""
        return self.remaining

    def held_at(self, now: float) -> float:
        """Return the number of slots in which the job held machines; `now` does not matter."""
        return float(self.held)

    def observed_at(self, now: float) -> Sequence[tuple[float, float]]:
        """Return the job's losses as (slot, loss) pairs, whatever `now` is; never None."""
        return self.observed

    def state(self) -> dict[str, Any]:
        """Return the entry as data for JSON, without the templates of its pods, for `take_over`."""
        # What the policy sees of the job follows from it (`Driver.restored`): to keep that too
        # would take twenty times the room, for a utility that is sampled slot by slot.
        with located_at(f"job {self.spec.job.id}"):
            job = plain(self.spec.job)
        return {
            **{each.name: getattr(self.spec, each.name) for each in fields(Submission)},
            "job": job,
            "index": self.job.index,
            "since": int(self.job.arrival),
            "left": self.job.work,
            "fixed": self.job.initial_workers,
            "alone": not self.forms,
            **{name: getattr(self, name) for name in (*ALLOCATIONS, *STATE)},
        }

    def take_over(self, state: Mapping[str, Any]) -> None:
        """Set the attributes that `state` contains; the caller has set `spec` and `job`."""
        for name in STATE:
            setattr(self, name, state[name])
        for name in ALLOCATIONS:
            *tasks, form = state[name]
            workers, ps = (tuple((machine, count) for machine, count in each) for each in tasks)
            setattr(self, name, Allocation(workers, ps, form))
        self.observed = [(slot, loss) for slot, loss in state["observed"]]


ALLOCATIONS = ("allocation", "settled")
FOLLOWS = ("spec", "job", "told", "seen", "forms")  # from the submission and what is left of it
STATE = [f.name for f in fields(Entry) if f.name not in (*FOLLOWS, *ALLOCATIONS)]


def submission_of(state: Mapping[str, Any]) -> Submission:
    """Rebuild the submission of a job from the saved state of its entry."""
    known = {each.name: state[each.name] for each in fields(Submission)}
    return Submission(**{**known, "job": parse(Job, state["job"])})


@dataclass(frozen=True, slots=True)
class Facts(Generic[Spec]):
    """What a driver is told: all unfinished jobs, and events since it was told the last time."""

    specs: Mapping[str, Spec]  # by arrival; within a slot, the new ones alone
    done: Mapping[str, float] = field(default_factory=dict)  # worker-slots in all
    losses: Mapping[str, float] = field(default_factory=dict)  # that their training last reported
    ended: frozenset[str] = frozenset()  # jobs that say themselves that they are done
    down: frozenset[int] = frozenset()  # machines
    calendar: Calendar = EVER_OPEN  # for this slot and later ones


@dataclass(slots=True)
class SlotOutcome(Generic[Spec]):
    """What a driver decided at a boundary, by uid of the job, and what failed."""

    admitted: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)  # with the reason
    given_up: dict[str, str] = field(default_factory=dict)  # they had been admitted
    retried: dict[str, int] = field(default_factory=dict)  # rejected, and the slot of the next try
    changed: list[str] = field(default_factory=list)  # their allocation
    late: list[str] = field(default_factory=list)  # a promise broken, or given up for it
    entries: dict[str, Entry[Spec]] = field(default_factory=dict)  # of those that were live before
    # Jobs that cannot be planned, and the error that each of them causes. They hold nothing any
    # more; their specs are not to be among the facts before they change.
    failed: dict[str, Exception] = field(default_factory=dict)
    # What the policy raised though no single job causes it: all jobs hold what they held before.
    error: Exception | None = None
    again_at: int | None = None  # the slot in which the policy is asked again after that

    def forget(self, uids: Iterable[str]) -> None:
        """Remove all decisions on the jobs with these uids."""
        for uid in uids:
            for listed in (self.admitted, self.completed, self.changed, self.late):
                if uid in listed:
                    listed.remove(uid)
            for by_uid in (self.rejected, self.given_up, self.retried, self.entries, self.failed):
                by_uid.pop(uid, None)


def differs(one: Submission, other: Submission) -> bool:
    """Return whether two submissions of a job differ in the job or its initial workers."""
    # Quick at almost every boundary: tuples compare the same object by its identity.
    return (one.job, one.initial_workers) != (other.job, other.initial_workers)


def form_begun_in(forms: Sequence[T], form: int, field: str = "forms") -> T:
    """Return the form with index `form`; `InstanceError` at `field` if an edit has removed it."""
    if form >= len(forms):
        expected = f"expected more than {form}: the job began in form {form}"
        raise InstanceError(field, expected, len(forms))
    return forms[form]
