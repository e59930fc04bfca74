"""State of a run: allocations and progress of jobs, free capacity, and the view of a policy."""

from __future__ import annotations

from oasis.model.groups import GROUPS
from oasis.scheduling.job import NOTHING, Allocation, Demand, PolicyJob, Tasks
from oasis.scheduling.site import Site
from oasis.scheduling.view import Tracked
from oasis.simulator.costs import GangChange
from oasis.simulator.observation import Samples
from oasis.simulator.speed import Load


class JobProgress(Tracked):
    """An unfinished job of a simulation: allocation, work left, checkpoint, times so far."""

    form = 0
    admitted = False  # in a simulation every job arrives once
    kept_until = 0.0  # a simulation has no minimum run time
    samples: Samples | None = None  # None: it is not observed
    # It writes a checkpoint each `interval` at work, and returns to it when it loses a server.
    interval: float | None = None  # None: no work is ever lost
    has_gang = False  # whether it can work with what it holds, or be set up to; else it waits

    def __init__(
        self, job: PolicyJob, told: PolicyJob | None = None, knows_forms: bool = True
    ) -> None:
        self.show(job, told or job, knows_forms)
        self.allocation = NOTHING
        self.waiting_since: float | None = job.arrival
        # Work left of the form that it is in, and the work that it does in a unit of time.
        self.remaining, self.rate = self.job.work, 0.0
        # Time worked, lost to changes, and for which it held an incomplete gang, as of `since`.
        self.running = self.overhead = self.stalled = 0.0
        self.since = self.ready = job.arrival  # until it is ready it is set up and does no work
        self.lost = 0.0  # work that was done and lost with a server
        self.finish = float("inf")  # when the work will end if nothing changes
        self.version = 0  # tells an outdated completion
        self.started: float | None = None  # the first time it held all it needs
        self.end: float | None = None  # of its work
        self.refusal: str | None = None  # why the policy rejected it
        # Tuples of nothing but numbers: the garbage collector passes over them, which saves time on
        # a trace of thousands of jobs.
        self._history: list[tuple[float, Tasks, Tasks]] = []
        self.changes: tuple[GangChange, ...] = ()  # after its start: resumed, resized, moved
        # Of its last checkpoint: the work left then, and the time worked since.
        self.saved, self.unsaved = self.remaining, 0.0

    @property
    def history(self) -> list[tuple[float, Allocation]]:
        """Every change of the allocation, as (time, allocation from then on)."""
        return [(time, Allocation(workers, ps)) for time, workers, ps in self._history]

    @property
    def has_form(self) -> bool:
        """Whether the job has had machines, so that its form is fixed."""
        return bool(self._history)

    def be_in(self, form: int) -> None:
        """Set the form of a job without machines; the share of work done stays; a checkpoint."""
        before = self.job
        super().be_in(form)
        if not self.has_form:
            self.remaining = self.job.work
        elif before.work:
            ratio = self.job.work / before.work
            self.remaining, self.lost = self.remaining * ratio, self.lost * ratio
        self.save()

    def hold(self, now: float, allocation: Allocation) -> None:
        """Set the allocation from `now` on and add it to the history."""
        self.allocation = allocation
        self._history.append((now, allocation.workers, allocation.ps))

    def advance(self, now: float) -> None:
        """Count the time from `since` to `now` as work, overhead or stall; update the work left."""
        if now == self.since:
            return
        if self.has_gang:
            # The time until `ready` is overhead, the rest is work.
            begin = min(max(self.ready, self.since), now)
            self.overhead += begin - self.since
            self.running += now - begin
            if self.samples is not None and now > begin:
                self.samples.note(self.job, begin, now, self.remaining, self.rate)
            # Rounding may take a little more than is left.
            self.remaining = max(0.0, self.remaining - (now - begin) * self.rate)
            if self.interval is not None:
                self.unsaved += now - begin
                if self.unsaved >= self.interval:
                    # Only the last of several matters; the work since then is at the same rate.
                    self.unsaved %= self.interval
                    self.saved = self.remaining + self.unsaved * self.rate
        elif self.allocation.workers or self.allocation.ps:
            self.stalled += now - self.since
        self.since = now

    def save(self) -> None:
        """Write a checkpoint now."""
        self.saved, self.unsaved = self.remaining, 0.0

    def roll_back(self) -> None:
        """Lose the work since the last checkpoint, if the costs have a checkpoint interval."""
        if self.interval is not None:
            self.lost += self.saved - self.remaining
            self.remaining, self.unsaved = self.saved, 0.0

    def remaining_at(self, now: float) -> float:
        """Return the work left at `now`, at the present speed."""
        begin = max(self.ready, self.since)
        return max(0.0, self.remaining - max(0.0, now - begin) * self.rate)

    def held_at(self, now: float) -> float:
        """Return the time up to `now` in which the job had all tasks it needs, set-up included."""
        extra = now - self.since if self.has_gang else 0.0
        return self.running + self.overhead + extra

    def observed_at(self, now: float) -> list[tuple[float, float]] | None:
        """Return (time, value) samples up to `now`; None if the job is not observed."""
        if self.samples is None:
            return None
        begin = max(self.ready, self.since)
        if self.has_gang and now > begin:
            self.samples.note(self.job, begin, now, self.remaining, self.rate)
        return self.samples.values


class Saving:
    """Capacity that jobs still occupy while they save their state, though plans count it free."""

    # A policy plans as if machines came free at once. A job that was given some of them begins when
    # what is still being saved there fits beside all that is planned there.

    def __init__(self, site: Site) -> None:
        self._site = site
        # By machine: until when how much of it is kept busy.
        self.kept: dict[int, list[tuple[float, list[int]]]] = {}
        self._since = 0.0
        # By resource, the amount times the time for which machines were kept busy by nothing but
        # saving, so far: for worker tasks and parameter servers together.
        self.busy = [0.0] * len(site.resources)

    def keep(
        self, job: PolicyJob, before: Allocation, after: Allocation, now: float, until: float
    ) -> None:
        """Mark as busy until `until` the tasks of `before` that are not in `after`."""
        if not self.kept:
            self._since = now
        for machine, row in self._rows(job, after, before).items():
            self.kept.setdefault(machine, []).append((until, row))
            self.kept[machine].sort()

    def free_at(
        self,
        job: PolicyJob,
        before: Allocation,
        after: Allocation,
        now: float,
        free: list[tuple[int, ...]],
    ) -> float:
        """Return when enough saving has ended for `after` to start; `free`: what `after` leaves."""
        begin = now
        for machine in self._rows(job, before, after):
            kept = self.kept.get(machine, [])
            # Entries come free one after the other, the soonest first:
            # the first moment that is enough counts.
            for k in range(len(kept)):
                amounts = self._sum(kept[k:])
                if all(a <= idle for a, idle in zip(amounts, free[machine], strict=True)):
                    break
                begin = max(begin, kept[k][0])
        return begin

    def advance(self, now: float, free: list[tuple[int, ...]]) -> None:
        """Add to `busy` the use by saving up to `now`, within `free`; forget what has ended."""
        for machine, kept in self.kept.items():
            begin = self._since
            for k, (until, _) in enumerate(kept):
                end = min(until, now)
                if end > begin:
                    for r, amount in enumerate(self._sum(kept[k:])):
                        # What is planned there already counts as use of its
                        # own: no amount is counted twice.
                        self.busy[r] += min(amount, free[machine][r]) * (end - begin)
                    begin = end
        ahead = {k: [one for one in kept if one[0] > now] for k, kept in self.kept.items()}
        self.kept, self._since = {k: kept for k, kept in ahead.items() if kept}, now

    def _sum(self, kept: list[tuple[float, list[int]]]) -> list[int]:
        return [sum(row[r] for _, row in kept) for r in range(len(self._site.resources))]

    def _rows(self, job: PolicyJob, before: Allocation, after: Allocation) -> dict[int, list[int]]:
        """Return, by machine, the amounts of the tasks that `after` adds to `before`."""
        rows: dict[int, list[int]] = {}
        for group in GROUPS:
            counts = dict(group.placed(before))
            for machine, count in group.placed(after):
                if (more := count - counts.get(machine, 0)) > 0:
                    row = rows.setdefault(machine, [0] * len(self._site.resources))
                    for resource, amount in group.of(job):
                        row[resource] += more * amount
        return rows


class State:
    """State of a run at the present instant: jobs, free and used capacity, lost machines."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.now = 0.0
        self.jobs: dict[int, JobProgress] = {}  # unfinished ones by index, in order of arrival
        # Grid units of each machine, by resource; nothing while it is down.
        self.free = [machine.capacity for machine in site.machines]
        self.down: set[int] = set()
        # GPUs of jobs that are not in the run: how many, and those that they have on each machine.
        self.held, self.reserved = 0, [0] * len(site.machines)
        self.reserved_time, self._counted = 0.0, 0.0  # grid units times time, and until when
        # In use by worker tasks, resource by resource, then by parameter servers.
        self.used = [0] * (len(GROUPS) * len(site.resources))
        self.load = Load(site)  # what is on each machine, kept if the speed model asks for it
        self.saving = Saving(site)
        self.closing: frozenset[int] = frozenset()  # no calendar: nothing closes

    def hold(self, progress: JobProgress, allocation: Allocation, coupled: bool) -> None:
        """Set the allocation of a job in all totals; `coupled`: also in `load`."""
        job, before = progress.job, progress.allocation
        if not (allocation.workers or before.workers or allocation.ps or before.ps):
            return
        if before.workers:
            self._shift(before.workers, job.worker, -1, 0)
        if allocation.workers:
            self._shift(allocation.workers, job.worker, 1, 0)
        if before.ps or allocation.ps:
            offset = len(self.site.resources)
            self._shift(before.ps, job.ps, -1, offset)
            self._shift(allocation.ps, job.ps, 1, offset)
        if coupled and progress.has_gang:
            # The old tasks leave the load before the new ones enter:
            # a job never slows itself down twice.
            self.load.remove(job, before)
        progress.hold(self.now, allocation)
        # In the model every allocation is a whole gang, so one look is enough.
        progress.has_gang = (
            job.works_with(allocation) if self.site.partial_gangs else bool(allocation.workers)
        )
        if progress.has_gang:
            progress.waiting_since = None
            if coupled:
                self.load.add(job, allocation)
        elif progress.waiting_since is None:
            progress.waiting_since = self.now

    def _shift(self, tasks: Tasks, demand: Demand, sign: int, offset: int) -> None:
        free, used = self.free, self.used
        for machine, count in tasks:
            # A new tuple per change: a copy of the list that was kept still has the old row.
            row = list(free[machine])
            for resource, amount in demand:
                taken = sign * count * amount
                row[resource] -= taken
                used[offset + resource] += taken
            free[machine] = tuple(row)

    def lose(self, machine: int) -> None:
        """Take a machine without tasks out of service."""
        self.down.add(machine)
        # What was being saved there is lost with it.
        self.saving.kept.pop(machine, None)
        self.free[machine] = (0,) * len(self.site.resources)
        self.count_reserved()
        self.reserved[machine] = 0

    def count_reserved(self) -> None:
        """Add the GPUs reserved by jobs outside the run, times the time since the last call."""
        self.reserved_time += sum(self.reserved) * (self.now - self._counted)
        self._counted = self.now

    def reserve(self) -> list[int]:
        """Reserve free GPUs, or release some, up to `held`; return the machines that changed."""
        self.count_reserved()
        missing, changed = self.held - sum(self.reserved), []
        # The fullest machines are taken first.
        for k in sorted(range(len(self.free)), key=self.free.__getitem__) if missing else ():
            idle, *others = self.free[k]
            taken = min(missing, idle) if missing > 0 else max(missing, -self.reserved[k])
            if taken:
                self.reserved[k] += taken
                self.free[k] = (idle - taken, *others)
                missing -= taken
                changed.append(k)
        return changed

    def restore(self, machine: int) -> None:
        """Put a machine back into service."""
        self.down.discard(machine)
        self.free[machine] = self.site.machines[machine].capacity
