"""Times of one job in a run, and how often it was changed."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.model.summary import Facts, Summarised, short
from oasis.simulator.costs import Change
from oasis.simulator.progress import Progress

COUNTED = (Change.RESUME, Change.RESIZE, Change.MIGRATE)
NO_CHANGES = (0, 0, 0)  # most jobs of a trace are never changed


@dataclass(frozen=True, slots=True, repr=False)
class JobTimes(Summarised):
    """Times of one job, in units of the workload's time.

    Parameters
    ----------
    job_id : str
        The job.
    arrival : float
        When it came.
    start, end : float or None
        When it first held all it needs and when its work ended; None if it never did.
    waiting, running, overhead : float
        Time without all it needs, at work, and lost to starts, resizes and moves ("scaling"). Of a
        job that did not finish, up to its rejection or to the end of the run (`Outcome.until`).
    refusal : str or None
        Why the policy rejected it.
    stalled : float
        The part of `waiting` in which it held machines, but too few of them to work.
    restarts, resizes, migrations : int
        How often it was resumed after it had been paused or had lost a server, changed its number
        of tasks while it worked, and moved tasks without changing their number.
    lost_work : float
        Work that it did and lost with a server, since its last checkpoint.
    work_done : float
        Work that it did in all, lost work included: of one worker in one unit of time.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, replay, rigid_workload
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)]
    >>> second = replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO()).jobs[1]
    >>> second.waiting, second.running, second.completion
    (55.0, 30.0, 85.0)
    """

    job_id: str
    arrival: float
    start: float | None
    end: float | None
    waiting: float
    running: float
    overhead: float
    refusal: str | None = None
    stalled: float = 0.0
    restarts: int = 0
    resizes: int = 0
    migrations: int = 0
    lost_work: float = 0.0
    work_done: float = 0.0

    def summary(self) -> tuple[str, Facts]:
        """Its arrival, start and end, how long it waited, and why it was rejected."""
        times: Facts = [("job", self.job_id)]
        for name in ("arrival", "start", "end", "waiting"):
            times.append((name, short(getattr(self, name))))
        return "JobTimes", times if self.refusal is None else [*times, ("rejected", self.refusal)]

    @property
    def is_given_up(self) -> bool:
        """Whether it ran but never finished: turned away, left idle, or cut off by the horizon."""
        return self.start is not None and self.end is None

    @property
    def wasted_work(self) -> float:
        """Work done for nothing: all of it if the job never finished, else what was lost."""
        return self.work_done if self.end is None else self.lost_work

    @property
    def completion(self) -> float | None:
        """Time from arrival to the end of the work."""
        return None if self.end is None else self.end - self.arrival

    @classmethod
    def of(cls, progress: Progress) -> JobTimes:
        """The times of `progress`, which has been advanced to the end of the run."""
        job, changes = progress.job, progress.changes
        until = progress.since if progress.end is None else progress.end
        running, overhead = progress.running, progress.overhead
        restarts, resizes, migrations = map(changes.count, COUNTED) if changes else NO_CHANGES
        return cls(
            job_id=job.id,
            arrival=job.arrival,
            start=progress.started,
            end=progress.end,
            waiting=max(0.0, until - job.arrival - running - overhead),
            running=running,
            overhead=overhead,
            refusal=progress.refusal,
            stalled=progress.stalled,
            restarts=restarts,
            resizes=resizes,
            migrations=migrations,
            lost_work=progress.lost,
            work_done=job.work - progress.remaining + progress.lost,
        )
