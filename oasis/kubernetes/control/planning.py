"""Planning in a thread, while the controller acts on the previous plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from oasis.driver.entry import SlotOutcome
from oasis.kubernetes.objects.oasis_job import JobSpec


@dataclass(slots=True)
class Planning:
    """A question to the policy, and its answer once there is one."""

    slot: int  # that runs once it is made: that of the plan, or the one before
    specs: Mapping[str, JobSpec]  # of the jobs that it is about, by uid
    now: float  # when it was begun
    question: Callable[[], SlotOutcome[JobSpec]]
    answered: Future[SlotOutcome[JobSpec]] = field(default_factory=Future)
    seconds: float = 0.0  # that the policy thought

    def make(self) -> None:
        """Ask the policy in this thread, and store its answer or its error."""
        begin = time.perf_counter()
        try:
            outcome = self.question()
        except BaseException as error:  # noqa: BLE001 (a thread has no caller)
            self.answered.set_exception(error)
        else:
            self.seconds = time.perf_counter() - begin
            self.answered.set_result(outcome)

    def start(self, on_end: Callable[[], None], patience: float) -> None:
        """Ask the policy in a thread that calls `on_end`; wait for it up to `patience` seconds."""
        self.answered.add_done_callback(lambda _: on_end())
        # An executor would keep the process until the plan is made.
        threading.Thread(target=self.make, daemon=True).start()
        wait((self.answered,), patience)
