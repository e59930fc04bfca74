"""Planning in a thread, while the controller acts on the previous plan."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from oasis.driver.entry import SlotOutcome
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.objects.oasis_job import JobSpec
from oasis.scheduling.policy import Planner, Policy

log = logging.getLogger("oasis.kubernetes")


@dataclass(slots=True)
class Planning:
    """A plan that is being made."""

    slot: int  # that runs once it is made: that of the plan, or the one before
    specs: Mapping[str, JobSpec]  # of the jobs that it is about, by uid
    now: float  # when it was begun
    question: Callable[[], SlotOutcome[JobSpec]]
    answered: Future[SlotOutcome[JobSpec]] = field(default_factory=Future)
    seconds: float = 0.0  # that the policy thought

    def make(self) -> None:
        """Make the plan now."""
        begin = time.perf_counter()
        try:
            outcome = self.question()
        except BaseException as error:  # noqa: BLE001 (a thread has no caller)
            self.answered.set_exception(error)
        else:
            self.seconds = time.perf_counter() - begin
            self.answered.set_result(outcome)

    def start(self, on_end: Callable[[], None], patience: float) -> None:
        """Make the plan in a thread, and wait `patience` seconds for its end."""
        self.answered.add_done_callback(lambda _: on_end())
        # An executor would keep the process until the plan is made.
        threading.Thread(target=self.make, daemon=True).start()
        wait((self.answered,), patience)


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
