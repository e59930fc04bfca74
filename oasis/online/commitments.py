"""OASiS on a horizon that rolls: a schedule, once fixed, changes only if it cannot be kept."""

from __future__ import annotations

from collections.abc import Iterable

from oasis.model.calendar import Calendar
from oasis.model.cluster import Cluster
from oasis.model.decision import Decision
from oasis.model.errors import InputError
from oasis.model.groups import TaskGroup
from oasis.model.job import Job
from oasis.model.schedule import SERVER, Schedule
from oasis.model.validation import LARGEST_SIZE, integer
from oasis.online.best_schedule import decide
from oasis.online.completions import completions_by_form
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds
from oasis.online.recourse.live_job import LiveJob, crowded_by, grid_of, on_grid
from oasis.online.search import RemainingWork, Search


class Commitments:
    """Algorithm 1 over the next `lookahead` slots.

    An admitted job keeps its form and its schedule, and is promised its completion. If a server of
    its schedule is lost or its work turns out to be another, Algorithm 2 places the rest of the
    work at the prices of the moment. Demands are rounded to multiples of a small power of two, so
    that a cancelled job leaves no trace in the ledger.
    """

    def __init__(
        self, cluster: Cluster, lookahead: int, bounds: PriceBounds, patience: int | None = None
    ) -> None:
        if bounds.worker.log_lower.shape != (len(cluster.resources),):
            raise InputError("bounds", f"expected one for each of {', '.join(cluster.resources)}")
        self.cluster, self.bounds = cluster, bounds
        self.lookahead = integer(lookahead, "lookahead", minimum=1, maximum=LARGEST_SIZE)
        slots = 2 * self.lookahead if patience is None else patience
        self.patience = integer(slots, "patience", minimum=1, maximum=2 * LARGEST_SIZE)
        self.ledger = Ledger.idle(cluster, self.lookahead, bounds)
        self.live: dict[int, LiveJob] = {}
        self.broken: list[int] = []
        self._grid = grid_of(cluster)

    @property
    def now(self) -> int:
        """The present slot, which has not begun."""
        return self.ledger.origin

    def advance(self, now: int) -> None:
        """Count what is planned before slot `now` as done, and move the horizon on."""
        for live in self.live.values():
            live.run_until(now)
        self.ledger.roll(now, self.bounds)

    def submit(self, key: int, job: Job, form: int = 0) -> Decision:
        """Decide on a job that arrives now; its first form has index `form` (Alg. 1, l. 5-12)."""
        floor, seconds = self.bounds.min_utility_fraction, self.cluster.slot_seconds
        # Completions count up to where the plan reaches now, which moves on, not up to a fixed T.
        ends = completions_by_form(job, self.cluster, self.ledger.end, floor)
        # The search sees the demands that the ledger will be charged
        # with, so that what fits also fits there.
        forms = [
            Search(
                on_grid(one, self._grid),
                self.ledger,
                remaining=RemainingWork(self.now, one.work(seconds), of_one),
                form=form + k,
            )
            for k, (one, of_one) in enumerate(zip(job.in_forms, ends, strict=True))
        ]
        decision = decide(forms)
        if decision.schedule is not None:
            end, chosen = job.arrival + self.patience, decision.schedule.form
            one = job.in_form(chosen)
            live = LiveJob.of(key, one, self.cluster, end, self._grid, floor, chosen)
            live.schedule, live.promise = decision.schedule, decision.completion
            self.live[key] = live
            self.ledger.commit(live.job, decision.schedule, self.bounds)
        return decision

    def leave(self, key: int) -> None:
        """Remove a job that is complete or was cancelled; unknown keys are ignored."""
        live = self.live.pop(key, None)
        if live is not None:
            self._release(live)

    def revise(self, key: int, work: int) -> bool:
        """Set a job's remaining work and replan it; False if no schedule pays any more."""
        live = self.live[key]
        before = live.schedule
        # The job's own commitments must not compete with its new
        # schedule, nor raise the prices it pays.
        self._release(live)
        fewer = work < live.remaining
        live.remaining = work
        schedule = self._find(live)
        # A plan for more work does less work, too. It can come back as it was:
        # nothing else was committed since it was released.
        if fewer and before is not None and (schedule is None or schedule[0] > before.completion):
            self._commit(live, before)
            return True
        return self._place(live, schedule)

    def lose(self, servers: Iterable[tuple[TaskGroup, int]]) -> list[int]:
        """Remove servers, replan their jobs; return keys of jobs for which no schedule pays."""
        hit: dict[int, LiveJob] = {}
        for group, index in servers:
            for key, live in self.live.items():
                if _uses(live, group, index):
                    hit[key] = live
                    # Also its part on servers that are left goes: what is left
                    # of the job is searched for as a whole.
                    self._release(live)
            group.of(self.ledger).lose(index)
        # Placed in order of arrival, and only when all servers are
        # out: no schedule may meet one of them.
        return [key for key, live in hit.items() if not self._place(live, self._find(live))]

    def plan_around(self, calendar: Calendar) -> list[int]:
        """Close machines as `calendar` says; return keys of jobs that cannot be replanned."""
        if calendar == self.ledger.calendar:
            return []
        hit = crowded_by(calendar, self.ledger, self.live.values())
        for live in hit:
            self._release(live)
        return [live.key for live in hit if not self._place(live, self._find(live))]

    def restore_server(self, group: TaskGroup, index: int) -> None:
        """Let later schedules use a server again that was lost."""
        capacity = group.capacity(self.cluster)[index]
        group.of(self.ledger).set_capacity(index, capacity, group.of(self.bounds))

    def _release(self, live: LiveJob) -> None:
        if live.schedule is not None:
            self.ledger.release(live.job, live.schedule, self.bounds)
            live.schedule = None

    def _commit(self, live: LiveJob, schedule: Schedule) -> None:
        live.schedule = schedule
        self.ledger.commit(live.job, schedule, self.bounds)

    def _find(self, live: LiveJob) -> tuple[int, Schedule] | None:
        """Return (completion, best schedule) of a job's remaining work; None if none pays."""
        until = min(live.last, self.ledger.end - 1)
        if live.earliest(self.now) > until:
            return None
        search = Search(
            live.job, self.ledger, remaining=live.remaining_work(self.now, until), form=live.form
        )
        split = search.best()
        if split is None:
            return None
        schedule = search.schedule(split)
        return schedule.completion, schedule

    def _place(self, live: LiveJob, schedule: tuple[int, Schedule] | None) -> bool:
        """Commit the schedule found for `live`; without one, remove the job and return False."""
        if live.promise is not None and (schedule is None or schedule[0] > live.promise):
            # A broken promise is told once: there is nothing left to break.
            self.broken.append(live.key)
            live.promise = None
        if schedule is None:
            del self.live[live.key]
            return False
        self._commit(live, schedule[1])
        return True


def _uses(live: LiveJob, group: TaskGroup, server: int) -> bool:
    """Whether a job is planned on this server of the group."""
    if live.schedule is None:
        return False
    return bool((group.placed(live.schedule)[:, SERVER] == server).any())
