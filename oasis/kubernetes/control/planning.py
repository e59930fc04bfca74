"""A plan that is made while the controller goes on with the plan before it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from oasis.driver.driver import Driver
from oasis.driver.entry import Decided, Entry, Facts
from oasis.kubernetes.objects.oasis_job import JobSpec


@dataclass(slots=True)
class Planning:
    """A plan that is being made, here or in a thread."""

    driver: Driver[JobSpec]
    slot: int  # that it is for
    facts: Facts[JobSpec]
    now: float  # when it was begun
    slot_before: int | None  # that of the plan that is acted on meanwhile
    live_before: Mapping[str, Entry[JobSpec]]  # copies of its entries, by uid
    seconds: float = 0.0
    ended: threading.Event = field(default_factory=threading.Event)
    _found: Decided[JobSpec] | BaseException | None = None

    def start(self, on_end: Callable[[], None]) -> None:
        """Decide in a thread, which ends with the process."""

        def run() -> None:
            self.make()
            on_end()

        threading.Thread(target=run, name="planning", daemon=True).start()

    def make(self) -> None:
        """Ask the policy; what is raised is raised by `outcome`."""
        begin = time.perf_counter()
        try:
            self._found = self.driver.boundary(self.slot, self.facts)
        except BaseException as error:  # noqa: BLE001 (a thread has nobody to tell it to)
            self._found = error
        self.seconds = time.perf_counter() - begin
        self.ended.set()

    def outcome(self) -> Decided[JobSpec]:
        """What was decided."""
        if isinstance(self._found, BaseException):
            raise self._found
        assert self._found is not None
        return self._found
