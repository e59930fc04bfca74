"""Records of jobs in a slotted driver, its input and its output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from oasis.model.calendar import EVER_OPEN, Calendar
from oasis.model.errors import InstanceError
from oasis.model.instance_file import job_to_dict
from oasis.model.job import Job
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob

# A job that trains for weeks would otherwise fill memory and checkpoints with its losses.
OBSERVED_MOST = 100


class Submitted(Protocol):
    """A job as its owner wants it: what a world gives to the driver, and may edit later.

    Attributes
    ----------
    uid : str
        Identity, which a later job of the same name does not share.
    generation : int
        A number that changes with every edit.
    job : Job
        The job of the model, arriving in slot 0.
    initial_workers : int or None
        Workers that its owner asked for.
    ps_count : int or None
        Number of parameter servers beside any number of workers; None: by bandwidth.
    resize : {"elastic", "restart"}
        Whether tasks come and go one by one, or all of them are started again.
    on_rejection : {"fail", "retry"}
        Whether it fails or is tried again if the policy does not admit it.
    ends_itself : bool
        Whether it reports its completion itself, whatever work is counted: then the work is an
        estimate, which is extended as often as it is used up.
    """

    @property
    def uid(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def job(self) -> Job: ...
    @property
    def initial_workers(self) -> int | None: ...
    @property
    def ps_count(self) -> int | None: ...
    @property
    def resize(self) -> str: ...
    @property
    def on_rejection(self) -> str: ...
    @property
    def ends_itself(self) -> bool: ...


Spec = TypeVar("Spec", bound=Submitted)
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Entry(Generic[Spec]):
    """A live job: one `Tracked` on the books of a driver in slots.

    Attributes
    ----------
    spec : Submitted
        The job as its owner wants it.
    job : PolicyJob
        As the policy may know it, in the form that it is in.
    arrived : int
        Slot of its arrival; delays are counted from here.
    work : float
        Worker-slots in all.
    left : float
        Worker-slots that `job` had when it arrived at the policy, for the first time or once more.
    done : float
        Worker-slots done.
    allocation : Allocation
        Its allocation in the present slot.
    held : int
        Slots in which it held something.
    waiting_since : int or None
        Since when it holds nothing; None while it holds what it needs.
    admitted : bool
        Whether the policy accepted it.
    given : int or None
        Workers that it held last; None if it never ran.
    settled : Allocation
        Its allocation at the end of the last boundary.
    begun : bool
        Whether it ever held anything.
    resizes, restarts : int
        How often a job that had begun got another gang, and how often no pod of it was kept.
    observed : list of (float, float)
        What its training reported of its loss: slot and value, the latest `OBSERVED_MOST`.
    form : int
        The form that it is in, as an index of `Job.in_forms`.
    forms : tuple of PolicyJob
        The job in each of its forms, if it may still be in any; empty for a job of one form.
    works : tuple of float
        Worker-slots in each of `forms`.
    whole : PolicyJob or None
        What a policy that knows forms sees of a job that has several; None: it sees `job`.
    extensions : int
        How often its work was used up, and more was expected.
    kept_until : float
        The first slot in which it may be changed.
    change_cost : float
        Slots without work that a change of it is expected to take; 0: unknown.
    """

    spec: Spec
    job: PolicyJob
    arrived: int
    work: float
    done: float = 0.0
    left: float = 0.0
    allocation: Allocation = NOTHING
    held: int = 0
    waiting_since: int | None = None
    admitted: bool = False
    given: int | None = None
    settled: Allocation = NOTHING
    begun: bool = False
    resizes: int = 0
    restarts: int = 0
    observed: list[tuple[float, float]] = field(default_factory=list)
    form: int = 0
    forms: tuple[PolicyJob, ...] = ()
    works: tuple[float, ...] = ()
    whole: PolicyJob | None = None
    extensions: int = 0
    kept_until: float = 0.0
    change_cost: float = 0.0

    @property
    def has_form(self) -> bool:
        """Whether the job has held machines, so that its form is fixed."""
        return self.given is not None

    def be_in(self, form: int) -> None:
        """Enter the form with this index, in which nothing has been done yet."""
        self.form, self.job = form, self.forms[form]
        self.work = self.left = self.works[form]

    def hold(self, allocation: Allocation, slot: int, minimum_run: int) -> None:
        """Hold `allocation` from `slot` on; a gang is kept for `minimum_run` slots at least."""
        self.allocation, self.kept_until = allocation, 0.0
        if allocation.workers:
            self.waiting_since, self.given = None, allocation.worker_count
            self.kept_until = float(slot + minimum_run) if minimum_run else 0.0
        elif self.waiting_since is None:
            self.waiting_since = slot

    def settle(self) -> None:
        """Count resizes and restarts at the end of a boundary; the first start is none."""
        if self.allocation != self.settled and self.allocation.workers:
            if self.begun:
                # A task that stays on its machine is not started
                # again; without any, the whole job is.
                kept = set(_tasks(self.settled)) & set(_tasks(self.allocation))
                self.resizes += 1
                self.restarts += self.spec.resize == "restart" or not kept
            self.begun = True
        self.settled = self.allocation

    def extend(self) -> None:
        """Add a tenth of the work, and one slot, to a job that runs beyond its work."""
        more = max(1.0, self.allocation.worker_count, self.done / 10)
        self.work, self.extensions = self.done + more, self.extensions + 1

    def observe(self, slot: int, loss: float) -> None:
        """Note what the training reported up to the beginning of `slot`."""
        self.observed.append((float(slot), loss))
        del self.observed[:-OBSERVED_MOST]

    @property
    def remaining(self) -> float:
        """Worker-slots left; at least one of a job that reports its completion itself."""
        least = min(1.0, self.work) if self.spec.ends_itself else 0.0
        return max(least, self.work - self.done)

    @property
    def has_hardly_any_left(self) -> bool:
        """Whether the remaining work is zero up to rounding."""
        return self.remaining <= TOLERANCE * max(1.0, self.work)

    @property
    def seen(self) -> PolicyJob:
        """The job as the policy sees it."""
        return self.job if self.whole is None else self.whole

    @property
    def complete(self) -> bool:
        """Whether the job holds a complete gang; incomplete ones are never planned."""
        return bool(self.allocation.workers)

    def remaining_at(self, now: float) -> float:
        """Worker-slots left; `now` is the slot up to which they are counted."""
        return self.remaining

    def held_at(self, now: float) -> float:
        """Slots in which the job held machines."""
        return float(self.held)

    def observed_at(self, now: float) -> Sequence[tuple[float, float]]:
        """Return the reported training values; never None, because every job may report."""
        return self.observed

    def copy(self) -> Entry[Spec]:
        """An independent copy."""
        return replace(self, observed=list(self.observed))

    def state(self) -> dict[str, Any]:
        """Plain data; of the spec, everything but the templates of its pods."""
        return {
            "uid": self.spec.uid,
            "generation": self.spec.generation,
            "spec": job_to_dict(self.spec.job),
            "initial": self.spec.initial_workers,
            "ps_count": self.spec.ps_count,
            "index": self.job.index,
            "since": int(self.job.arrival),
            "left": self.left,
            "work": self.work,
            "fixed": self.job.initial_workers,
            "arrived": self.arrived,
            "done": self.done,
            "allocation": [list(map(list, tasks)) for tasks in self.allocation.by_group],
            "held": self.held,
            "waiting_since": self.waiting_since,
            "admitted": self.admitted,
            "given": self.given,
            "resizes": self.resizes,
            "restarts": self.restarts,
            "observed": self.observed,
            # written only where there is a minimum run time
            **({"kept_until": self.kept_until} if self.kept_until else {}),
            # a job of one form is written as it was before there were several
            **({"form": self.form, "alone": not self.forms} if self._has_several else {}),
        }

    @property
    def _has_several(self) -> bool:
        return len(self.spec.job.in_forms) > 1


def _tasks(allocation: Allocation) -> list[tuple[int, int]]:
    """Each worker as its machine and its number there."""
    return [(machine, k) for machine, count in allocation.workers for k in range(count)]


@dataclass(frozen=True, slots=True)
class Facts(Generic[Spec]):
    """Events since the last boundary.

    Parameters
    ----------
    specs : mapping of str to Submitted
        Every unfinished job there is, by uid; those that are new in order of arrival.
    done : mapping of str to float
        Worker-slots done in all, by uid.
    losses : mapping of str to float
        What their training last reported, by uid; those alone that report it.
    ended : frozenset of str
        Uids of jobs that say themselves that they are done.
    down : frozenset of int
        Machines that cannot be used now.
    calendar : Calendar
        Machines that are closed, or partly kept from jobs, in this slot and in later ones.
    costs : mapping of str to float
        Slots without work that a change of a job is expected to take, by uid, where it is known.
    """

    specs: Mapping[str, Spec]
    done: Mapping[str, float] = field(default_factory=dict)
    losses: Mapping[str, float] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    down: frozenset[int] = frozenset()
    calendar: Calendar = EVER_OPEN
    costs: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Decided(Generic[Spec]):
    """Decisions of a boundary, by uid.

    Attributes
    ----------
    admitted : list of str
        Jobs that were accepted now.
    completed : list of str
        Jobs whose work is done.
    rejected : dict of str to str
        Jobs that will not run, and why.
    given_up : dict of str to str
        Jobs that were accepted and will not run any more, and why.
    retried : dict of str to int
        Rejected jobs that are tried again, and in which slot.
    changed : list of str
        Jobs whose allocation has changed.
    late : list of str
        Jobs whose promised completion cannot be kept, those that were given up for it included.
    entries : dict of str to Entry
        Entries of the jobs that completed.
    failed : dict of str to Exception
        Jobs that cannot be planned, and the error that each of them causes. They hold nothing any
        more; their specs are not to be among the facts before they change.
    error : Exception or None
        Why nothing was decided: the policy raised it, and no single job causes it. All jobs hold
        what they held before.
    again_at : int or None
        The slot in which the policy is asked again after such an error.
    """

    admitted: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    retried: dict[str, int] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    entries: dict[str, Entry[Spec]] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
    error: Exception | None = None
    again_at: int | None = None

    def forget(self, uids: Iterable[str]) -> None:
        """Remove all decisions on these jobs."""
        for uid in uids:
            for found in (self.admitted, self.completed, self.changed, self.late):
                if uid in found:
                    found.remove(uid)
            for said in (self.rejected, self.given_up, self.retried, self.entries, self.failed):
                said.pop(uid, None)


def differs(one: Submitted, other: Submitted) -> bool:
    """Return whether an edit, or a change around the job, affects planning."""
    # Cheap, and true at almost every boundary.
    if one is other or (one.generation == other.generation and one.job is other.job):
        return False
    return (one.job, one.initial_workers) != (other.job, other.initial_workers)


def was_edited(spec: Submitted, found: Mapping[str, Any]) -> bool:
    """Return whether a job differs from the state of its entry."""
    return (spec.generation, job_to_dict(spec.job)) != (found["generation"], found["spec"])


def form_begun_in(forms: Sequence[T], form: int, field: str = "forms") -> T:
    """Form in which a job began; an owner who edits `field` may have removed it."""
    if form >= len(forms):
        expected = f"expected more than {form}: the job began in form {form}"
        raise InstanceError(field, expected, len(forms))
    return forms[form]
