"""Planning in a thread, while the controller acts on the previous plan."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Set
from concurrent.futures import Future, wait
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

from oasis.driver.driver import Driver
from oasis.driver.entry import Entry, Facts, SlotOutcome
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.objects.conditions import error_text
from oasis.kubernetes.objects.existing import controller_of, job_items
from oasis.kubernetes.objects.oasis_job import JobSpec, as_it_was
from oasis.scheduling.capabilities import Planner
from oasis.scheduling.placement import Room
from oasis.scheduling.policy import BasePolicy, Policy

log = logging.getLogger("oasis.kubernetes")

Seen = Mapping[str, list[Any]]
Came = tuple[Mapping[str, JobSpec], Set[str]]  # new jobs, and uids of live ones that ended
T = TypeVar("T")


def answer(question: Callable[[], T], answered: Future[T]) -> None:
    """Ask the policy here, and keep what it says or raises."""
    try:
        answered.set_result(question())
    except BaseException as error:  # noqa: BLE001 (a thread has no caller)
        answered.set_exception(error)


def answer_in_thread(
    question: Callable[[], T], answered: Future[T], on_end: Callable[[], None], patience: float
) -> None:
    """Ask the policy in a thread, and wait `patience` seconds for its end."""
    answered.add_done_callback(lambda _: on_end())
    # An executor would keep the process until the plan is made.
    asking = threading.Thread(target=answer, args=(question, answered), daemon=True)
    asking.start()
    wait((answered,), patience)


@dataclass(slots=True)
class Planning:
    """A plan that is being made, and the one that is acted on meanwhile."""

    slot: int  # that it is for
    facts: Facts[JobSpec]
    now: float  # when it was begun
    slot_before: int | None
    live_before: Mapping[str, Entry[JobSpec]]  # copies of the entries, by uid
    question: Callable[[], SlotOutcome[JobSpec]]
    answered: Future[SlotOutcome[JobSpec]] = field(default_factory=Future)
    seconds: float = 0.0  # that the policy thought

    def make(self) -> None:
        """Make the plan now."""
        answer(self._timed, self.answered)

    def start(self, on_end: Callable[[], None], patience: float) -> None:
        """Make the plan in a thread, and wait `patience` seconds for its end."""
        answer_in_thread(self._timed, self.answered, on_end, patience)

    def _timed(self) -> SlotOutcome[JobSpec]:
        begin = time.perf_counter()
        try:
            return self.question()
        finally:
            self.seconds = time.perf_counter() - begin


class EarlyStarts:
    """Jobs that run before the policy knows of them, in what its plan leaves free."""

    # A driver asks its policy at boundaries alone. Between them a copy of it is asked, in a thread,
    # what it would decide at the next boundary if nothing else happened. A new job that gets
    # machines there which are free now begins on them at once.
    # What a job did before it arrived is not told to the policy (`Entry.early`): every decision is
    # the one that it would have been without early starts, until a job completes by its early
    # start.
    def __init__(self, driver: Driver[JobSpec]) -> None:
        self._driver = driver
        # Jobs that run before they arrive at the policy, by uid, with what they hold.
        self.held: dict[str, Entry[JobSpec]] = {}
        self._ended: set[str] = set()
        self._known: frozenset[str] = frozenset()  # uids of the jobs that the last boundary saw
        self._asked: Future[Mapping[str, Entry[JobSpec]]] | None = None
        self._about: tuple[int | None, frozenset[str]] = (None, frozenset())  # slot and new jobs

    @property
    def live(self) -> dict[str, Entry[JobSpec]]:
        """Unfinished jobs by uid: those of the driver, and those that it does not know yet."""
        return self._driver.by_uid | self.held

    @property
    def _told(self) -> set[str]:
        """Uids of the jobs that the policy knows, or knew."""
        driver = self._driver
        return driver.by_uid.keys() | driver.arriving_again | driver.settled | driver.retries.keys()

    def end(self, uids: Set[str]) -> None:
        """Note which jobs of `held` have ended: they are there until the boundary tells of it."""
        self._ended = uids & self.held.keys()

    def begin(self, known: Iterable[str]) -> dict[str, int]:
        """Begin a boundary, which tells the policy of all jobs `known`: none is early any more."""
        # Return the forms in which the early ones run.
        forms = {uid: entry.form for uid, entry in self.held.items()}
        self.held, self._ended, self._known = {}, set(), frozenset(known)
        return forms

    def look(
        self,
        look: Callable[[], Seen],
        plannable: Callable[[Seen, Container[str]], Came],
        patience: float,
        on_end: Callable[[], None],
    ) -> dict[str, bool]:
        """Jobs that begin now, and those that give back their machines (False), by uid."""
        # `look` gives what is there, `plannable` those of some new jobs that may be planned, and
        # which live ones ended; the others are as for `Reconciler.plan_if_due`.
        if self._asked is None:
            seen = look()
            about = self._driver.slot, _new(seen, self._known)
            if not about[1] or about[0] is None or about == self._about:
                return {}
            self._about = about
            question = self._question(*plannable(seen, about[1]))
            if question is None:
                return {}
            self._asked = Future()
            answer_in_thread(question, self._asked, on_end, patience)
        if not self._asked.done():
            return {}
        asked, self._asked = self._asked, None
        before = self.held
        try:
            if self._about[0] == self._driver.slot:  # no slot has begun since
                self._take(asked.result())
        except Exception as error:  # noqa: BLE001 (of the policy: the next boundary tells it)
            log.warning("no job begins before the next slot: %s", error_text(error))
        return {uid: uid in self.held for uid in self.held.keys() ^ before.keys()}

    def _question(
        self, specs: Mapping[str, JobSpec], ended: Set[str]
    ) -> Callable[[], Mapping[str, Entry[JobSpec]]] | None:
        """What the next boundary would decide on new jobs, for a thread beside the driver."""
        # None if the policy cannot be asked: it cannot be copied, no slot has begun, or it fails.
        driver = self._driver
        if not isinstance(driver.policy, BasePolicy) or driver.slot is None:
            return None
        # The next boundary decides on other jobs than the ones here, or not at all.
        if driver.again_at is not None or driver.arriving_again:
            return None
        # On copies: a rehearsal must leave no trace in the decision of the boundary.
        copied, slot = driver.copied(deepcopy(driver.policy)), driver.slot + 1
        live = driver.by_uid
        known = {uid: entry.spec for uid, entry in live.items()}
        known |= {uid: s for uid, s in specs.items() if uid not in known.keys() | self._ended}
        facts = Facts(
            known,
            # Gangs work on until then, as planned.
            {uid: e.done + e.early + e.allocation.worker_count for uid, e in live.items()},
            ended=frozenset(ended & live.keys()),
            down=frozenset(driver.away),
            calendar=driver.calendar,
        )

        def found() -> Mapping[str, Entry[JobSpec]]:
            copied.step(slot, facts)
            return {uid: entry for uid, entry in copied.by_uid.items() if uid in specs}

        return found

    def _take(self, entries: Mapping[str, Entry[JobSpec]]) -> None:
        """Start the jobs that the copy put on machines that are free now."""
        # A job that it puts elsewhere than it began ends its early start.
        room = Room(self._driver.site, self._driver.free, self._driver.down)
        # What ended is there until the boundary; what runs is not moved for a new job.
        held = {uid: entry for uid, entry in self.held.items() if uid in self._ended}
        staying = {
            uid: entry
            for uid, entry in self.held.items()
            if uid in entries and entries[uid].allocation == entry.allocation
        }
        new = {uid: entry for uid, entry in entries.items() if uid not in self.held}
        for entry in held.values():
            room.occupy(entry.job, entry.allocation)
        for uid, entry in (staying | new).items():
            if entry.complete and room.hold(entry.job, entry.allocation):
                held[uid] = entry
        self.held = held

    def state(self, unfinished: Set[str]) -> dict[str, Any]:
        """Plain data that `restore` accepts, beside that of the driver; `unfinished` are uids."""
        waiting = sorted((self._known & unfinished) - self._told)
        return {"held": [entry.state() for entry in self.held.values()], "waiting": waiting}

    def restore(self, state: Mapping[str, Any], specs: Mapping[str, JobSpec]) -> None:
        """Go on from `state`, once the driver and its policy go on."""
        entries = [self._driver.restored(kept, specs, as_it_was) for kept in state["held"]]
        self.held = {entry.spec.uid: entry for entry in entries}
        self._known = frozenset(self._told.union(state["waiting"]))


def _new(seen: Seen, known: Container[str]) -> frozenset[str]:
    """Uids of the jobs that are there, name their controller, and are not `known`."""
    # If two controllers meet a new job, either may get it. A job that began by a plan with jobs of
    # the other controller could be moved by the next plan, which is made without them.
    return frozenset(
        item["metadata"]["uid"]
        for kind, item in job_items(seen)
        if controller_of(item, kind) is not None
        and not item["metadata"].get("deletionTimestamp")
        and item["metadata"]["uid"] not in known
    )


def planned_ahead(policy: Policy, slots: int, metrics: Metrics) -> Mapping[int, Any]:
    """The plan of the next slots, by index of the job; empty if the policy has no forecast."""
    if not isinstance(policy, Planner):
        return {}
    try:
        return policy.ahead(slots)
    except Exception:
        metrics.policy_errors.inc()
        log.exception("policy %s cannot say what it plans", policy.name)
        return {}
