"""Starts between boundaries: a job begins at its arrival where the next plan is going to put it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from typing import Any, Generic

from oasis.driver.driver import Driver
from oasis.driver.entry import Decided, Entry, Facts, Spec, differs
from oasis.model.rounding import TOLERANCE
from oasis.scheduling.placement import BestFit, Room
from oasis.scheduling.policy import BasePolicy


class EarlyStarts(Generic[Spec]):
    """Jobs that run before the policy knows of them, in what its plan leaves free.

    A driver asks its policy at boundaries alone. Between them a copy of it is asked what it would
    decide at the next boundary if nothing else happened (`rehearsal`). A new job that gets machines
    there, and finds as many free now, begins at once (`take`).

    What a job did before it arrived at the policy is not told (`begin`): every decision is the one
    that it would have been without early starts, until a job completes by its early start. The
    policy is told so at the boundary.
    """

    def __init__(self, driver: Driver[Spec]) -> None:
        self._driver = driver
        # Jobs that run before they arrive at the policy, by uid, with what they hold.
        self.held: dict[str, Entry[Spec]] = {}
        # Those that the next plan leaves where they are, and those that have ended.
        self.staying: set[str] = set()
        self._ended: set[str] = set()
        # Worker-slots that jobs had done when they arrived at the policy, which it is not told.
        self.early: dict[str, float] = {}

    @property
    def live(self) -> dict[str, Entry[Spec]]:
        """Unfinished jobs by uid: those of the driver, and those that it does not know yet."""
        return self._driver.by_uid | self.held

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
        known |= {uid: s for uid, s in specs.items() if uid not in known.keys() | self._ended}
        # Gangs work on until then, as planned.
        done = {uid: e.done + e.allocation.worker_count for uid, e in live.items()}
        all_done = {uid: done[uid] + early for uid, early in self.early.items() if uid in live}
        now = Facts(known, all_done, ended=frozenset(ended & live.keys()))
        facts = Facts(
            known,
            done,
            ended=now.ended | {uid for uid in all_done if self._is_complete(uid, now)},
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
        room = Room(driver.site, driver.free, driver.down)
        held = {uid: entry for uid, entry in self.held.items() if uid in self._ended}
        self.staying = set(held)
        for entry in held.values():
            room.occupy(entry.job, entry.allocation)
        # Running jobs come first: only a boundary takes their capacity.
        others = [uid for uid in found if uid not in held]
        for uid in sorted(others, key=lambda uid: uid not in self.held):
            entry = self.held.get(uid, found[uid])
            job, planned = entry.job, found[uid].allocation
            if not planned.workers:
                continue
            is_new = uid not in self.held
            if (is_new or entry.allocation == planned) and room.hold(job, planned):
                held[uid] = entry
                self.staying.add(uid)
            elif may_leave(entry.spec):
                if is_new:
                    place = BestFit().place(room, job, planned.worker_count, planned.ps_count)
                    if place is not None:
                        held[uid] = replace(entry, allocation=place._replace(form=planned.form))
                        room.occupy(job, place)
                elif room.hold(job, entry.allocation):
                    held[uid] = entry
        self.held = held

    def end(self, uids: Set[str]) -> None:
        """Note which jobs of `held` have ended: they are there until the boundary tells of it."""
        self._ended = uids & self.held.keys()
        self.staying |= self._ended

    def leave(self, uid: str) -> None:
        """End the early start of a job, so that its machines are free at the boundary."""
        del self.held[uid]

    def begin(self, facts: Facts[Spec]) -> tuple[Facts[Spec], list[Entry[Spec]]]:
        """Events for the policy at a boundary, and complete jobs that it never hears of.

        `facts` are those that the world sees, with all the work that was done.
        """
        driver = self._driver
        known = driver.by_uid
        # What was done before the policy knows a job is hidden from it: it plans the job's whole
        # work, as it did in the rehearsal.
        for uid in facts.specs.keys() - known.keys() - driver.arriving_again:
            done = facts.done.get(uid, 0.0)
            if done or uid in facts.ended:
                self.early[uid] = done
        complete = {uid for uid in self.early if self._is_complete(uid, facts)}
        unheard = complete & self.held.keys() - known.keys()
        over = [replace(self.held[uid], done=facts.done.get(uid, 0.0)) for uid in unheard]
        self.held, self._ended = {}, set()
        specs = {uid: spec for uid, spec in facts.specs.items() if uid not in unheard}
        told = {uid: facts.done.get(uid, 0.0) - early for uid, early in self.early.items()}
        done_by = {**facts.done, **{uid: max(0.0, done) for uid, done in told.items()}}
        return replace(facts, specs=specs, done=done_by, ended=facts.ended | complete), over

    def _is_complete(self, uid: str, facts: Facts[Spec]) -> bool:
        """Whether a job has done its work with what it did early."""
        entry, spec = self.live.get(uid), facts.specs.get(uid)
        if entry is None or spec is None:
            return False
        work, done = self._work(entry, spec), facts.done.get(uid, 0.0)
        by_work = work - done <= TOLERANCE * max(1.0, work)
        return uid in facts.ended or (by_work and not spec.ends_itself)

    def _work(self, entry: Entry[Spec], spec: Spec) -> float:
        """Work of a job, by its present amount if that was edited."""
        if not differs(spec, entry.spec):
            return entry.work
        try:
            return self._driver.work_of(spec, entry.form)
        except Exception:  # noqa: BLE001 (whatever is wrong with it, the driver tells it)
            return math.inf

    def after(self, outcome: Decided[Spec]) -> None:
        """Forget jobs that are gone; what completed has done its early work, too."""
        for uid, entry in outcome.entries.items():
            entry.done += self.early.get(uid, 0.0)
        there = self._driver.by_uid.keys() | self._driver.retries.keys()
        self.early = {uid: early for uid, early in self.early.items() if uid in there}

    def state(self) -> dict[str, Any]:
        """Plain data that `restore` accepts."""
        return {
            "early": self.early,
            "held": [entry.state() for entry in self.held.values()],
            "staying": sorted(self.staying),
        }

    def restore(
        self,
        state: Mapping[str, Any],
        specs: Mapping[str, Spec],
        as_it_was: Callable[[Mapping[str, Any], Spec | None], Spec],
    ) -> None:
        """Go on from `state`, beside a driver that goes on; the others are as for its `restore`."""
        held = (self._driver.restored(found, specs, as_it_was) for found in state.get("held", ()))
        self.held = {entry.spec.uid: entry for entry in held}
        self.staying = set(state.get("staying", ()))

    def forget(self, uid: str) -> None:
        """Drop the early start of a job that arrives again: the policy now counts its work."""
        self.early.pop(uid, None)
        self.held.pop(uid, None)
