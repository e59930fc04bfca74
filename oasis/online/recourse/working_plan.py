"""The plan of all live jobs on one ledger: jobs enter and leave it, and changes can be undone."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import Cluster
from oasis.model.groups import GROUPS, TaskGroup
from oasis.model.resources import as_array
from oasis.model.rounding import IntArray
from oasis.model.schedule import SERVER, Schedule
from oasis.online.dp import Split
from oasis.online.ledger import Ledger
from oasis.online.prices import PriceBounds, PriceFunction
from oasis.online.recourse.live_job import CurrentAllocation, LiveJob
from oasis.online.recourse.params import RecourseParams
from oasis.online.search import Search

NEXT_TO_NOTHING = 1e-100  # below the rounding error of any utility


class WorkingPlan:
    """Schedules of live jobs from the present slot on, and the ledger that they are charged to.

    Until `set_prices`, prices are next to nothing: jobs complete and work as early as they can.
    """

    def __init__(
        self,
        cluster: Cluster,
        horizon: int,
        params: RecourseParams,
        rolling: bool = False,
    ) -> None:
        self.cluster, self.params = cluster, params
        self.rolling = rolling
        self.now = 0
        self.live: dict[int, LiveJob] = {}
        self.insertions = 0
        self.bounds: PriceBounds | None = None
        nothing = np.zeros(len(cluster.resources))
        # Prices are set below: the ledger is made with none.
        free = PriceFunction(nothing - np.inf, nothing, np.nan)
        self.ledger = Ledger.idle(cluster, horizon, PriceBounds(free, free, True, 0.0))
        prefer_early(self.ledger, params.growth)
        self._journal: list[tuple[LiveJob, Schedule | None]] = []

    # -- prices ------------------------------------------------------------------------------------

    def set_prices(self, bounds: PriceBounds) -> None:
        """Price resources by `bounds` from now on, instead of negligible prices."""
        self.bounds = bounds
        for group in GROUPS:
            group.of(self.ledger).reprice(group.of(bounds))

    def _lift(self, live: LiveJob) -> float:
        """Return more than any schedule of a promised job can cost; 0 for other jobs."""
        if self.bounds is None or live.promise is None:
            return 0.0
        lifts = []
        for form in live.in_forms:
            rent = 0.0
            for group in GROUPS:
                demand = as_array(group.of(form.job), self.cluster.resources)
                rent += float(demand @ group.of(self.bounds).upper)
            # U for every worker-slot, each of which may need a minimum of
            # workers; twice that covers rounding.
            lifts.append(2.0 * rent * form.remaining * form.job.worker_counts[0])
        return max(lifts)  # the same in every form, so that it favours none

    # -- value -------------------------------------------------------------------------------------

    @property
    def standing(self) -> tuple[int, float]:
        """Number of planned jobs with promises, and value of the plan; plans compare by it."""
        # A pair, compared from the left: no utility makes up for a broken promise.
        promised = sum(live.promise is not None for live in self.planned())
        return promised, rounding.key(self.value)

    @property
    def value(self) -> float:
        """Sum of the values of all planned completions."""
        # fsum does not depend on the order: the same jobs give the
        # same value, whatever happened between.
        return math.fsum(live.value for live in self.live.values())

    def worth(self, live: LiveJob, completion: int) -> float:
        """Return what completing `live` in slot `completion` counts when plans are compared."""
        # Giving up a job that has run wastes its work; the bonus is the price of that.
        bonus = 1.0 + self.params.started_bonus if live.started else 1.0
        # A plan far ahead may still be displaced by jobs to come, so it counts for less.
        ahead = completion - live.begin(self.now)
        return live.utility_at(completion) * bonus * self.params.discount**ahead

    def density(self, live: LiveJob) -> float:
        """Worth of the earliest possible completion, per worker-slot and share of a worker."""
        densities = []
        for form in live.in_forms:
            first = form.earliest(self.now)
            # A gang holds a whole minimum even for its last worker-slot.
            work = max(form.remaining, form.job.worker_counts[0])
            worth = self.worth(live, first) if first <= live.deadline else 0.0
            densities.append(worth / (work * form.size))
        return rounding.key(max(densities))

    def planned(self) -> list[LiveJob]:
        """Jobs that have a schedule, in order of arrival."""
        return [live for live in self.live.values() if live.schedule is not None]

    def movable(self) -> list[LiveJob]:
        """Jobs that have a schedule that may change now, in order of arrival."""
        return [live for live in self.planned() if not live.is_kept(self.now)]

    def unplanned(self) -> list[LiveJob]:
        """Jobs with work left but without a schedule, in order of arrival."""
        return [live for live in self.live.values() if live.schedule is None and live.remaining]

    def using(self, group: TaskGroup, server: int) -> Iterator[LiveJob]:
        """Yield the jobs that are planned on a server of the group."""
        for live in self.planned():
            assert live.schedule is not None
            if (group.placed(live.schedule)[:, SERVER] == server).any():
                yield live

    def room_on(
        self, live: LiveJob, group: TaskGroup, slots: IntArray, servers: IntArray, most: int
    ) -> IntArray:
        """Tasks of a job, up to `most`, that fit on each of n servers in each slot; (q, n)."""
        demand = as_array(group.of(live.job), self.cluster.resources)
        rows = slots - self.ledger.origin
        return group.of(self.ledger).fits_on(demand, rows, servers, most)

    # -- changes -----------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Count everything planned before slot `now` as done; this cannot be undone."""
        self._journal.clear()
        self.now = now
        # A fixed horizon keeps its past slots: nothing is planned there any more.
        if self.rolling:
            self.ledger.roll(now, self.bounds)
        for live in self.live.values():
            live.run_until(now)
            self._value(live)

    def insert(self, live: LiveJob) -> bool:
        """Plan `live` by Algorithm 2 in free capacity; return False if no completion pays."""
        schedule = self._find(live)
        if schedule is None:
            return False
        self._set(live, schedule)
        self._journal.append((live, None))
        return True

    def put(self, live: LiveJob, schedule: Schedule) -> None:
        """Plan `live`, which has no schedule, by `schedule`, which must fit."""
        self._set(live, schedule)
        self._journal.append((live, None))

    def remove(self, live: LiveJob) -> None:
        """Take `live` out of the plan."""
        self._journal.append((live, live.schedule))
        self._set(live, None)

    @property
    def mark(self) -> int:
        """A point to which `undo` can return, until the next `advance` or `keep`."""
        return len(self._journal)

    def keep(self) -> None:
        """Forget how to undo changes; earlier marks become invalid."""
        self._journal.clear()

    def undo(self, mark: int) -> None:
        """Take back all changes since `mark`."""
        while len(self._journal) > mark:
            # Last change first. Demands lie on a grid, so that the
            # ledger comes back to the last bit.
            live, schedule = self._journal.pop()
            self._set(live, schedule)

    def _set(self, live: LiveJob, schedule: Schedule | None) -> None:
        """Replace the schedule of `live` in the ledger and update its value; None: no schedule."""
        if live.schedule is not None:
            # The old schedule goes before the new one comes, or the job would compete with itself.
            self.ledger.release(live.job, live.schedule, self.bounds)
        live.schedule = schedule
        if schedule is not None:
            live.be_in(schedule.form)
            self.ledger.commit(live.job, schedule, self.bounds)
        self._value(live)

    def _value(self, live: LiveJob) -> None:
        live.value = self.worth(live, live.schedule.completion) if live.schedule else 0.0

    def _find(self, live: LiveJob) -> Schedule | None:
        """Return a schedule for `live` in free capacity, in its place if it must stay, or None."""
        current = live.current
        if current is not None and live.is_kept(self.now):
            staying = self._staying(live, current)
            if staying is not None:
                return staying
        return self._search(live, self.now)

    def _staying(self, live: LiveJob, current: CurrentAllocation) -> Schedule | None:
        """Return a schedule that keeps the current allocation as long as it must; else None."""
        if live.begin(self.now) > self.now or live.remaining < 1:
            return None
        count, last = current.count, min(live.deadline, self.ledger.end - 1)
        slots = np.arange(self.now, min(self.now - (-live.remaining // count), last + 1))
        slots = slots[slots < current.until]
        fits = np.ones(len(slots), dtype=bool)
        for group in GROUPS:
            servers, tasks = group.placed(current).T
            if len(servers):
                room = self.room_on(live, group, slots, servers, int(tasks.max()))
                fits &= (room >= tasks).all(axis=1)
        slots = slots if fits.all() else slots[: fits.argmin()]
        if not len(slots):
            return None
        parts = [current.rows(slots)]
        work = live.remaining - count * len(slots)
        if work > 0:
            later = self._search(live, int(slots[-1]) + 1, work)
            if later is None:
                return None
            parts.append([later.workers, later.ps])
        workers, ps = (np.concatenate(rows) for rows in zip(*parts, strict=True))
        return Schedule(live.job.id, workers, ps, live.form)

    def _search(self, live: LiveJob, now: int, work: int | None = None) -> Schedule | None:
        """Return the best schedule from slot `now` on, for `work` or all that is left, or None."""
        # A promised job has its utility lifted above any cost, so that no price makes it unplanned.
        last, lift = min(live.deadline, self.ledger.end - 1), self._lift(live)
        best: tuple[Search, Split] | None = None
        for form in live.in_forms:
            # A job that would be late even alone needs no search.
            remaining = form.remaining_work(now, last, lift, work)
            if remaining.ends.first > last:
                continue
            search = Search(form.job, self.ledger, remaining=remaining, form=form.form)
            split = search.best() if self.bounds is not None else self._earliest(search, last)
            self.insertions += 1
            if split is None:
                continue
            if self.bounds is None:
                # Nothing but the completion counts: a later form must complete before this one.
                best, last = (search, split), search.start + split.completion - 1
            elif best is None or _rank(split) > _rank(best[1]):
                best = search, split
        return best[0].schedule(best[1]) if best is not None else None

    def _earliest(self, search: Search, last: int) -> Split | None:
        """Return the first split to complete, which is best at negligible prices; else None."""
        soonest = search.soonest()
        if soonest is None:
            return None
        # Most jobs fit soon after the first slot that is possible: room and costs
        # beyond are not looked at before they are needed.
        width = self.params.first_window
        while True:
            until = min(soonest + width, last)
            split = search.earliest(until)
            if split is not None or until == last:
                return split
            width *= self.params.widening


def _rank(split: Split) -> tuple[float, int]:
    """Return a sort key of splits from one slot on: payoff, then the earlier completion."""
    return rounding.key(split.payoff), -split.completion


def prefer_early(ledger: Ledger, growth: float) -> None:
    """Set prices too low to affect any utility: lower in earlier slots, equal for all servers."""
    slots = NEXT_TO_NOTHING * (1.0 + growth * np.arange(ledger.horizon))
    for group in GROUPS:
        total = group.capacity(ledger.cluster).sum(axis=0)
        # In shares of the group, so that no resource counts for more because of its unit.
        share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        group.of(ledger).price[:] = share[:, None, None] * slots[:, None]
        group.of(ledger).is_even = True
