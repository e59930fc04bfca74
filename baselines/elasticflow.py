"""ElasticFlow: jobs are admitted by deadline; spare GPUs go where they cost least GPU time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from baselines.counts import Gpus
from baselines.fair_shares import Pools, Shares
from oasis.model import rounding
from oasis.model.errors import InputError
from oasis.model.rounding import TOLERANCE
from oasis.scheduling import (
    NEVER_FITS,
    NOTHING,
    Allocation,
    BasePolicy,
    BestFit,
    EmptyCluster,
    MostIdle,
    OneNode,
    Plan,
    PolicyJob,
    Room,
    Site,
    View,
)

POWERS, ANY = "powers", "any"
TOO_LATE = "its deadline cannot be met beside those of the jobs admitted before it"


@dataclass(frozen=True, slots=True)
class Size:
    """A number of workers that a job may run with, and the GPUs, speed and demand that follow."""

    workers: int
    ps: int
    gpus: float
    speed: float  # work in a unit of time
    load: tuple[tuple[int, int], ...] = ()  # what they take of each of `Pools`, in grid units


@dataclass(frozen=True, slots=True)
class Claim:
    """A job's remaining work, the sizes it may have, and the time left until its deadline."""

    index: int
    sizes: tuple[Size, ...]  # each faster than the ones before it
    remaining: float
    time: float = math.inf  # until its deadline, if it has one


# The size in each slot from now on, to the last in which the job works: its place in
# `Claim.sizes` counted from 1, or 0 for nothing.
Shape = list[int]


class FreeSlots:
    """Free capacity of all machines together, in each slot from the present one on."""

    def __init__(
        self, totals: Mapping[int, int], length: float, first: float | None = None
    ) -> None:
        self._totals, self._length = dict(totals), length
        self._first = length if first is None else first  # until the end of the present slot
        self._free: list[dict[int, int]] = []

    def span(self, slot: int) -> tuple[float, float]:
        """Return the begin of `slot`, counted from now, and its length."""
        if not slot:
            return 0.0, self._first
        return self._first + (slot - 1) * self._length, self._length

    def fits(self, slot: int, size: Size) -> bool:
        """Return whether these tasks fit the total free capacity of `slot`."""
        free = self._free[slot] if slot < len(self._free) else self._totals
        return all(free.get(pool, 0) >= amount for pool, amount in size.load)

    def take(self, slot: int, size: Size, sign: int = 1) -> None:
        """Allocate the demand of `size` in `slot`; with `sign` -1, release it."""
        while len(self._free) <= slot:
            self._free.append(dict(self._totals))
        free = self._free[slot]
        for pool, amount in size.load:
            free[pool] -= sign * amount

    def hold(self, claim: Claim, shape: Shape, sign: int = 1) -> None:
        """Allocate the sizes of `shape` in all its slots; with `sign` -1, release them."""
        for slot, place in enumerate(shape):
            if place:
                self.take(slot, claim.sizes[place - 1], sign)

    def minimum_share(self, claim: Claim, now: int | None = None) -> Shape | None:
        """Return sizes by slot that just meet the deadline, or None; `now`: size in this slot."""
        # Progressive filling: under a limit, the job has in each slot as much as is free, up to it.
        # With `now` given, it has that in the present slot whatever the limit.
        slack = TOLERANCE * max(1.0, claim.remaining)
        for limit in range(1, len(claim.sizes) + 1):
            shape, work, fastest = Shape(), claim.remaining, claim.sizes[limit - 1].speed
            for slot in count():
                begin, length = self.span(slot)
                time = claim.time - begin
                # Even the limit itself in all slots that are left would be too late.
                too_much = work > fastest * time + slack and (slot or now is None)
                if time <= 0 or too_much:
                    break
                place = self._most(slot, claim, limit) if slot or now is None else now
                if not place and slot >= len(self._free):
                    break  # not even the smallest size fits, nor will it later
                shape.append(place)
                if place:
                    work -= claim.sizes[place - 1].speed * min(length, time)
                if work <= slack:
                    return shape
        return None

    def gpu_time(self, claim: Claim, shape: Shape) -> float:
        """Return GPUs times time that the job takes until it is done with the sizes of `shape`."""
        total, work = 0.0, claim.remaining
        for slot, place in enumerate(shape):
            if place:
                size = claim.sizes[place - 1]
                worked = min(self.span(slot)[1], work / size.speed)
                total += size.gpus * worked
                work -= size.speed * worked
        return total

    def _most(self, slot: int, claim: Claim, limit: int) -> int:
        """Return the largest size number up to `limit` that fits in `slot`; 0 if none fits."""
        sizes = claim.sizes
        return next((k for k in range(limit, 0, -1) if self.fits(slot, sizes[k - 1])), 0)


def minimum_shares(claims: Iterable[Claim], slots: FreeSlots) -> tuple[dict[int, Shape], list[int]]:
    """Take minimum satisfactory shares from `slots`; return shapes, and indices of late jobs."""
    shapes, late = {}, []
    # Earliest deadline first: later jobs have more slots to give way into.
    for claim in sorted(claims, key=lambda claim: (rounding.key(claim.time), claim.index)):
        shape = slots.minimum_share(claim)
        if shape is None:
            late.append(claim.index)
        else:
            slots.hold(claim, shape)
            shapes[claim.index] = shape
    return shapes, late


def share_out(
    claims: Iterable[Claim], slots: FreeSlots, shapes: dict[int, Shape]
) -> dict[int, Size | None]:
    """Return the size of each job in the present slot; `shapes` are already taken from `slots`."""
    known = {claim.index: claim for claim in claims}
    having = {index: shape[0] for index, shape in shapes.items()}
    best_effort = [index for index in known if index not in shapes]
    for index in best_effort:  # a little to each job, in order of arrival
        having[index] = int(slots.fits(0, known[index].sizes[0]))
        if having[index]:
            slots.take(0, known[index].sizes[0])
    # Best effort first: jobs with deadlines have their minimum already, and more is a gain only.
    _grow([known[index] for index in best_effort], slots, having, {})
    _grow([known[index] for index in shapes], slots, having, shapes)
    return {
        index: known[index].sizes[place - 1] if place else None for index, place in having.items()
    }


def _grow(
    claims: Sequence[Claim], slots: FreeSlots, having: dict[int, int], shapes: dict[int, Shape]
) -> None:
    """Raise sizes in `having` (and `shapes`) by marginal return, while there are free GPUs."""
    returns = {claim.index: _marginal_return(claim, slots, having, shapes) for claim in claims}
    known = {claim.index: claim for claim in claims}
    while returns:
        index = min(returns, key=lambda k: (-returns[k], rounding.key(known[k].time), k))
        claim, place = known[index], having[index]
        del returns[index]
        if place:
            slots.take(0, claim.sizes[place - 1], -1)
        if place == len(claim.sizes) or not slots.fits(0, claim.sizes[place]):
            if place:
                slots.take(0, claim.sizes[place - 1])
            continue  # what is free only gets less
        slots.take(0, claim.sizes[place])
        if index in shapes:
            # The present slot is already counted above; only what is planned for later changes.
            later = [0, *shapes[index][1:]]
            slots.hold(claim, later, -1)
            shapes[index] = _with_more(claim, slots, place + 1, shapes[index])
            slots.hold(claim, [0, *shapes[index][1:]])
        having[index] = place + 1
        returns[index] = _marginal_return(claim, slots, having, shapes)


def _with_more(claim: Claim, slots: FreeSlots, place: int, shape: Shape) -> Shape:
    """Return the shape with size number `place` in the present slot, and the least needed later."""
    more = slots.minimum_share(claim, place)
    # It does more now, so what was planned for later is enough: only rounding may say otherwise.
    return [place, *shape[1:]] if more is None else more


def _marginal_return(
    claim: Claim, slots: FreeSlots, having: Mapping[int, int], shapes: Mapping[int, Shape]
) -> float:
    """GPU time saved per added GPU if the job has its next larger size in the present slot."""
    place = having[claim.index]
    if place == len(claim.sizes):
        return -math.inf
    more, had = claim.sizes[place], claim.sizes[place - 1].gpus if place else 0.0
    if claim.index in shapes:
        shape = shapes[claim.index]
        slots.hold(claim, [0, *shape[1:]], -1)
        before = slots.gpu_time(claim, shape)
        after = slots.gpu_time(claim, _with_more(claim, slots, place + 1, shape))
        slots.hold(claim, [0, *shape[1:]])
    else:
        first = claim.sizes[max(0, place - 1)]
        before, after = (size.gpus * claim.remaining / size.speed for size in (first, more))
    return rounding.key(rounding.difference(before, after) / (more.gpus - had))


class Compact:
    """Places all tasks on one machine, or on the idlest machines, or wherever they fit."""

    name = "compact"

    def place(self, room: Room, job: PolicyJob, workers: int, ps: int) -> Allocation | None:
        for rule in (OneNode(), MostIdle(), BestFit()):
            allocation = rule.place(room, job, workers, ps)
            if allocation is not None:
                return allocation
        return None


class ElasticFlow(BasePolicy):
    """Jobs are admitted if all deadlines can be met; spare GPUs go where they cost least GPU time.

    Gu et al. (ASPLOS 2023, "ElasticFlow: an elastic serverless training platform for distributed
    deep learning") fix: the throughput T(x) of a job by its number of workers is known, and grows
    less and less; time goes in slots. In order of deadlines each job is given its minimum
    satisfactory share, the least number j with which, having min(j, what is free) in every slot, it
    ends by its deadline (progressive filling); a new job is admitted if then every job meets its
    deadline, else it is dropped. GPUs that are left in the present slot go, step by step, to the
    job with the largest marginal return: the least GPU time in all, if with more now it has its
    minimum share of what is left after this slot; no job gets more than makes it faster. Jobs
    without a deadline (best effort) get what the minimum shares leave. Numbers of workers are
    powers of two, and jobs are placed on subtrees of machines by buddy allocation, with migration,
    so that no room is lost in pieces. (The two algorithms are read from descriptions of the paper.)

    Chosen: T is `PolicyJob.speed`; the deadline is the latest delay at which the job is worth at
    least `worth` of what it is worth at once, less `margin_seconds`, and a job whose worth never
    falls so far is best effort; slots begin at multiples of their length, and at least one slot of
    the site long; the plan is made anew at every event and, while there is a job with a deadline,
    at every slot. GPUs are counted by all resources of all machines together, workers with the
    parameter servers that they need, whichever machines admit them. The marginal return is for each
    GPU more, to 9 digits, and equal ones go to the earlier deadline, then the earlier job. Best
    effort begins with the smallest size for each, in order of arrival, and is served by marginal
    return before jobs with deadlines grow. An admitted job whose deadline cannot be met any more,
    because changes or lost machines cost it time, goes
    on as best effort. If no power of two is among the numbers of workers of a job, it has its
    fewest. Buddy allocation: a job that keeps its size keeps its place; the others are placed in
    order of size, the largest first, each on the fewest machines; if one of them then has to spread
    or to shrink, all are placed so, and move where they must.

    Parameters
    ----------
    slot_minutes : float
        Length of a slot, in minutes.
    worth : float
        Part of its first worth from which on a job counts as late, above 0 and at most 1.
    margin_seconds : float
        Seconds that deadlines are taken earlier, as a reserve for what changes cost.
    sizes : {"powers", "any"}
        Which numbers of workers jobs may have.

    Examples
    --------
    Both deadlines can be met if the second job waits; a third one is turned away:

    >>> from oasis.model.utility import Deadline
    >>> from oasis.simulator import Machine, Workload, replay
    >>> jobs = [
    ...     PolicyJob(name, 0.0, 2400.0, ((0, 1),), max_workers=4, utility=Deadline(1.0, due))
    ...     for name, due in (("a", 600.0), ("b", 1200.0), ("c", 900.0))
    ... ]
    >>> work = Workload.of(Site(("gpu",), (Machine("n0", (4.0,)),)), jobs)
    >>> [(job.job_id, job.end) for job in replay(work, ElasticFlow()).jobs]
    [('a', 600.0), ('b', 1200.0), ('c', None)]
    """

    name = "elasticflow"
    needs = "deadlines"
    told_remaining = True

    def __init__(
        self,
        slot_minutes: float = 10.0,
        worth: float = 0.5,
        margin_seconds: float = 0.0,
        *,
        sizes: str = POWERS,
    ) -> None:
        if not 0 < slot_minutes < math.inf:
            raise InputError("slot_minutes", "expected a finite number > 0", slot_minutes)
        if not 0 < worth <= 1:
            raise InputError("worth", "expected a number above 0 and at most 1", worth)
        if not 0 <= margin_seconds < math.inf:
            raise InputError("margin_seconds", "expected a finite number >= 0", margin_seconds)
        if sizes not in (POWERS, ANY):
            raise InputError("sizes", f"expected {POWERS} or {ANY}", sizes)
        self.slot_minutes, self.worth = slot_minutes, worth
        self.margin_seconds, self.sizes = margin_seconds, sizes

    def reset(self, site: Site) -> None:
        self.site, self._empty = site, EmptyCluster(site, Compact)
        self._pools, self._loads, self._gpus = Pools(site), Shares(site), Gpus(site)
        length = self.slot_minutes * 60.0 / site.unit_seconds
        self._length = max(1.0, math.ceil(length - TOLERANCE)) if site.slotted else length
        self._margin = self.margin_seconds / site.unit_seconds
        self._jobs: dict[int, PolicyJob] = {}
        self._sizes: dict[int, tuple[Size, ...]] = {}
        self._deadlines: dict[int, float] = {}  # infinity: best effort
        self._fewest: dict[tuple[object, ...], int] = {}  # machines that a size needs

    def decide(self, view: View) -> Plan:
        plan = Plan()
        for job in view.finished:
            for known in (self._jobs, self._sizes, self._deadlines):
                known.pop(job.index, None)
        slots, shapes = self._minimum_shares(view)
        for job in view.arrived:
            sizes = self._sizes_of(job)
            if not sizes:
                plan.rejected[job.index] = job.unmet or NEVER_FITS
                continue
            self._jobs[job.index], self._sizes[job.index] = job, sizes
            self._deadlines[job.index] = self._deadline(job)
            if self._deadlines[job.index] < math.inf:
                tried = self._slots(view)
                shares, late = minimum_shares(self._due(view), tried)
                if not late:
                    slots, shapes = tried, shares
                elif view.was_admitted(job):
                    self._deadlines[job.index] = math.inf
                else:
                    plan.rejected[job.index] = TOO_LATE
                    for known in (self._jobs, self._sizes, self._deadlines):
                        del known[job.index]
        sizes_now = share_out(self._claims(view), slots, shapes)
        runs = self._place(view, sizes_now, plan)
        if runs and shapes:
            plan.wake_at = view.now + slots.span(0)[1]
        return plan

    def _minimum_shares(self, view: View) -> tuple[FreeSlots, dict[int, Shape]]:
        """Return free slots and shapes of jobs with deadlines; late jobs become best effort."""
        slots = self._slots(view)
        shapes, late = minimum_shares(self._due(view), slots)
        for index in late:
            self._deadlines[index] = math.inf
        return slots, shapes

    def _slots(self, view: View) -> FreeSlots:
        """Return the capacity of all machines by slot, before any job takes some."""
        totals = self._pools.amounts(view.capacity())
        number = math.floor(view.now / self._length + TOLERANCE)
        return FreeSlots(totals, self._length, (number + 1) * self._length - view.now)

    def _claims(self, view: View) -> Iterator[Claim]:
        """Yield a claim for each admitted job, also for best effort."""
        for index, job in self._jobs.items():
            time = self._deadlines[index] - view.now
            yield Claim(index, self._sizes[index], view.remaining(job), time)

    def _due(self, view: View) -> list[Claim]:
        """Return the claims of jobs with a deadline."""
        return [claim for claim in self._claims(view) if claim.time < math.inf]

    def _deadline(self, job: PolicyJob) -> float:
        """Return the latest end at which `job` is worth enough; infinity if there is none."""
        least = self.worth * float(job.utility(0.0)) * (1 - TOLERANCE)
        low, high = 0.0, 2.0**52
        if not least or float(job.utility(high)) >= least:
            return math.inf
        # Bisection down to neighbouring floats: a utility says no deadline, only what delays are
        # worth.
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if float(job.utility(middle)) >= least else (low, middle)
        if self.site.slotted:  # it counts at the end of the slot in which it ends
            low = math.floor(low) + 1.0
        end = math.inf if self.site.horizon is None else self.site.horizon
        return min(job.arrival + low, end) - self._margin

    def _sizes_of(self, job: PolicyJob) -> tuple[Size, ...]:
        """Return the sizes that `job` may have, each faster than those with fewer workers."""
        # Powers of two, as in the paper: buddy allocation then leaves no fragments.
        wanted = [n for n in job.worker_counts if self.sizes == ANY or not n & (n - 1)]
        sizes: list[Size] = []
        for workers in wanted or job.worker_counts[:1]:
            ps, speed = job.ps_needed(workers), job.speed(workers)
            if not self._empty.holds(job, workers, ps):
                continue
            if not sizes or rounding.difference(speed, sizes[-1].speed) > 0:
                sizes.append(self._size(job, workers, ps, speed))
        if not sizes and (fewest := self._empty.fewest(job)):
            sizes = [self._size(job, *fewest, job.speed(fewest[0]))]
        return tuple(sizes)

    def _size(self, job: PolicyJob, workers: int, ps: int, speed: float) -> Size:
        """Make the size of `job` with these tasks and this speed."""
        usage: dict[int, int] = {}
        self._loads.add(usage, job, workers, ps)
        gpus = rounding.key(self._gpus.of(job, workers))
        return Size(workers, ps, gpus, speed, tuple(usage.items()))

    def _place(self, view: View, sizes: Mapping[int, Size | None], plan: Plan) -> bool:
        """Place all jobs and enter changes in `plan`; return whether any job runs."""
        allocations, loose = self._pack(view, sizes, stay=True)
        # Moving jobs costs time, so all are placed anew only where that packs them better.
        if loose:
            moved, still_loose = self._pack(view, sizes, stay=False)
            allocations = moved if still_loose < loose else allocations
        for index in sizes:
            allocation = allocations.get(index, NOTHING)
            if allocation != view.allocation(self._jobs[index]):
                plan.changes[index] = allocation
        return bool(allocations)

    def _pack(
        self, view: View, sizes: Mapping[int, Size | None], *, stay: bool
    ) -> tuple[dict[int, Allocation], int]:
        """Return allocations, and how many jobs shrink or spread; `stay`: keep places first."""
        room = Room(self.site, view.capacity(), view.down())
        wanted = {index: size for index, size in sizes.items() if size is not None}
        before = {index: view.allocation(self._jobs[index]) for index in wanted}
        keeps = {index for index, size in wanted.items() if _counts(before[index]) == _counts(size)}
        allocations: dict[int, Allocation] = {}
        loose = 0
        for index in sorted(
            wanted, key=lambda k: (stay and k not in keeps, -wanted[k].gpus, k not in keeps, k)
        ):
            job, size = self._jobs[index], wanted[index]
            may_stay = index in keeps and (stay or self._is_tight(job, size, before[index]))
            if may_stay and room.hold(job, before[index]):
                allocation: Allocation | None = before[index]
            else:
                allocation = self._compact(room, job, size, self._sizes[index])
            if allocation is not None:
                allocations[index] = allocation
            loose += allocation is None or not self._is_tight(job, size, allocation)
        return allocations, loose

    def _compact(
        self, room: Room, job: PolicyJob, size: Size, sizes: Sequence[Size]
    ) -> Allocation | None:
        """Place `job` with this size, or the largest smaller one that fits; None if none fits."""
        # Machines may be too fragmented for a size that fits them in total.
        for smaller in reversed(sizes):
            if smaller.workers <= size.workers:
                allocation = Compact().place(room, job, smaller.workers, smaller.ps)
                if allocation is not None:
                    return allocation
        return None

    def _is_tight(self, job: PolicyJob, size: Size, allocation: Allocation) -> bool:
        """Return whether `allocation` has this size, on as few machines as an empty site needs."""
        if _counts(allocation) != _counts(size):
            return False
        key = (job.worker, job.ps, *_counts(size))
        if key not in self._fewest:
            room = Room(self.site, [machine.capacity for machine in self.site.machines])
            best = Compact().place(room, job, *_counts(size))
            self._fewest[key] = len(best.machines) if best else 0
        return len(allocation.machines) <= self._fewest[key]


def _counts(of: Size | Allocation) -> tuple[int, int]:
    """Return (workers, parameter servers)."""
    if isinstance(of, Size):
        return of.workers, of.ps
    return of.worker_count, of.ps_count
