"""A scheduler that a service runs day and night: calls in, decisions out, nothing forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.job import Job
from oasis.model.schedule import Schedule
from oasis.model.validation import integer
from oasis.online.live.answers import Change, Progress, Quote
from oasis.online.live.core import restricted
from oasis.online.live.irrevocable import OasisCore
from oasis.online.live.lasting import LastingCalls
from oasis.online.live.with_recourse import RecourseCore
from oasis.online.prices import PriceBounds
from oasis.online.recourse.admission import DEFAULT_FLOOR
from oasis.online.recourse.futures import DEFAULT_SAMPLES
from oasis.online.recourse.learned import LearnedPrices, learned_from
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.rules import RuleName


class LiveScheduler(LastingCalls):
    """Recourse, or OASiS, on a horizon that rolls: it runs for years in bounded memory.

    Slots are absolute, counted from 0. The present slot is `now`; it has not begun, and whatever
    is decided may use it. The plan reaches `lookahead` slots ahead. Jobs that ended leave nothing
    but counts (`totals`).

    Use `LiveScheduler.recourse` or `LiveScheduler.oasis` to make one.

    Parameters
    ----------
    core : Core
        What plans.

    Attributes
    ----------
    totals : Totals
        Counts over the whole life.
    calls : int
        Calls accepted over the whole life.
    last_change : Change
        What the last accepted call did to the other jobs.
    notes : tuple of str
        What was found on reopening a journal, such as a torn last line.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> scheduler = oasis.LiveScheduler.recourse(instance.cluster, lookahead=10)
    >>> for job in instance.jobs_by_arrival():
    ...     progress = scheduler.advance(job.arrival)
    ...     decision = scheduler.submit(job)
    ...     print(decision.job_id, decision.completion)
    j0 8
    j1 10
    j2 9
    >>> sorted(scheduler.plan(slots=1))  # who runs in slot 6
    ['j0', 'j2']
    """

    def __repr__(self) -> str:
        kind = "oasis" if isinstance(self.core, OasisCore) else "recourse"
        totals = self.totals
        counts = f"{len(self.jobs)} jobs live, {totals.submitted} submitted"
        return f"<LiveScheduler: {kind}, slot {self.now}, {counts}, {totals.completed} completed>"

    # -- making one --------------------------------------------------------------------------------

    @classmethod
    def recourse(
        cls,
        cluster: Cluster,
        lookahead: int,
        commitment: Commitment = "none",
        *,
        patience: int | None = None,
        params: RecourseParams | None = None,
        seed: int = 0,
        seconds: float | None = None,
        admission: RuleName | None = None,
        prices: LearnedPrices | str | None = None,
        bounds: PriceBounds | None = None,
        samples: int = DEFAULT_SAMPLES,
        min_utility_fraction: float = DEFAULT_FLOOR,
    ) -> Self:
        """Plan all live jobs again at every call that changes what there is to plan.

        Parameters
        ----------
        cluster : Cluster
            Servers and the length of a slot.
        lookahead : int
            Slots that the plan reaches ahead, the present one included.
        commitment, params, seed, seconds
            As for `oasis.Recourse`. A journal repeats decisions made under a limit in `seconds`.
        patience : int, optional
            A completion counts within so many slots from the arrival on; a job that cannot make
            it any more is given up. Default: twice `lookahead`.
        admission, prices, bounds, samples, min_utility_fraction
            Who is admitted under commitment on arrival, as for `oasis.Recourse`, where the last
            is called ``admission_floor``. Slot 0 is the first slot of a day.
        """
        core = RecourseCore(
            cluster,
            lookahead,
            commitment,
            patience=patience,
            params=params,
            seed=seed,
            seconds=seconds,
            admission=admission,
            prices=learned_from(prices, "prices"),
            bounds=bounds,
            samples=samples,
            min_utility_fraction=min_utility_fraction,
        )
        return cls(core)

    @classmethod
    def oasis(
        cls,
        cluster: Cluster,
        lookahead: int,
        bounds: PriceBounds,
        *,
        patience: int | None = None,
    ) -> Self:
        """OASiS on the next `lookahead` slots: a job keeps the schedule that it was admitted with.

        Where a server is lost or a job's work is revised, the rest of the work is placed by
        Algorithm 2 at the prices of the moment. Promised completions that this breaks, and jobs
        for which nothing pays then, are named in the answer.

        Parameters
        ----------
        cluster, lookahead, patience
            As for `recourse`; patience matters only for jobs that are placed again.
        bounds : PriceBounds
            U and L, estimated from past jobs with the horizon `lookahead`.
        """
        return cls(OasisCore(cluster, lookahead, bounds, patience=patience))

    # -- looking -----------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        """The present slot, which has not begun."""
        return self.core.now

    @property
    def cluster(self) -> Cluster:
        """The servers; schedules name them by index (`Cluster.worker_ids`, `Cluster.ps_ids`)."""
        return self.core.cluster

    @property
    def jobs(self) -> tuple[str, ...]:
        """Live jobs, planned or waiting, in order of arrival."""
        return tuple(live.job.id for live in self.core.live.values())

    def plan(self, slots: int | None = None) -> dict[str, Schedule]:
        """What runs where from the present slot on, by job.

        Parameters
        ----------
        slots : int, optional
            Look only so many slots ahead; jobs that run in none of them are left out.
        """
        planned = {
            live.job.id: live.schedule
            for live in self.core.live.values()
            if live.schedule is not None
        }
        if slots is None:
            return planned
        end = self.now + integer(slots, "slots", minimum=1)
        cut = {job_id: restricted(schedule, end) for job_id, schedule in planned.items()}
        return {job_id: schedule for job_id, schedule in cut.items() if schedule is not None}

    def promised(self, job_id: str) -> int | None:
        """The slot by which a live job must complete; None if nothing was promised."""
        return self.core.find(job_id).promise

    def quote(self, job: Job) -> Quote:
        """How `submit` would decide on `job` now, and what it would do to others.

        Nothing changes. With a limit in seconds `submit` may still decide otherwise.
        """
        self._check_usable()
        copy = LiveScheduler(self.core.copy())
        return Quote(copy.submit(job), copy.last_change)

    # -- calls -------------------------------------------------------------------------------------

    def submit(self, job: Job) -> Decision:
        """Decide on `job`, which arrives in the present slot.

        An admitted job without a completion waits: there is no room for it yet. With recourse,
        completion and schedule are what is planned now, and the payoff is the planned utility.

        Raises
        ------
        InstanceError
            If the job does not fit the cluster's resources, arrives in another slot, or has the
            id of a live job.
        """
        answer = self._call("submit", job=job)
        assert isinstance(answer, Decision)
        return answer

    def advance(self, now: int) -> Progress:
        """Let everything happen that is planned before slot `now`."""
        answer = self._call("advance", now=now)
        assert isinstance(answer, Progress)
        return answer

    def cancel(self, job_id: str) -> Change:
        """Take back a live job that is no longer wanted."""
        return self._change("cancel", job_id=job_id)

    def finish(self, job_id: str) -> Change:
        """End a live job that is done before its time.

        It completes in the present slot if it is planned there, otherwise in the one before.
        """
        return self._change("finish", job_id=job_id)

    def revise(self, job_id: str, remaining_work: int) -> Change:
        """Correct the work that a live job has left to `remaining_work` worker-slots."""
        return self._change("revise", job_id=job_id, remaining_work=remaining_work)

    def revise_all(self, remaining_work: Mapping[str, int]) -> Change:
        """Correct the work left of several live jobs at once, by id; recourse plans once for all.

        Raises
        ------
        OasisError
            If it is no mapping, one of the jobs is not live, or its work is not a whole number of
            at least 1; nothing is changed then.
        """
        return self._change("revise_all", remaining_work=remaining_work)

    def lose(self, server: str) -> Change:
        """Do without the server with that id from the present slot on: it is lost."""
        return self._change("lose", server=server)

    def restore(self, server: str) -> Change:
        """Use a lost server again from the present slot on: it is back."""
        return self._change("restore", server=server)

    def _change(self, call: str, **arguments: Any) -> Change:
        answer = self._call(call, **arguments)
        assert isinstance(answer, Change)
        return answer
