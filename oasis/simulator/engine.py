"""A simulation: one world of the loop, whose jobs do their work at the speed of a model.

At one instant first all completions, then losses and returns of servers, then all arrivals in the
order of the file, then one call of the policy (docs: simulator).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from oasis.driver.loop import INFINITY, Loop, World
from oasis.model.errors import InputError, describe
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.policy import Plan, Policy
from oasis.scheduling.policy_check import check_interface, naming_own_line
from oasis.scheduling.view import View
from oasis.simulator.costs import ChangeCosts, GangChange
from oasis.simulator.observation import Observation, Samples
from oasis.simulator.speed import Load, Speed
from oasis.simulator.state import JobProgress, State
from oasis.simulator.workload import Workload

Settled = Callable[[JobProgress], None]
COMPLETION, LOSS, RETURN, SAVED, HELD = range(5)  # also the order at one instant; then the arrivals


@dataclass(frozen=True, slots=True)
class Outage:
    """Machine `machine` is lost at time `begin` and back at time `end`.

    Examples
    --------
    >>> Outage(3, begin=60.0)
    Outage(machine=3, begin=60.0, end=inf)
    """

    machine: int
    begin: float
    end: float = INFINITY


class Engine(World):
    """One run of a policy on a workload, instant by instant.

    Parameters
    ----------
    workload : Workload
        Machines and jobs.
    policy : Policy
        The policy; it is reset, then asked at every instant.
    speed : Speed
        Speed model; that of `workload` by default.
    costs : ChangeCosts
        Time that changes cost; as `workload` says by default.
    outages : iterable of Outage
        Losses of servers; jobs on a lost server lose all they hold, and of their progress what
        `costs` says.
    on_settled : callable, optional
        Called for each job that finished or was rejected.
    observation : Observation, optional
        Sampling of the evaluation functions of jobs with a training curve; likewise.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, rigid_workload
    >>> engine = Engine(rigid_workload([PlainJob("a", 5.0, 60.0, 4)], 1, 8), FIFO())
    >>> engine.run()
    >>> engine.settled[0].end
    65.0
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        *,
        speed: Speed | None = None,
        costs: ChangeCosts | None = None,
        outages: Iterable[Outage] = (),
        on_settled: Settled | None = None,
        observation: Observation | None = None,
    ) -> None:
        check_interface(policy)
        _expect_models(speed, costs)
        self.workload, self.policy = workload, policy
        self.speed, self.costs = speed or workload.speed, costs or workload.costs
        self._coupled = self.speed.coupled
        self.state = State(workload.site)
        self.timeline: list[tuple[float, tuple[int, ...]]] = []
        # Events by time, those of one instant by kind and then by job or machine: the order is the
        # same in every run. Arrivals are sorted already and stay out of the heap, to keep it small.
        self._heap: list[tuple[float, int, int, int]] = []
        self._arrived = 0  # jobs so far
        for outage in _checked(outages, workload):
            self._heap.append((outage.begin, LOSS, outage.machine, 0))
            if outage.end < INFINITY:
                self._heap.append((outage.end, RETURN, outage.machine, 0))
        first = workload.jobs[0].arrival if workload.jobs else 0.0
        for begin, end, gpus in workload.held:
            if max(begin, first) < end:
                self._heap += [(max(begin, first), HELD, gpus, 0), (end, HELD, -gpus, 0)]
        heapify(self._heap)
        self._on_settled = on_settled
        self.settled: dict[int, JobProgress] = {}  # those that finished or were rejected, by index
        self._observation = observation or workload.observation
        self._before = 0.0  # the last instant at which anything happened
        self.end = INFINITY if workload.site.horizon is None else workload.site.horizon
        with naming_own_line(policy, "reset"):
            policy.reset(workload.site)
        self._loop = Loop(policy, self, self.state)
        # Most workloads have jobs of one form alone: nothing is to be chosen for a policy.
        self._loop.chooses &= any(job.forms for job in workload.jobs)
        self.policy_seconds = self._loop.seconds = array("d")

    def __repr__(self) -> str:
        jobs = f"{len(self.settled)} of {len(self.workload.jobs)} jobs settled"
        return f"<Engine: policy {self.policy.name}, time {self.state.now:.6g}, {jobs}>"

    def run(self) -> None:
        """Run until nothing more will happen or to the horizon, and `finish`."""
        while self._loop.step(self.end):
            pass
        self.finish()

    def step(self, until: float = INFINITY) -> bool:
        """Advance to the next event; False if there is none up to `until` and before the horizon.

        Raises
        ------
        PolicyError
            If the policy asks for what cannot run, or its own code fails; nothing of its answer is
            then carried out, and the run may go on.
        """
        return self._loop.step(min(until, self.end))

    # -- as a world --------------------------------------------------------------------------------

    @property
    def next_time(self) -> float:
        """Time of the next event or arrival; infinity if there is none."""
        time, jobs = self._heap[0][0] if self._heap else INFINITY, self.workload.jobs
        if self._arrived < len(jobs) and jobs[self._arrived].arrival < time:
            return jobs[self._arrived].arrival
        return time

    @property
    def goes_on(self) -> bool:
        """Whether a job is unfinished or yet to arrive."""
        return len(self.settled) < len(self.workload.jobs)

    def pass_to(self, now: float) -> None:
        """Set the clock to `now`; the work of jobs is computed when they are next read."""
        state = self.state
        self._before, state.now = state.now, now
        if state.saving.kept:
            # Before anything happens: the time that passed had the allocations of the last instant.
            state.saving.advance(now, state.free)

    def happen(self, view: View) -> bool:
        """Carry out the events and arrivals due, into `view`; return whether there were any."""
        # Completions before losses before arrivals: work that ends now is not lost with a machine
        # that goes now, and what arrives finds the room of both.
        anything, state, heap, jobs = False, self.state, self._heap, self.workload.jobs
        while heap and heap[0][0] <= view.now:
            _, kind, subject, version = heappop(heap)
            if kind == COMPLETION:
                progress = state.jobs.get(subject)
                # Each change of speed plans a new completion and leaves the old one in
                # the agenda: taking it out would cost a search.
                if progress is None or progress.version != version:
                    continue
                self._complete(progress)
                view.finished.append(progress.seen)
            elif kind == LOSS:
                view.evicted += self._lose(subject)
                view.lost.append(subject)
            elif kind == RETURN:
                state.restore(subject)
                view.returned.append(subject)
            elif kind == HELD:
                if not self.goes_on:  # it does not make the run longer
                    continue
                state.held += subject
            anything = True
        if self.workload.held:
            view.returned += state.reserve()
        while self._arrived < len(jobs) and jobs[self._arrived].arrival <= view.now:
            job = jobs[self._arrived]
            self._arrived += 1
            progress = state.jobs[job.index] = self._enter(job)
            view.arrived.append(progress.seen)
        wake_at = self._loop.wake_at
        if not (anything or view.arrived or (wake_at is not None and wake_at <= view.now)):
            # Only outdated completions were due here.
            state.now = self._before  # a cancelled event does not make the run longer
        return bool(anything or view.arrived)

    def carry_out(self, plan: Plan, view: View) -> bool:
        """Carry out a plan, which has been checked; return whether anything changed."""
        jobs, now = self.state.jobs, self.state.now
        for index, reason in plan.rejected.items():
            progress = jobs[index]
            # A job that is given up may have run: its time and work up to now still count.
            progress.advance(now)
            progress.refusal = str(reason)
            self._leave(progress)
        changed = []
        for index, allocation in plan.changes.items():
            progress = jobs[index]
            before = progress.allocation
            if allocation != before:
                # In another form than the one that it is in.
                switches = bool(
                    progress.seen.forms and (allocation.workers or allocation.ps)
                ) and not (progress.has_form and allocation.form == progress.form)
                progress.advance(now)
                # An incomplete gang did no work, so it has nothing to save.
                worked, saved_at, ready = NOTHING, now, now
                if progress.has_gang:
                    ready = progress.ready
                    # In another form it begins anew from what was saved, as after a pause.
                    worked = NOTHING if switches else before
                    saved_at = self._save(progress, NOTHING if switches else allocation)
                if switches:
                    self.state.hold(progress, NOTHING, self._coupled)
                    progress.be_in(allocation.form)
                self.state.hold(progress, allocation, self._coupled)
                changed.append((progress, worked, saved_at, ready))
        # In a pass of its own: a job may wait for what another
        # saves that comes after it in the plan.
        for progress, worked, saved_at, ready in changed:
            rate = 0.0
            if progress.has_gang:
                self._delay(progress, worked, saved_at, ready)
                if not self._coupled:  # else it follows as the instant ends
                    rate = self.speed.rate(progress.job, progress.allocation, self.state.load)
            self._schedule(progress, rate)
        return bool(changed or plan.rejected)

    def end_instant(self, changed: bool) -> None:
        """Record the use of resources and recompute coupled speeds, if anything `changed`."""
        if changed:
            self.timeline.append((self.state.now, tuple(self.state.used)))
            # Once per instant, after all changes: a speed in
            # between would hold for no time at all.
            for index in self.state.load.take_affected() if self._coupled else ():
                progress = self.state.jobs[index]
                rate = self.speed.rate(progress.job, progress.allocation, self.state.load)
                # An unchanged speed keeps its completion: rounding would
                # move it, and the agenda would grow.
                if rate != progress.rate:
                    progress.advance(self.state.now)
                    self._schedule(progress, rate)

    def finish(self) -> None:
        """Set the end of the run and count the time up to there for jobs that are unfinished.

        That is the horizon. A run without a horizon in which jobs are left although nothing will
        happen any more, such as a deadlock, has no end of its own. It is taken to last, from the
        last event on, as long as these jobs would need one after another, each alone on the
        machines with the most workers that fit: a job that never runs has then waited at least as
        long as in such a schedule.
        """
        state = self.state
        if self.end < INFINITY:
            state.now = self.end
        else:
            # Without this, a policy that leaves jobs waiting for ever
            # would have the shortest run of all.
            state.now += math.fsum([self._time_alone(p) for p in state.jobs.values()])
        state.saving.advance(state.now, state.free)
        state.count_reserved()
        for progress in state.jobs.values():
            progress.advance(state.now)

    def _time_alone(self, progress: JobProgress) -> float:
        """Return the time that the work left of a job would take on an otherwise empty cluster."""
        # Of one that does not fit the empty machines: with its fewest workers, each as fast as one.
        job, remaining = progress.job, progress.remaining_at(self.state.now)
        rate = float(job.worker_counts[0])
        largest = self._loop.empty.most(job)
        if largest is not None:
            load = Load(self.workload.site)
            load.add(job, largest)
            rate = self.speed.rate(job, largest, load) or rate
        return remaining / rate

    def _enter(self, job: PolicyJob) -> JobProgress:
        """Return the state of a job that arrives, with its samples and checkpoint interval."""
        progress = JobProgress(job, self._loop.told(job), self._loop.knows_forms)
        progress.interval = self.costs.checkpoint_interval
        if self._observation is not None and job.curve is not None:
            progress.samples = Samples(job, self._observation)
        return progress

    def _complete(self, progress: JobProgress) -> None:
        """Record the end of a job that has done its work, and free its machines."""
        # In a slotted workload the work may end within a slot whose machines are held to its end.
        end = progress.finish
        progress.advance(end)
        progress.remaining = 0.0
        progress.end = end
        self._leave(progress)

    def _lose(self, machine: int) -> list[PolicyJob]:
        """Take a machine out of service; return the jobs that ran there, now without machines."""
        evicted = []
        for progress in list(self.state.jobs.values()):
            if machine in progress.allocation.machines:
                # Work done up to the loss counts before it is rolled back to the last checkpoint.
                progress.advance(self.state.now)
                progress.roll_back()
                self.state.hold(progress, NOTHING, self._coupled)
                self._schedule(progress, 0.0)
                evicted.append(progress.seen)
        # Last: the jobs gave their room back, and none of it is left on a lost machine.
        self.state.lose(machine)
        return evicted

    def _leave(self, progress: JobProgress) -> None:
        """Remove a job that is complete or rejected from the run, and report it."""
        self.state.hold(progress, NOTHING, self._coupled)
        del self.state.jobs[progress.job.index]
        self.settled[progress.job.index] = progress
        if self._on_settled is not None:
            self._on_settled(progress)

    def _save(self, progress: JobProgress, after: Allocation) -> float:
        """Let a job save its state before it changes to `after`; return when it has saved."""
        now, job, before = self.state.now, progress.job, progress.allocation
        progress.save()  # saving before a change is a checkpoint as good as any
        # One that is still being set up has nothing new to save.
        saving = self.costs.saving(job, before, after) if progress.ready <= now else 0.0
        if not saving:
            return now
        self.state.saving.keep(job, before, after, now, now + saving)
        heappush(self._heap, (now + saving, SAVED, job.index, 0))
        return now + saving

    def _delay(
        self, progress: JobProgress, worked: Allocation, saved_at: float, ready: float
    ) -> None:
        """Delay a changed job by saving, busy machines and overhead, at least to `ready`."""
        now, after = self.state.now, progress.allocation
        started = progress.started is not None
        if started:
            progress.changes += (GangChange.of(worked, after, started),)
        saving = self.state.saving
        if saving.kept:
            free = saving.free_at(progress.job, worked, after, now, self.state.free)
            saved_at = max(saved_at, free)
        lost = self.costs.overhead(progress.job, worked, after, started)
        # A change in the middle of being set up does not make the first one shorter.
        progress.ready = max(ready, saved_at + lost)
        if not started:
            progress.started = now

    def _schedule(self, progress: JobProgress, rate: float) -> None:
        """Set the speed of a job and plan its completion, in a slotted run at the end of a slot."""
        progress.rate = rate
        # Completions planned before are out of date from here on.
        progress.version += 1
        if rate <= 0.0:
            progress.finish = INFINITY
            return
        now = self.state.now
        finish = max(now, progress.ready) + progress.remaining / rate
        free_at = finish
        if self.state.site.slotted:
            # A slot is held to its end even if the work ends sooner;
            # rounding beyond it is not another slot.
            free_at = max(math.ceil(finish - TOLERANCE), math.floor(now) + 1.0)
            finish = min(finish, free_at)
        progress.finish = finish
        heappush(self._heap, (free_at, COMPLETION, progress.job.index, progress.version))


def _expect_models(speed: object, costs: object) -> None:
    """Raise `TypeError` unless `speed` and `costs` are models or None."""
    is_speed = callable(getattr(speed, "rate", None)) and hasattr(speed, "coupled")
    if not (speed is None or is_speed):
        expected = "expected an object with rate and coupled, such as oasis.simulator.Linear()"
        raise TypeError(f"speed: {expected}, got {describe(speed)}")
    if not (costs is None or callable(getattr(costs, "overhead", None))):
        expected = "expected an object with overhead, such as oasis.simulator.ChangeCosts()"
        raise TypeError(f"costs: {expected}, got {describe(costs)}")


def _checked(outages: Iterable[Outage], workload: Workload) -> list[Outage]:
    """Return the outages by time; `InputError` if the machine is unknown or two overlap."""
    last: dict[int, float] = {}
    ordered = sorted(outages, key=lambda outage: outage.begin)
    for outage in ordered:
        if not 0 <= outage.machine < len(workload.site.machines):
            raise InputError("outages", f"there is no machine {outage.machine}")
        # A machine can be lost only while it is there, or one return would end two losses.
        if not last.get(outage.machine, -INFINITY) < outage.begin < outage.end:
            raise InputError(
                "outages", f"those of machine {outage.machine} overlap or end too early"
            )
        times = {outage.begin, outage.end} - {INFINITY}
        if workload.site.slotted and any(time != math.floor(time) for time in times):
            raise InputError("outages", "expected whole slots in a slotted workload")
        last[outage.machine] = outage.end
    return ordered
