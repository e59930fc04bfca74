"""The event loop, which calls the policy once per instant at which something happened.

At one instant first all completions, then losses and returns of servers, then all arrivals in the
order of the file, then one call of the policy (docs: simulator).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from time import perf_counter

from oasis.driver.books import BooksView, check_plan, choose_forms
from oasis.model import rounding
from oasis.model.errors import InputError, PolicyError, describe
from oasis.scheduling.book import EmptyCluster
from oasis.scheduling.capabilities import Planner, wants
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.policy import Plan, Policy
from oasis.scheduling.policy_check import check_policy, naming_own_line, own_error
from oasis.simulator.costs import ChangeCosts, Costs
from oasis.simulator.events import COMPLETION, INFINITY, LOSS, RETURN, TIMER, Agenda, Outage
from oasis.simulator.execution import Execution, Settled
from oasis.simulator.observation import Observation, Samples
from oasis.simulator.outcome import MachineUse
from oasis.simulator.speed import Linear, Load, Speed
from oasis.simulator.state import Checkpoints, JobProgress, State
from oasis.simulator.workload import Workload

# Far more calls than waiting for something can take; a policy that
# waits for nothing is still found out soon.
MOST_IDLE_CALLS = 100_000  # of a policy's timer, one after the other, while nothing else can happen


class Engine:
    """One run of a policy on a workload, instant by instant.

    Parameters
    ----------
    workload : Workload
        Machines and jobs.
    policy : Policy
        The policy; it is reset, then asked at every instant.
    speed : Speed
        Speed model; linear in workers by default.
    costs : Costs
        Time that changes cost; nothing by default.
    outages : iterable of Outage
        Losses of servers; jobs on a lost server lose all they hold, and of their progress what
        `costs` says.
    on_settled : callable, optional
        Called for each job that finished or was rejected.
    observation : Observation, optional
        Sampling of the evaluation functions of jobs with a training curve; none by default.
    record_machines : bool
        Whether to keep what each machine was used for over time, `machine_use`.

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
        costs: Costs | None = None,
        outages: Iterable[Outage] = (),
        on_settled: Settled | None = None,
        observation: Observation | None = None,
        record_machines: bool = False,
    ) -> None:
        check_policy(policy)
        _expect_models(speed, costs)
        self.workload, self.policy = workload, policy
        self.speed: Speed = speed or Linear()
        self.costs: Costs = costs or ChangeCosts()
        self.state = State(workload.site)
        self.timeline: list[tuple[float, tuple[int, ...]]] = []
        self.machine_use = MachineUse(self.state) if record_machines else None
        self.policy_seconds = array("d")
        self._agenda = Agenda(workload.jobs, _checked(outages, workload))
        self._do = Execution(self.state, self._agenda, self.speed, self.costs, on_settled)
        self._observation = observation
        # Most runs look at no training and lose no work: their jobs are made without both.
        self._plain = observation is None and self.costs.checkpoint_interval is None
        self._told_remaining = wants(policy, "told_remaining")
        self._knows_forms = wants(policy, "knows_forms")
        # Most workloads have jobs of one form alone: nothing is to be chosen for a policy.
        self._chooses = not self._knows_forms and any(job.forms for job in workload.jobs)
        self._once = isinstance(policy, Planner)
        self._empty = EmptyCluster(workload.site)
        self._timer = self._idle_calls = 0
        self._slotted = workload.site.slotted
        self._end = INFINITY if workload.site.horizon is None else workload.site.horizon
        with naming_own_line(policy, "reset"):
            policy.reset(workload.site)

    def __repr__(self) -> str:
        jobs = f"{len(self.settled)} of {len(self.workload.jobs)} jobs settled"
        return f"<Engine: policy {self.policy.name}, time {self.state.now:.6g}, {jobs}>"

    @property
    def settled(self) -> dict[int, JobProgress]:
        """Jobs that finished or were rejected, by index."""
        return self._do.settled

    def run(self) -> None:
        """Continue to the end."""
        while self.step():
            pass
        self.finish()

    def step(self) -> bool:
        """Go to the next instant; False if there is none before the horizon.

        Raises
        ------
        PolicyError
            If the policy asks for what cannot run, or its own code fails; nothing of its answer is
            then carried out, and the run may go on.
        """
        now = self._agenda.next_time
        if now == INFINITY or now > self._end:
            return False
        state = self.state
        before, state.now = state.now, now
        if state.saving.kept:
            # Before anything happens: the time that passed had the allocations of the last instant.
            state.saving.advance(now, state.free)
        view = BooksView(state, self.policy.name, self._told_remaining)
        # Completions before losses before arrivals: work that ends now is not lost with a machine
        # that goes now, and what arrives finds the room of both.
        woken, anything = self._happen(view)
        for job in self._agenda.take_arrivals(now):
            progress = state.jobs[job.index] = self._enter(job)
            view.arrived.append(progress.seen)
        if not (anything or view.arrived):
            # Only outdated completions or timers were due here.
            state.now = before  # a cancelled event does not make the run longer
            return True
        changed = bool(view.finished or view.evicted)
        try:
            # At the horizon nothing can be started any more, so the policy is not asked.
            if now < self._end and (woken or changed or view.arrived or view.lost or view.returned):
                changed |= self._ask_in_forms(view) if self._chooses else self._ask(view)
        finally:
            if changed:
                self.timeline.append((now, tuple(state.used)))
                # Once per instant, after all changes: a speed in
                # between would hold for no time at all.
                if self.speed.coupled:
                    self._do.set_speeds()
            if self.machine_use is not None:
                self.machine_use.note()
        return True

    def finish(self) -> None:
        """Account for the time up to the end of the run of the jobs that are still there.

        That is the horizon. A run without a horizon in which jobs are left although nothing will
        happen any more, such as a deadlock, has no end of its own. It is taken to last, from the
        last event on, as long as these jobs would need one after another, each alone on the
        machines with the most workers that fit: a job that never runs has then waited at least as
        long as in such a schedule.
        """
        state = self.state
        if self._end < INFINITY:
            state.now = self._end
        else:
            # Without this, a policy that leaves jobs waiting for ever
            # would have the shortest run of all.
            state.now += math.fsum([self._time_alone(p) for p in state.jobs.values()])
        if state.saving.kept:
            state.saving.advance(state.now, state.free)
        for progress in state.jobs.values():
            progress.advance(state.now)

    def _time_alone(self, progress: JobProgress) -> float:
        """Time for the work that is left of a job if no other job were there.

        A job that does not fit the empty machines has no such time; it is taken to have its fewest
        workers, each with the speed of one.
        """
        job, left = progress.job, progress.remaining_at(self.state.now)
        rate = float(job.min_workers)
        held = self._empty.most(job)
        if held is not None:
            load = Load(self.workload.site)
            load.add(job, held)
            rate = self.speed.rate(job, held, load) or rate
        return left / rate

    def _enter(self, job: PolicyJob) -> JobProgress:
        """Enter `job` at its arrival, with its samples and its checkpoints."""
        told = job if self._told_remaining else job.untold(self.policy.name)
        if self._plain:
            return JobProgress(job, told=told, knows_forms=self._knows_forms)
        how, interval = self._observation, self.costs.checkpoint_interval
        return JobProgress(
            job,
            None if interval is None else Checkpoints(interval, job.work),
            None if how is None or job.curve is None else Samples(job, how),
            told,
            self._knows_forms,
        )

    def _happen(self, view: BooksView) -> tuple[bool, bool]:
        """Process due events; return whether the policy's timer fired, and if anything happened."""
        woken = anything = False
        for _, kind, subject, version in self._agenda.take_events(view.now):
            if kind == COMPLETION:
                progress = self.state.jobs.get(subject)
                # Each change of speed plans a new completion and leaves the old one in
                # the agenda: taking it out would cost a search.
                if progress is not None and progress.version == version:
                    self._do.complete(progress)
                    view.finished.append(progress.seen)
                    anything = True
            elif kind == TIMER:
                woken |= version == self._timer
            else:
                anything = True
            if kind == LOSS:
                view.evicted += self._do.lose(subject)
                view.lost.append(subject)
            elif kind == RETURN:
                self.state.restore(subject)
                view.returned.append(subject)
        return woken, anything or woken

    def _ask_in_forms(self, view: BooksView) -> bool:
        """Ask a policy without forms; ask again while waiting jobs fit in another form."""
        choose_forms(view, self.state, self._empty, once=self._once)
        changed = self._ask(view)
        while not self._once:
            # Each time some job goes on to a later form, so this comes to an end.
            view = BooksView(self.state, self.policy.name, self._told_remaining)
            choose_forms(view, self.state, self._empty, again=True)
            if not view.arrived:
                break
            changed |= self._ask(view)
        return changed

    def _ask(self, view: BooksView) -> bool:
        """Ask the policy and carry out its plan; return whether anything changed."""
        policy = self.policy
        begin = perf_counter()
        plan = self._decide(view)
        self.policy_seconds.append(perf_counter() - begin)
        # A call makes the timer of the call before out of date, whatever it was for.
        self._timer += 1
        try:
            check_plan(plan, self.state, policy.name)
        except PolicyError as error:
            places = error.places() | {"time": view.now}
            raise PolicyError(error.policy, error.detail, **places) from None
        wake_at = plan.wake_at
        # Without a job, now or to come, slots would be counted for ever.
        if policy.slotted and (self.state.jobs or self._agenda.arrivals_left):
            wake_at = min(wake_at or INFINITY, math.floor(view.now) + 1.0)
        if wake_at is not None:
            # Between slots nothing may change, so a call there would be for nothing.
            if self._slotted:  # rounding beyond a slot is not another one
                wake_at = max(rounding.ceil_number(wake_at), math.floor(view.now) + 1.0)
            self._agenda.add(wake_at, TIMER, 0, self._timer)
        changed = self._do.carry_out(plan)
        happened = view.arrived or view.finished or view.evicted or view.lost or view.returned
        self._idle_calls = 0 if changed or happened else self._idle_calls + 1
        if self._idle_calls >= MOST_IDLE_CALLS and self._end == INFINITY:
            self._check_idle()
        return changed

    def _check_idle(self) -> None:
        """Refuse a policy that only wakes itself while no job runs and no event is due."""
        self._idle_calls = 0
        waits = not any(progress.complete for progress in self.state.jobs.values())
        if waits and not self._agenda.arrivals_left and self._agenda.has_only_timers:
            detail = f"was called {MOST_IDLE_CALLS} times while no job ran and no event was to come"
            waiting = f"{len(self.state.jobs)} jobs wait"
            raise PolicyError(self.policy.name, f"{detail}; {waiting}", time=self.state.now)

    def _decide(self, view: BooksView) -> Plan:
        try:  # as in `naming_own_line`, in a third of its time
            return self.policy.decide(view)
        except (Exception, SystemExit) as error:
            own = own_error(error, self.policy, "decide", view.now)
            if own is None:
                raise
            raise own from error


def _expect_models(speed: object, costs: object) -> None:
    """Raise `TypeError` unless these are models of speed and of costs, where they are given."""
    if not (
        speed is None or (callable(getattr(speed, "rate", None)) and hasattr(speed, "coupled"))
    ):
        expected = "expected an object with rate and coupled, such as oasis.simulator.Linear()"
        raise TypeError(f"speed: {expected}, got {describe(speed)}")
    if not (costs is None or callable(getattr(costs, "overhead", None))):
        expected = "expected an object with overhead, such as oasis.simulator.ChangeCosts()"
        raise TypeError(f"costs: {expected}, got {describe(costs)}")


def _checked(outages: Iterable[Outage], workload: Workload) -> list[Outage]:
    """Outages by time: on machines that exist, one at a time on each, between slots if slotted."""
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
        whole = all(
            time == math.floor(time) for time in (outage.begin, outage.end) if time < INFINITY
        )
        if workload.site.slotted and not whole:
            raise InputError("outages", "expected whole slots in a slotted workload")
        last[outage.machine] = outage.end
    return ordered
