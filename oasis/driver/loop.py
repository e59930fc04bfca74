"""The one loop: a world says what happened, a policy is asked, the world carries its plan out."""

from __future__ import annotations

import math
from array import array
from time import perf_counter

from oasis.driver.books import check_plan, choose_forms
from oasis.model import rounding
from oasis.model.errors import PolicyError
from oasis.scheduling.book import EmptyCluster
from oasis.scheduling.job import PolicyJob
from oasis.scheduling.policy import Plan, Planner, Policy, wants
from oasis.scheduling.policy_check import own_error
from oasis.scheduling.view import Books, View

INFINITY = float("inf")
# Far more calls than waiting for something can take; a policy that
# waits for nothing is still found out soon.
MOST_IDLE_CALLS = 100_000  # of a policy's timer, one after the other, while nothing else can happen


class World:
    """Where jobs run: it reports events and carries out plans. Base of engine and driver."""

    end = INFINITY  # the horizon; from there on nothing is started

    @property
    def next_time(self) -> float:
        """Time of the next event that needs no call from outside; infinity if there is none."""
        return INFINITY

    @property
    def goes_on(self) -> bool:
        """Whether a job is live or will come, so that a policy by slots is asked in each."""
        return False

    def pass_to(self, now: float) -> None:
        """Move the clock to `now`: until then jobs work on their present allocations."""

    def happen(self, view: View) -> bool:
        """Record in `view` completions, machines, then arrivals; return whether any happened."""
        raise NotImplementedError

    def carry_out(self, plan: Plan, view: View) -> bool:
        """Carry out a checked plan; return whether anything changed."""
        raise NotImplementedError

    def end_instant(self, changed: bool) -> None:
        """Finish the instant; `changed`: an allocation or a job changed."""


class Loop:
    """Asks a policy for a plan whenever something happens in a world, and has it carried out."""

    def __init__(self, policy: Policy, world: World, books: Books) -> None:
        self.policy, self.world, self._books = policy, world, books
        self.wake_at: float | None = None  # when the policy asked to be called
        self.told_remaining = wants(policy, "told_remaining")
        self.knows_forms = wants(policy, "knows_forms")
        self.chooses = not self.knows_forms  # whether jobs may have to be shown in one form each
        self.seconds: array[float] | None = None  # of each call, if anybody wants to know
        self._slotted, self.empty = books.site.slotted, EmptyCluster(books.site)
        self._planner = policy if isinstance(policy, Planner) else None
        self._idle_calls = 0

    def told(self, job: PolicyJob) -> PolicyJob:
        """Return what the policy may know of `job`."""
        return job if self.told_remaining else job.untold(self.policy.name)

    def step(self, until: float = INFINITY) -> bool:
        """Advance to the next event or timer; return False if there is none up to `until`."""
        now = self.world.next_time
        if self.wake_at is not None and self.wake_at < now:
            now = self.wake_at
        if now == INFINITY or now > until:
            return False
        self.instant(now)
        return True

    def instant(self, now: float, *, ask: bool = False) -> None:
        """Advance to `now` and record events; ask for a plan if any, a timer or `ask` wants one."""
        world = self.world
        woken = self.wake_at is not None and now >= self.wake_at
        world.pass_to(now)
        view = View(self._books, self.policy.name, self.told_remaining)
        anything = world.happen(view)
        if woken:
            self.wake_at = None  # it goes off once, also where the policy is not asked: the horizon
        if not (anything or woken or ask):
            return
        changed = bool(view.finished or view.evicted)
        try:
            # At the horizon nothing can be started any more.
            # Of jobs that were taken back no view tells.
            withdrawn = () if self._planner is None else self._planner.withdrawn
            if now < world.end and (ask or woken or view.happened or withdrawn):
                in_forms = self.chooses and any(job.forms for job in self._books.jobs.values())
                changed |= self._ask_in_forms(view) if in_forms else self._ask(view)
                self._idle_calls = 0 if anything or changed else self._idle_calls + 1
                if self._idle_calls >= MOST_IDLE_CALLS:
                    self._check_idle(now)
        finally:
            world.end_instant(changed)

    def _ask_in_forms(self, view: View) -> bool:
        """Ask a policy without forms, again while jobs fit in later forms; return as `_ask`."""
        books = self._books
        choose_forms(view, books, self.empty, once=self._planner is not None)
        changed = self._ask(view)
        while self._planner is None:
            # Each time some job goes on to a later form, so this comes to an end.
            view = View(books, self.policy.name, self.told_remaining)
            choose_forms(view, books, self.empty, again=True)
            if not view.arrived:
                break
            changed |= self._ask(view)
        return changed

    def _ask(self, view: View) -> bool:
        """Ask the policy and have its plan carried out; return whether anything changed."""
        policy, world = self.policy, self.world
        begin = perf_counter()
        try:  # as in `naming_own_line`, in a third of its time
            plan = policy.decide(view)
        except (Exception, SystemExit) as error:
            own = own_error(error, policy, "decide", view.now)
            if own is None:
                raise
            raise own from error
        if self.seconds is not None:
            self.seconds.append(perf_counter() - begin)
        # A call makes the timer of the call before out of date, whatever it was for.
        self.wake_at = None
        # Checked whole before anything of it is carried out: a plan
        # is done or refused, never half done.
        try:
            check_plan(plan, self._books, policy.name)
        except PolicyError as error:
            places = error.places() | {"time": view.now}
            raise PolicyError(error.policy, error.detail, **places) from None
        wake_at = plan.wake_at
        # Without a job, now or to come, slots would be counted for ever.
        if policy.slotted and world.goes_on:
            wake_at = min(wake_at or INFINITY, math.floor(view.now) + 1.0)
        # Between slots nothing may change, so a call there would be for nothing.
        if wake_at is not None and self._slotted:  # rounding beyond a slot is not another one
            wake_at = max(float(rounding.ceil_number(wake_at)), math.floor(view.now) + 1.0)
        self.wake_at = wake_at
        return world.carry_out(plan, view)

    def _check_idle(self, now: float) -> None:
        """Raise `PolicyError` if no job runs and no event is due, so that only timers go off."""
        self._idle_calls, jobs, world = 0, self._books.jobs, self.world
        is_over = world.next_time == INFINITY == world.end
        if is_over and not any(job.has_gang for job in jobs.values()):
            detail = f"was called {MOST_IDLE_CALLS} times while no job ran and no event was to come"
            raise PolicyError(self.policy.name, f"{detail}; {len(jobs)} jobs wait", time=now)
