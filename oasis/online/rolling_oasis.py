"""Algorithm 1 on a horizon that rolls, as operators run it on machines that come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

from oasis.model.cluster import Cluster
from oasis.model.errors import InputError, describe
from oasis.model.job import Job, remaining_job
from oasis.model.utility import later
from oasis.model.validation import integer
from oasis.online import rolling
from oasis.online.answers import Quote, change_between
from oasis.online.commitments import Commitments
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LiveJob
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Site, allocation_in, cluster_of

GIVEN_UP = "given up: it can earn nothing any more"


class RollingOASiS(rolling.LivePlanner):
    """OASiS as a policy on a horizon that rolls, on whatever machines it meets.

    A job keeps the schedule that it was admitted with. Where a server is lost or its work
    turns out to be another, the rest is placed by Algorithm 2 at the prices of the moment.

    Parameters
    ----------
    lookahead : int
        Slots that the plan reaches ahead, the present one included.
    bounds : PriceBounds or callable
        U and L, or what computes them for a cluster.
    patience : int, optional
        Number of slots after the arrival in which a completion counts; it matters only for
        jobs that are placed again. Default: twice `lookahead`.
    keep_admitted : bool
        Whether an admitted job for whose rest nothing pays any more is kept: the rest is
        decided on once more as a job that arrives now, and if that is not admitted either, it
        is brought to its end with what the plan leaves free. Otherwise it is given up.
    end : int, optional
        Completions from this slot on are worth nothing, as in an instance.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> bounds = oasis.PriceBounds.from_instance(instance)
    >>> run = oasis.simulate(instance, oasis.OASiS.rolling(instance.horizon, bounds))
    >>> run.admitted, run.bounds is bounds
    (3, True)
    """

    name = "oasis"
    slotted = True  # what was really done is followed slot by slot

    def __init__(
        self,
        lookahead: int,
        bounds: PriceBounds | Callable[[Cluster], PriceBounds],
        *,
        patience: int | None = None,
        keep_admitted: bool = False,
        end: int | None = None,
    ) -> None:
        if not (isinstance(bounds, PriceBounds) or callable(bounds)):
            expected = "expected oasis.PriceBounds, or what computes them for a cluster"
            raise TypeError(f"bounds: {expected}, got {describe(bounds)}")
        self.lookahead: int = integer(lookahead, "lookahead", minimum=1)
        self.patience, self.keep_admitted, self.end = patience, keep_admitted, end
        self._given = bounds
        if isinstance(bounds, PriceBounds):
            self.bounds = bounds

    def __repr__(self) -> str:
        return f"OASiS.rolling(lookahead={self.lookahead})"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The options that it was made with, as plain data."""
        return {
            "lookahead": self.lookahead,
            "patience": self.patience,
            "end": self.end,
            "keep_admitted": self.keep_admitted,
            "alpha": self._given.alpha if isinstance(self._given, PriceBounds) else None,
        }

    def reset(self, site: Site) -> None:
        """Begin a new run on `site`."""
        if not site.slotted:
            raise InputError("", "policy oasis needs slots")
        self._site, cluster, bounds = site, cluster_of(site), self._given
        self.bounds = bounds if isinstance(bounds, PriceBounds) else bounds(cluster)
        self.commitments = Commitments(cluster, self.lookahead, self.bounds, self.patience)
        self._servers = rolling.servers_of(site)
        self._forget()
        # Late jobs and their forms; None: it has not begun in any.
        self._overdue: dict[int, int | None] = {}

    def decide(self, view: View) -> Plan:
        """Process events, decide on arrivals, and carry out the plan of this slot."""
        plan, now, commitments = Plan(), int(view.now), self.commitments
        self._decided = {}
        commitments.broken.clear()
        # Time first, then completions, losses, returns, corrections of work, and arrivals last:
        # each step may free or take what the next ones count on.
        commitments.advance(now)
        for index in (*self.withdrawn, *(job.index for job in view.finished)):
            commitments.leave(index)
            self._overdue.pop(index, None)
        self.withdrawn = []
        before = dict(commitments.live)
        # all losses first: what is placed again must not meet a server that is lost as well
        dropped = commitments.lose([self._servers[machine] for machine in view.lost])
        dropped += commitments.plan_around(self._calendar)
        # Returned machines count at once, but no job moves back:
        # a schedule that can be kept is kept.
        for machine in view.returned:
            commitments.restore_server(*self._servers[machine])
        for job in view.jobs():
            if job.index in commitments.live:
                work = rolling.work_left(job.in_form(commitments.live[job.index].form), view)
                if rolling.differs(commitments.live[job.index], work):
                    dropped += [] if commitments.revise(job.index, work) else [job.index]
        # Taken before the jobs are tried once more: these have broken
        # their promise, whatever comes of it.
        self.late = set(commitments.broken)
        for job in [job for job in view.jobs() if job.index in dropped]:
            if not self.keep_admitted:
                plan.rejected[job.index] = GIVEN_UP
                continue
            self.late.add(job.index)
            # As a job that arrives now it may wait longer than its first arrival allowed.
            form = before[job.index].form
            remaining = self._remaining_job(job, form, view)
            if commitments.submit(job.index, remaining, form).schedule is None:
                has_begun = view.attained(job) > 0 or view.allocation(job).workers
                self._overdue[job.index] = form if has_begun else None
        for job in view.arrived:  # after those that were admitted before them
            source = rolling.source_of(job, self.name)
            decision = commitments.submit(job.index, self._arriving(source, now))
            self._decided[job.index] = decision
            if decision.schedule is None:
                # On a cluster that begins anew, old jobs arrive once more:
                # they are not turned away a second time.
                if self.keep_admitted and view.was_admitted(job):
                    self._overdue[job.index] = None
                    self.late.add(job.index)
                else:
                    plan.rejected[job.index] = decision.reason or "rejected"
        self._carry_out(view, plan, commitments)
        return plan

    def _remaining_job(self, job: PolicyJob, form: int, view: View) -> Job:
        """Make a job that arrives now from the rest of `job`, which has this `form`."""
        work, reach = rolling.work_left(job.in_form(form), view), rolling.reach_of(self.lookahead)
        source = rolling.source_of(job, self.name).in_form(form)
        return remaining_job(source, work, int(view.now), reach, self.end)

    def _carry_out(self, view: View, plan: Plan, commitments: Commitments) -> None:
        """Add changed allocations to `plan`; overdue jobs use capacity beside planned ones."""
        room = Room(self._site, view.capacity(), view.down())
        overdue = []
        for job in view.jobs():
            if job.index in plan.rejected:
                continue
            if job.index in self._overdue:
                overdue.append(job)
                continue
            live = commitments.live.get(job.index)
            allocation = NOTHING
            if live is not None and live.schedule is not None:
                allocation = allocation_in(live.schedule, commitments.now, self._site)
            # Planned jobs come first; what is overdue takes only
            # what their plans leave in this slot.
            room.hold(job.in_form(allocation.form), allocation)
            if allocation != view.allocation(job):
                plan.changes[job.index] = allocation
        for job in overdue:
            allocation = self._leftover(job, view, room)
            if allocation != view.allocation(job):
                plan.changes[job.index] = allocation

    def _leftover(self, job: PolicyJob, view: View, room: Room) -> Allocation:
        """Place an overdue `job` in `room`, where it runs if possible; `NOTHING` if none."""
        current, form = view.allocation(job), self._overdue[job.index]
        # A job that may stay where it is need not be started again.
        if current.workers and room.hold(job.in_form(current.form), current):
            return current
        for k in range(len(job.in_forms)) if form is None else [form]:
            allocation = _largest(job.in_form(k), view, room)
            if allocation is not None:
                self._overdue[job.index] = k
                return allocation._replace(form=k)
        return NOTHING

    def foresee(self, job: Job, now: int) -> Quote:
        """Return the decision that `job` would get if it arrived in slot `now`; nothing changes."""
        copied = deepcopy(self)
        copied.commitments.advance(now)
        before = copied.planned()
        # A key that no live job has; the copy is thrown away, so it may be given again.
        key = max(copied.live, default=-1) + 1
        decision = copied.commitments.submit(key, self._arriving(job, now))
        return Quote(decision, change_between(before, copied.planned(), job.id))

    @property
    def live(self) -> dict[int, LiveJob]:
        """Admitted jobs by key, in order of arrival."""
        return self.commitments.live

    @property
    def now(self) -> int:
        """The present slot."""
        return self.commitments.now

    def making(self) -> dict[str, Any]:
        """Plain data from which `made` builds the same policy."""
        return {**self.parameters, "bounds": self.bounds.to_dict()}

    @classmethod
    def made(cls, making: Mapping[str, Any]) -> Self:
        """Make a policy of what `making` returned."""
        options = {name: value for name, value in making.items() if name != "alpha"}
        return cls(**{**options, "bounds": PriceBounds.from_dict(making["bounds"])})

    def _arriving(self, job: Job, now: int) -> Job:
        """Return `job` with utility 0 for completions from slot `end` on, if there is an end."""
        if self.end is None:
            return job
        # As in an instance, none must be planned after the last slot.
        slots = max(0, self.end - now)
        return replace(job, utility=later(job.utility, 0, slots + 1, slots))


def _largest(job: PolicyJob, view: View, room: Room) -> Allocation | None:
    """Place the largest gang that fits of a job with one form; None if none fits."""
    most = job.workers_near(rolling.work_left(job, view))
    # The largest gang is done soonest, and no more workers than work is left can be of use.
    for workers in job.workers_down_from(most):
        allocation = BestFit().place(room, job, workers, job.ps_needed(workers))
        if allocation is not None:
            return allocation
    return None
