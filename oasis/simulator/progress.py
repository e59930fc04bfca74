"""One job in a run: what it holds, what it has done and what became of it."""

from __future__ import annotations

from oasis.scheduling.allocation import NOTHING, Allocation, Tasks
from oasis.scheduling.job import PolicyJob
from oasis.simulator.costs import Change
from oasis.simulator.observation import Samples


class Checkpoints:
    """What a job can go back to when it loses a server.

    Parameters
    ----------
    interval : float
        Time at work between two checkpoints.
    work : float
        Work left at the beginning.
    """

    __slots__ = ("_interval", "_left", "_unsaved")

    def __init__(self, interval: float, work: float) -> None:
        self._interval = interval
        self._left = work
        self._unsaved = 0.0  # the time worked since the last one

    def advance(self, worked: float, remaining: float, rate: float) -> None:
        """Find the last checkpoint of a time at work at whose end `remaining` is left."""
        self._unsaved += worked
        if self._unsaved >= self._interval:
            self._unsaved %= self._interval
            self._left = remaining + self._unsaved * rate

    def write(self, remaining: float) -> None:
        """Write a checkpoint now."""
        self._left, self._unsaved = remaining, 0.0

    def restore(self) -> float:
        """The work left in the last checkpoint, from which the job goes on."""
        self._unsaved = 0.0
        return self._left


class Progress:
    """One job in the run.

    Attributes
    ----------
    job, seen : PolicyJob
        The job, and the job as the policy sees it.
    allocation : Allocation
        What it holds; `rate` is the work it then does in a unit of time.
    complete : bool
        Whether it can work with that, or be set up to; else it waits for more.
    remaining, running, overhead, stalled : float
        Work left, time worked, time lost to changes and time for which it held an incomplete gang,
        as of `since`.
    ready : float
        Until then it is being set up and does no work.
    finish : float
        When the work will end if nothing changes; `version` tells an outdated completion.
    started, end : float or None
        First time it held all it needs, and when its work ended.
    waiting_since : float or None
        When it came or last ceased to hold all it needs; None while it does.
    refusal : str or None
        Why the policy rejected it.
    changes : tuple of Change
        How it was changed after its start: resumed, resized, moved.
    lost : float
        Work that was done and lost with a server.
    checkpoints : Checkpoints or None
        What it goes back to then; None: it loses no work.
    samples : Samples or None
        What has been seen of its training.
    """

    __slots__ = (
        "_history",
        "allocation",
        "changes",
        "checkpoints",
        "complete",
        "end",
        "finish",
        "job",
        "lost",
        "overhead",
        "rate",
        "ready",
        "refusal",
        "remaining",
        "running",
        "samples",
        "seen",
        "since",
        "stalled",
        "started",
        "version",
        "waiting_since",
    )

    def __init__(
        self,
        job: PolicyJob,
        checkpoints: Checkpoints | None = None,
        samples: Samples | None = None,
        seen: PolicyJob | None = None,
    ) -> None:
        self.job = job
        self.seen = job if seen is None else seen
        self.allocation = NOTHING
        self.complete = False
        self.remaining = job.work
        self.rate = self.running = self.overhead = self.stalled = self.lost = 0.0
        self.since = self.ready = job.arrival
        self.waiting_since: float | None = job.arrival
        self.finish = float("inf")
        self.version = 0
        self.started: float | None = None
        self.end: float | None = None
        self.refusal: str | None = None
        # Tuples of nothing but numbers: the garbage collector passes over them, which saves time on
        # a trace of thousands of jobs.
        self._history: list[tuple[float, Tasks, Tasks]] = []
        self.changes: tuple[Change, ...] = ()
        self.checkpoints, self.samples = checkpoints, samples

    @property
    def history(self) -> list[tuple[float, Allocation]]:
        """Every change of what it holds: when, and what it held from then on."""
        return [(time, Allocation(workers, ps)) for time, workers, ps in self._history]

    def hold(self, now: float, allocation: Allocation) -> None:
        """Hold `allocation` from `now` on."""
        self.allocation = allocation
        self._history.append((now, allocation.workers, allocation.ps))

    def advance(self, now: float) -> None:
        """Account for the time from `since` to `now`."""
        if now == self.since:
            return
        if self.complete:
            begin = min(max(self.ready, self.since), now)
            self.overhead += begin - self.since
            self.running += now - begin
            if self.samples is not None and now > begin:
                self.samples.note(begin, now, self.remaining, self.rate)
            self.remaining = max(0.0, self.remaining - (now - begin) * self.rate)
            if self.checkpoints is not None:
                self.checkpoints.advance(now - begin, self.remaining, self.rate)
        elif self.allocation.workers or self.allocation.ps:
            self.stalled += now - self.since
        self.since = now

    def roll_back(self) -> None:
        """Go back to the last checkpoint, if work can be lost at all."""
        if self.checkpoints is not None:
            left = self.checkpoints.restore()
            self.lost += left - self.remaining
            self.remaining = left

    def remaining_at(self, now: float) -> float:
        """Work left at `now`."""
        begin = max(self.ready, self.since)
        return max(0.0, self.remaining - max(0.0, now - begin) * self.rate)

    def held_at(self, now: float) -> float:
        """Time with all it needs up to `now`."""
        extra = now - self.since if self.complete else 0.0
        return self.running + self.overhead + extra

    def observed_at(self, now: float) -> list[tuple[float, float]] | None:
        """What has been seen of its training up to `now`."""
        if self.samples is None:
            return None
        begin = max(self.ready, self.since)
        if self.complete and now > begin:
            self.samples.note(begin, now, self.remaining, self.rate)
        return self.samples.values()
