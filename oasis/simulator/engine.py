"""The event loop: time goes from instant to instant, and the policy is asked once in each.

At one instant first all completions, then losses and returns of servers, then all arrivals in the
order of the file, then one call of the policy (docs: simulator).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from time import perf_counter

from oasis.model.rounding import TOLERANCE
from oasis.scheduling.allocation import NOTHING, Allocation
from oasis.scheduling.policy import Plan, Policy
from oasis.simulator.checks import check
from oasis.simulator.costs import ChangeCosts, Costs
from oasis.simulator.events import COMPLETION, INFINITY, LOSS, RETURN, TIMER, Agenda, Outage
from oasis.simulator.speed import Linear, Speed
from oasis.simulator.state import Progress, State
from oasis.simulator.view import StateView
from oasis.simulator.workload import Workload

Settled = Callable[[Progress], None]


class Engine:
    """One run of a policy on a workload, instant by instant.

    Parameters
    ----------
    workload : Workload
        Machines and jobs.
    policy : Policy
        It is reset and then asked at every instant.
    speed : Speed
        How fast jobs work; linear in workers by default.
    costs : Costs
        What changes cost in time; nothing by default.
    outages : iterable of Outage
        Losses of servers; jobs on a lost server lose all they hold, not their progress.
    on_settled : callable, optional
        Called for each job that finished or was rejected.
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
    ) -> None:
        self.workload, self.policy = workload, policy
        self.speed: Speed = speed or Linear()
        self.costs: Costs = costs or ChangeCosts()
        self.state = State(workload.site)
        self.settled: dict[int, Progress] = {}
        self.timeline: list[tuple[float, tuple[int, ...]]] = []
        self.policy_seconds = array("d")
        self._agenda = Agenda(workload.jobs, _checked(outages, workload))
        self._on_settled = on_settled
        self._timer = 0
        site = workload.site
        self._slotted = site.slotted
        self._end = INFINITY if site.horizon is None else site.horizon
        policy.reset(site)

    def run(self) -> None:
        """Go on to the end."""
        while self.step():
            pass
        self.finish()

    def step(self) -> bool:
        """Go to the next instant; False if there is none before the horizon.

        Raises
        ------
        PolicyError
            If the policy asks for what cannot run; nothing of its answer is then carried out, and
            the run may go on.
        """
        now = self._agenda.next_time
        if now == INFINITY or now > self._end:
            return False
        self.state.now = now
        view = StateView(self.state)
        woken = self._happen(view)
        view.arrived = self._agenda.take_arrivals(now)
        for job in view.arrived:
            self.state.jobs[job.index] = Progress(job)
        changed = bool(view.finished or view.evicted)
        try:
            if now < self._end and (woken or changed or view.arrived or view.lost or view.returned):
                changed |= self._ask(view)
        finally:
            if changed:
                self.timeline.append((now, tuple(self.state.used)))
                if self.speed.coupled:
                    self._set_speeds(list(self.state.jobs.values()))
        return True

    def finish(self) -> None:
        """Account for the time up to the horizon of the jobs that are still there."""
        if self._end < INFINITY:
            self.state.now = self._end
        for progress in self.state.jobs.values():
            progress.advance(self.state.now)

    def _happen(self, view: StateView) -> bool:
        """Let happen what is due; whether the policy's timer went off."""
        woken = False
        while (event := self._agenda.take_event(view.now)) is not None:
            _, kind, subject, version = event
            if kind == COMPLETION:
                progress = self.state.jobs.get(subject)
                if progress is not None and progress.version == version:
                    self._complete(progress)
                    view.finished.append(progress.job)
            elif kind == TIMER:
                woken |= version == self._timer
            elif kind == LOSS:
                self._lose(subject, view)
            elif kind == RETURN:
                self.state.restore(subject)
                view.returned.append(subject)
        return woken

    def _complete(self, progress: Progress) -> None:
        end = progress.finish
        progress.advance(end)
        progress.remaining = 0.0
        progress.end = end
        self._leave(progress)

    def _leave(self, progress: Progress) -> None:
        self._hold(progress, NOTHING)
        del self.state.jobs[progress.job.index]
        self.settled[progress.job.index] = progress
        if self._on_settled is not None:
            self._on_settled(progress)

    def _lose(self, machine: int, view: StateView) -> None:
        for progress in list(self.state.jobs.values()):
            if machine in progress.allocation.machines:
                progress.advance(view.now)
                self._hold(progress, NOTHING)
                self._schedule(progress, 0.0)
                view.evicted.append(progress.job)
        self.state.lose(machine)
        view.lost.append(machine)

    def _ask(self, view: StateView) -> bool:
        """Ask the policy and do what it says; whether anything changed."""
        begin = perf_counter()
        plan = self.policy.decide(view)
        self.policy_seconds.append(perf_counter() - begin)
        self._timer += 1
        check(plan, self.state, self.policy.name)
        wake_at = plan.wake_at
        if self.policy.slotted and (self.state.jobs or self._agenda.arrivals_left):
            wake_at = min(wake_at or INFINITY, math.floor(view.now) + 1.0)
        if wake_at is not None:
            wake_at = float(math.ceil(wake_at)) if self._slotted else wake_at
            self._agenda.add(wake_at, TIMER, 0, self._timer)
        return self._carry_out(plan)

    def _carry_out(self, plan: Plan) -> bool:
        jobs, now = self.state.jobs, self.state.now
        for index, reason in plan.rejected.items():
            progress = jobs[index]
            progress.advance(now)
            progress.refusal = str(reason)
            self._leave(progress)
        changed = []
        for index, allocation in plan.changes.items():
            progress = jobs[index]
            if allocation != progress.allocation:
                changed.append((progress, progress.allocation))
                progress.advance(now)
                self._hold(progress, allocation)
        for progress, before in changed:
            self._delay(progress, before)
        if not self.speed.coupled:  # else the speeds of all follow at the end of the instant
            self._set_speeds([progress for progress, _ in changed])
        return bool(changed or plan.rejected)

    def _hold(self, progress: Progress, allocation: Allocation) -> None:
        if allocation.workers or progress.allocation.workers:
            self.state.hold(progress, allocation, self.speed.coupled)
            progress.history.append((self.state.now, allocation))

    def _delay(self, progress: Progress, before: Allocation) -> None:
        """Charge what the change costs in time."""
        now, after = self.state.now, progress.allocation
        if not after.workers:
            return
        started = progress.started is not None
        lost = self.costs.overhead(progress.job, before, after, started)
        progress.ready = max(progress.ready if before.workers else now, now + lost)
        if not started:
            progress.started = now

    def _set_speeds(self, jobs: list[Progress]) -> None:
        for progress in jobs:
            rate = 0.0
            if progress.allocation.workers:
                rate = self.speed.rate(progress.job, progress.allocation, self.state.tenants)
            progress.advance(self.state.now)
            self._schedule(progress, rate)

    def _schedule(self, progress: Progress, rate: float) -> None:
        """Plan the completion at the new speed; in a slotted workload, at the end of its slot."""
        progress.rate = rate
        progress.version += 1
        if rate <= 0.0:
            progress.finish = INFINITY
            return
        now = self.state.now
        finish = max(now, progress.ready) + progress.remaining / rate
        free_at = finish
        if self._slotted:
            free_at = max(math.ceil(finish - TOLERANCE), math.floor(now) + 1.0)
            finish = min(finish, free_at)
        progress.finish = finish
        self._agenda.add(free_at, COMPLETION, progress.job.index, progress.version)


def _checked(outages: Iterable[Outage], workload: Workload) -> list[Outage]:
    """Outages by time: on machines that exist, one at a time on each, between slots if slotted."""
    last: dict[int, float] = {}
    ordered = sorted(outages, key=lambda outage: outage.begin)
    for outage in ordered:
        if not 0 <= outage.machine < len(workload.site.machines):
            raise ValueError(f"outages: there is no machine {outage.machine}")
        if not last.get(outage.machine, -INFINITY) < outage.begin < outage.end:
            raise ValueError(f"outages: those of machine {outage.machine} overlap or end too early")
        whole = all(
            time == math.floor(time) for time in (outage.begin, outage.end) if time < INFINITY
        )
        if workload.site.slotted and not whole:
            raise ValueError("outages: expected whole slots in a slotted workload")
        last[outage.machine] = outage.end
    return ordered
