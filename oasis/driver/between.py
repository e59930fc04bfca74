"""Starts between boundaries: a job begins at its arrival where the next plan is going to put it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Generic

from oasis.driver.driver import Driver
from oasis.driver.entry import Entry, Facts, Spec
from oasis.scheduling.placement import Room
from oasis.scheduling.policy import BasePolicy


class EarlyStarts(Generic[Spec]):
    """Jobs that run before the policy knows of them, in what its plan leaves free.

    A driver asks its policy at boundaries alone. Between them a copy of it is asked what it would
    decide at the next boundary if nothing else happened (`rehearsal`). A new job that gets machines
    there which are free now begins on them at once (`take`).

    What a job did before it arrived is not told to the policy (`Entry.early`): every decision is
    the one that it would have been without early starts, until a job completes by its early start.
    """

    def __init__(self, driver: Driver[Spec]) -> None:
        self._driver = driver
        # Jobs that run before they arrive at the policy, by uid, with what they hold.
        self.held: dict[str, Entry[Spec]] = {}
        self._ended: set[str] = set()

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
        facts = Facts(
            known,
            # Gangs work on until then, as planned.
            {uid: e.done + e.early + e.allocation.worker_count for uid, e in live.items()},
            ended=frozenset(ended & live.keys()),
            down=frozenset(driver.away),
            calendar=driver.closures.calendar,
        )

        def found() -> Mapping[str, Entry[Spec]]:
            copied.step(slot, facts)
            return {uid: entry for uid, entry in copied.by_uid.items() if uid in specs}

        return found

    def take(self, found: Mapping[str, Entry[Spec]]) -> None:
        """Start the jobs that a rehearsal put on machines that are free now.

        A job that it puts elsewhere than it began ends its early start.
        """
        driver = self._driver
        room = Room(driver.site, driver.free, driver.down)
        # What ended is there until the boundary; what runs is not moved for a new job.
        held = {uid: entry for uid, entry in self.held.items() if uid in self._ended}
        staying = {
            uid: entry
            for uid, entry in self.held.items()
            if uid in found and found[uid].allocation == entry.allocation
        }
        new = {uid: entry for uid, entry in found.items() if uid not in self.held}
        for entry in held.values():
            room.occupy(entry.job, entry.allocation)
        for uid, entry in (staying | new).items():
            if entry.complete and room.hold(entry.job, entry.allocation):
                held[uid] = entry
        self.held = held

    def end(self, uids: Set[str]) -> None:
        """Note which jobs of `held` have ended: they are there until the boundary tells of it."""
        self._ended = uids & self.held.keys()

    def begin(self) -> dict[str, int]:
        """The forms of the jobs that arrive at the policy now, by uid: none is early any more."""
        forms = {uid: entry.form for uid, entry in self.held.items()}
        self.held, self._ended = {}, set()
        return forms

    def state(self) -> dict[str, Any]:
        """Plain data that `restore` accepts."""
        return {"held": [entry.state() for entry in self.held.values()]}

    def restore(
        self,
        state: Mapping[str, Any],
        specs: Mapping[str, Spec],
        as_it_was: Callable[[Mapping[str, Any], Spec | None], Spec],
    ) -> None:
        """Go on from `state`, beside a driver that goes on; the others are as for its `restore`."""
        held = (self._driver.restored(found, specs, as_it_was) for found in state.get("held", ()))
        self.held = {entry.spec.uid: entry for entry in held}
