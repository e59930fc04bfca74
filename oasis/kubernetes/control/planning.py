"""Planning in a thread, while the controller acts on the previous plan."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Mapping, Set
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, TypeVar

from oasis.driver.between import EarlyStarts
from oasis.driver.driver import Driver
from oasis.driver.entry import Decided, Entry, Facts
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.objects.conditions import error_text
from oasis.kubernetes.objects.existing import controller_of, job_items
from oasis.kubernetes.objects.oasis_job import JobSpec, as_it_was
from oasis.scheduling.capabilities import Planner
from oasis.scheduling.policy import Policy

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
    question: Callable[[], Decided[JobSpec]]
    answered: Future[Decided[JobSpec]] = field(default_factory=Future)
    seconds: float = 0.0  # that the policy thought

    def make(self) -> None:
        """Make the plan now."""
        answer(self._timed, self.answered)

    def start(self, on_end: Callable[[], None], patience: float) -> None:
        """Make the plan in a thread, and wait `patience` seconds for its end."""
        answer_in_thread(self._timed, self.answered, on_end, patience)

    def _timed(self) -> Decided[JobSpec]:
        begin = time.perf_counter()
        try:
            return self.question()
        finally:
            self.seconds = time.perf_counter() - begin


class Rehearsals:
    """Decisions of the next plan on new jobs, asked in a thread.

    Parameters
    ----------
    driver : Driver
        A copy of it makes the decisions, so that it learns nothing from them.
    between : EarlyStarts
        Starts the jobs that get machines by these decisions.

    Attributes
    ----------
    known : frozenset of str
        Uids of the jobs that the last boundary has seen.
    """

    def __init__(self, driver: Driver[JobSpec], between: EarlyStarts[JobSpec]) -> None:
        self._driver, self._between = driver, between
        self.known: frozenset[str] = frozenset()
        self._asked: Future[Mapping[str, Entry[JobSpec]]] | None = None
        self._about: tuple[int | None, frozenset[str]] = (None, frozenset())  # slot and new jobs

    @property
    def _told(self) -> set[str]:
        """Uids of the jobs that the policy knows, or knew."""
        driver = self._driver
        return driver.by_uid.keys() | driver.arriving_again | driver.settled | driver.retries.keys()

    def state(self, unfinished: Set[str]) -> dict[str, Any]:
        """Plain data that `restore` accepts, beside that of the driver; `unfinished` are uids."""
        waiting = sorted((self.known & unfinished) - self._told)
        return {**self._between.state(), "waiting": waiting}

    def restore(self, state: Mapping[str, Any], specs: Mapping[str, JobSpec]) -> None:
        """Go on from `state`, once the driver and its policy go on."""
        self._between.restore(state, specs, as_it_was)
        self.known = frozenset(self._told.union(state.get("waiting", ())))

    def look(
        self,
        look: Callable[[], Seen],
        plannable: Callable[[Seen, Container[str]], Came],
        patience: float,
        on_end: Callable[[], None],
    ) -> dict[str, bool]:
        """Jobs that begin now, and those that give back their machines (False), by uid.

        Parameters
        ----------
        look, plannable : callable
            What is there; those of some new jobs that may be planned, and which live ones ended.
        patience, on_end
            As for `Reconciler.plan_if_due`.
        """
        if self._asked is None:
            seen = look()
            about = self._driver.slot, _new(seen, self.known)
            if not about[1] or about[0] is None or about == self._about:
                return {}
            self._about = about
            question = self._between.rehearsal(*plannable(seen, about[1]))
            if question is None:
                return {}
            self._asked = Future()
            answer_in_thread(question, self._asked, on_end, patience)
        if not self._asked.done():
            return {}
        asked, self._asked = self._asked, None
        before = self._between.held
        try:
            if self._about[0] == self._driver.slot:  # no slot has begun since
                self._between.take(asked.result())
        except Exception as error:  # noqa: BLE001 (of the policy: the next boundary tells it)
            log.warning("no job begins before the next slot: %s", error_text(error))
        held = self._between.held
        return {uid: uid in held for uid in held.keys() ^ before.keys()}


def _new(seen: Seen, known: Container[str]) -> frozenset[str]:
    """Uids of the jobs that are there, name their controller, and are not `known`.

    If two controllers meet a new job, either may get it. A job that began by a plan with jobs of
    the other controller could be moved by the next plan, which is made without them.
    """
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
