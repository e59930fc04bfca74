"""Starts between boundaries: a job begins at its arrival where the next plan is going to put it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Generic

from oasis.driver.driver import Driver
from oasis.driver.entry import Decided, Entry, Facts, Spec, differs
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import BasePolicy


@dataclass(slots=True)
class _Over(Generic[Spec]):
    """A completed job that the policy still plans, because it does not know of the early start."""

    spec: Spec
    done: float  # worker-slots that it would have done by now
    until: float  # worker-slots at which it would be complete

    def is_due(self, done: float) -> bool:
        """Return whether `done` worker-slots complete the job."""
        return done >= self.until - TOLERANCE * max(1.0, self.until)


class EarlyStarts(Generic[Spec]):
    """Jobs that run before the policy knows of them, in what its plan leaves free.

    A driver asks its policy at boundaries alone. Between them a copy of it is asked what it would
    decide at the next boundary if nothing else happened (`rehearsal`). A new job that gets machines
    there, and finds as many free now, begins at once (`take`).

    The policy never learns of it (`begin`): what a job did before it arrived at the policy is not
    told. Every decision is the one that it would have been without early starts, so that no job
    completes later. A job that completes early stays on the books of the policy for as long as it
    would have taken.

    Parameters
    ----------
    driver : Driver
        Its boundaries are those of a world that tells it what `begin` says.

    Attributes
    ----------
    held : dict of str to Entry
        Jobs that run before they arrive at the policy, by uid, with what they hold.
    staying : set of str
        Those of them that the next plan leaves where they are, and those that have ended.
    early : dict of str to float
        Worker-slots that jobs had done when they arrived at the policy, which it is not told.
    """

    def __init__(self, driver: Driver[Spec]) -> None:
        self._driver = driver
        self.held: dict[str, Entry[Spec]] = {}
        self.staying: set[str] = set()
        self._ended: set[str] = set()
        self.early: dict[str, float] = {}
        self._over: dict[str, _Over[Spec]] = {}

    @property
    def live(self) -> dict[str, Entry[Spec]]:
        """Unfinished jobs by uid: those of the driver, and those that it does not know yet."""
        return self.planned | self.held

    @property
    def planned(self) -> dict[str, Entry[Spec]]:
        """Unfinished jobs of the driver by uid."""
        live = self._driver.by_uid
        return {uid: entry for uid, entry in live.items() if uid not in self._over}

    def rehearsal(
        self, specs: Mapping[str, Spec], ended: Set[str] = frozenset()
    ) -> Callable[[], Mapping[str, Entry[Spec]]] | None:
        """Return a function that tells `take` what the next boundary would decide on new jobs.

        `ended` are jobs that have said since the last boundary that they ended. The function may
        run in a thread while the driver stands still or goes on. None if the policy cannot
        be asked: it cannot be copied, no slot has begun, or it fails.
        """
        driver = self._driver
        if not isinstance(driver.policy, BasePolicy) or driver.slot is None:
            return None
        # The next boundary decides on other jobs than the ones here, or not at all.
        if driver.again_at is not None or driver.arriving_again:
            return None
        # On copies: a rehearsal must leave no trace in the decision of the boundary.
        copied, slot = driver.copied(driver.policy.rehearsed()), driver.slot + 1
        live = driver.by_uid
        known = {uid: entry.spec for uid, entry in live.items()}
        # Gangs work on until then, as planned.
        done = {uid: e.done + e.allocation.worker_count for uid, e in live.items()}
        due = {uid for uid, over in self._over.items() if over.is_due(done.get(uid, 0.0))}
        facts = Facts(
            known | {uid: spec for uid, spec in specs.items() if uid not in known},
            done,
            # Of those that began early the policy is told later that they ended.
            ended=frozenset((due | ended - self._over.keys() - self.early.keys()) & live.keys()),
            down=frozenset(driver.away),
            calendar=driver.closures.calendar,
        )

        def found() -> Mapping[str, Entry[Spec]]:
            copied.step(slot, facts)
            return {uid: entry for uid, entry in copied.by_uid.items() if uid in specs}

        return found

    def take(
        self, found: Mapping[str, Entry[Spec]], may_leave: Callable[[Spec], bool] = lambda _: True
    ) -> None:
        """Start the jobs that a rehearsal placed, as far as capacity is free now.

        A job begins on the machines of the next plan if they are free. Otherwise it begins on
        others, if it `may_leave` them before the boundary: the job that gets them then must find
        them free.
        """
        driver = self._driver
        room, there = Room(driver.site, driver.free, driver.down), list(driver.entries.values())
        held = {uid: entry for uid, entry in self.held.items() if uid in self._ended}
        self.staying = set(held)
        for entry in held.values():
            room.occupy(entry.job, entry.allocation)
            there.append(entry)
        # Running jobs come first: only a boundary takes their capacity.
        others = [uid for uid in found if uid not in held]
        for uid in sorted(others, key=lambda uid: uid not in self.held):
            entry = self.held.get(uid, found[uid])
            job, planned = entry.job, found[uid].allocation
            if not planned.workers:
                continue
            is_new = uid not in self.held
            # What is kept for other jobs is theirs between boundaries, too.
            open_now = room.without(driver.closures.held_back(there, driver.site, job.id))
            if (is_new or entry.allocation == planned) and open_now.hold(job, planned):
                held[uid] = entry
                self.staying.add(uid)
            elif may_leave(entry.spec):
                if is_new:
                    place = BestFit().place(open_now, job, planned.worker_count, planned.ps_count)
                    if place is not None:
                        held[uid] = replace(entry, allocation=place._replace(form=planned.form))
                elif open_now.hold(job, entry.allocation):
                    held[uid] = entry
            if uid in held:
                room.occupy(job, held[uid].allocation)
                there.append(held[uid])
        self.held = held

    def end(self, uids: Set[str]) -> None:
        """Note which jobs of `held` have ended: they are there until the boundary tells of it."""
        self._ended = uids & self.held.keys()
        self.staying |= self._ended

    def leave(self, uid: str) -> None:
        """End the early start of a job, so that its machines are free at the boundary."""
        del self.held[uid]

    def begin(self, slot: int, facts: Facts[Spec]) -> tuple[Facts[Spec], dict[str, Entry[Spec]]]:
        """Events for the policy at the boundary before `slot`, and completed jobs.

        `facts` are those that the world sees, with all the work that was done. Complete are those
        of which the policy is told that they are not.
        """
        driver = self._driver
        known, passed = driver.by_uid, slot - (driver.slot or 0)
        # What was done before the policy knows a job is hidden from it: it plans the job's whole
        # work, as it did in the rehearsal, and its decisions are those of a run without early
        # starts.
        for uid in facts.specs.keys() - known.keys() - self._over.keys() - driver.arriving_again:
            done = facts.done.get(uid, 0.0)
            if done or uid in facts.ended:
                self.early[uid] = done
        for uid, over in self._over.items():
            if uid in known:
                over.done += known[uid].allocation.worker_count * passed
        complete = self._completed(facts, passed)
        self.held, self._ended = {}, set()
        specs, done_by = dict(facts.specs), dict(facts.done)
        ended = set(facts.ended - self._over.keys())
        for uid, early in self.early.items():
            done_by[uid] = max(0.0, facts.done.get(uid, 0.0) - early)
        for uid, over in self._over.items():
            specs[uid], done_by[uid] = over.spec, over.done
            # To the policy, the job ends when it would have ended without the early start.
            if over.spec.ends_itself and over.is_due(over.done):
                ended.add(uid)
        return replace(facts, specs=specs, done=done_by, ended=frozenset(ended)), complete

    def _completed(self, facts: Facts[Spec], passed: int) -> dict[str, Entry[Spec]]:
        """Return completed jobs that the policy still plans: it does not know of early starts."""
        complete = {}
        for uid, entry in self.live.items():
            spec = facts.specs.get(uid)
            if spec is None or uid not in self.early:
                continue
            done = facts.done.get(uid, 0.0)
            work = self._work(entry, spec)
            by_work = work - done <= TOLERANCE * max(1.0, work)
            if uid in facts.ended or (by_work and not spec.ends_itself):
                complete[uid] = replace(entry, done=done)
                # It would have worked to the end of the slot, had it not been complete before.
                would = 0.0 if uid in self.held else entry.done
                would += 0.0 if uid in self.held else entry.allocation.worker_count * passed
                self._over[uid] = _Over(spec, would, done)
        return complete

    def _work(self, entry: Entry[Spec], spec: Spec) -> float:
        """Work of a job, by its present amount if that was edited."""
        if not differs(spec, entry.spec):
            return entry.work
        try:
            return self._driver.work_of(spec, entry.form)
        except Exception:  # noqa: BLE001 (whatever is wrong with it, the driver tells it)
            return math.inf

    def after(self, outcome: Decided[Spec]) -> None:
        """Drop decisions on jobs that are already complete, and forget jobs that are gone."""
        driver = self._driver
        outcome.forget(self._over)
        there = driver.by_uid.keys() | driver.retries.keys()
        self._over = {uid: over for uid, over in self._over.items() if uid in there}
        self.early = {uid: early for uid, early in self.early.items() if uid in there}

    def state(self) -> dict[str, Any]:
        """Plain data that `restore` accepts."""
        return {
            "early": self.early,
            "held": [entry.state() for entry in self.held.values()],
            "staying": sorted(self.staying),
            "over": {uid: [over.done, over.until] for uid, over in self._over.items()},
        }

    def restore(
        self,
        state: Mapping[str, Any],
        specs: Mapping[str, Spec],
        as_it_was: Callable[[Mapping[str, Any], Spec | None], Spec],
    ) -> None:
        """Go on from `state`, beside a driver that goes on; the others are as for its `restore`."""
        driver, known = self._driver, self._driver.by_uid
        held = (driver.restored(found, specs, as_it_was) for found in state.get("held", ()))
        self.held = {entry.spec.uid: entry for entry in held}
        self.staying = set(state.get("staying", ()))
        for uid, (done, until) in state.get("over", {}).items():
            if uid in known:
                self._over[uid] = _Over(known[uid].spec, done, until)

    def forget(self, uid: str) -> None:
        """Drop the early start of a job that arrives again: the policy now counts its work."""
        self.early.pop(uid, None)
        self.held.pop(uid, None)
