"""Answers of a scheduler with a rolling horizon, as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from oasis.model.decision import Decision
from oasis.model.document import entry, real
from oasis.model.schedule import Schedule

WAITS = "waits: there is no room for it yet"
Planned = Mapping[str, tuple[Schedule | None, float]]  # schedule and planned utility, by job id


@dataclass(frozen=True, slots=True)
class Completion:
    """A job that completed.

    Parameters
    ----------
    job_id : str
        The job.
    slot : int
        The last slot in which it ran.
    utility : float
        Utility that it earned.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> _ = scheduler.advance(4), scheduler.submit(instance.jobs[0])
    >>> done = scheduler.advance(20).completed[0]
    >>> done.job_id, done.slot, round(done.utility, 2)
    ('j0', 8, 28.05)
    """

    job_id: str
    slot: int
    utility: float


@dataclass(frozen=True, slots=True)
class Delay:
    """A job that is now planned to complete later than before.

    Parameters
    ----------
    job_id : str
        The job.
    before, after : int
        Completion slots.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> _ = scheduler.advance(4), scheduler.submit(instance.jobs[0])
    >>> for server in instance.cluster.worker_ids[:6]:  # one worker server is left
    ...     change = scheduler.lose(server)
    >>> change.delayed
    (Delay(job_id='j0', before=8, after=11),)
    """

    job_id: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Change:
    """Effects of one call on other jobs, and on the sum of utilities.

    Parameters
    ----------
    moved : tuple of str
        Jobs with another schedule that completes no later than the one before.
    delayed : tuple of Delay
        Jobs with a schedule that completes later.
    displaced : tuple of str
        Jobs that had a schedule and have none now; they wait for room.
    placed : tuple of str
        Jobs that waited and have a schedule now.
    given_up : tuple of str
        Jobs that left because they can earn nothing any more.
    broken : tuple of str
        Jobs whose promised completion cannot be kept.
    utility : float
        By how much the sum of the utilities of all planned completions changed, that of the job
        in question included.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=6, seed=23)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> for job in instance.jobs_by_arrival():
    ...     _ = scheduler.advance(job.arrival)
    ...     _ = scheduler.submit(job)
    >>> change = scheduler.lose("w0")
    >>> change.utility <= 0
    True
    """

    moved: tuple[str, ...] = ()
    delayed: tuple[Delay, ...] = ()
    displaced: tuple[str, ...] = ()
    placed: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    utility: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Quote:
    """The decision that a job would get now, and what it would change for other jobs.

    Parameters
    ----------
    decision : Decision
        What `LiveScheduler.submit` would answer: whether the job would be admitted, when it would
        complete and where it would run.
    change : Change
        Who would be moved, delayed, displaced or given up for it, and the change in utility.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> job = instance.jobs[0]
    >>> _ = scheduler.advance(job.arrival)
    >>> quote = scheduler.quote(job)
    >>> quote.decision.completion, round(quote.change.utility, 2)
    (8, 28.05)
    """

    decision: Decision
    change: Change

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"decision": self.decision.to_dict(), "change": self.change.to_dict()}


@dataclass(frozen=True, slots=True)
class Progress:
    """Events up to the present slot.

    Parameters
    ----------
    now : int
        The present slot; it has not begun.
    completed : tuple of Completion
        Jobs whose work is done, in order of arrival.
    given_up : tuple of str
        Jobs that left because they can earn nothing any more.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> _ = scheduler.advance(4), scheduler.submit(instance.jobs[0])
    >>> progress = scheduler.advance(9)
    >>> [(done.job_id, done.slot, round(done.utility, 2)) for done in progress.completed]
    [('j0', 8, 28.05)]
    """

    now: int
    completed: tuple[Completion, ...] = ()
    given_up: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the whole life of a live scheduler: all that is left of jobs that ended.

    Parameters
    ----------
    submitted, refused, completed, cancelled, given_up : int
        Jobs; the rest of those submitted are still live.
    given_up_after_start : int
        Jobs that were given up after they had run.
    broken_promises : int
        Promised completions that could not be kept.
    worker_slots_done, worker_slots_wasted : int
        Work of the jobs that ended, and of those that were given up.
    cut_short : int
        Decisions in which a limit in seconds left rounds of the search undone.
    utility : float
        Sum of the utilities of the completed jobs.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> _ = scheduler.advance(4), scheduler.submit(instance.jobs[0]), scheduler.advance(9)
    >>> scheduler.totals.completed, scheduler.totals.worker_slots_done
    (1, 45)
    """

    submitted: int = 0
    refused: int = 0
    completed: int = 0
    cancelled: int = 0
    given_up: int = 0
    given_up_after_start: int = 0
    broken_promises: int = 0
    worker_slots_done: int = 0
    worker_slots_wasted: int = 0
    cut_short: int = 0
    utility: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the inverse of `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Totals:
        """Make totals from what `to_dict` returned."""
        names = (field.name for field in fields(cls))
        totals: dict[str, Any] = {name: entry(data, name, real) for name in names}
        return cls(**totals)


def change_between(
    before: Planned,
    after: Planned,
    own: str | None,
    *,
    completed: Iterable[Completion] = (),
    gone: Iterable[str] = (),
    broken: Iterable[str] = (),
) -> Change:
    """Compare two plans, id -> (schedule, utility); return what changed for all jobs but `own`."""
    changes: dict[str, list[Any]] = {
        name: [] for name in ("moved", "delayed", "displaced", "placed")
    }
    for name, (old, _) in before.items():
        if name == own or name not in after:
            continue
        new = after[name][0]
        if new is old or new == old:
            continue
        if new is None:
            changes["displaced"].append(name)
        elif old is None:
            changes["placed"].append(name)
        elif new.completion > old.completion:
            changes["delayed"].append(Delay(name, old.completion, new.completion))
        else:
            changes["moved"].append(name)
    # fsum is exact before it rounds once: what is the same in both plans cancels to 0.
    gain = math.fsum(
        [utility for _, utility in after.values()]
        + [done.utility for done in completed]
        + [-utility for _, utility in before.values()]
    )
    return Change(
        **{name: tuple(jobs) for name, jobs in changes.items()},
        given_up=tuple(name for name in gone if name != own),
        broken=tuple(broken),
        utility=gain,
    )
