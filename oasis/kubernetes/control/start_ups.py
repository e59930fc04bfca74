"""How long pods take until they work, as the controller saw it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from oasis.kubernetes import names
from oasis.kubernetes.cluster.pods import is_working
from oasis.kubernetes.control.metrics import Metrics
from oasis.kubernetes.objects.oasis_job import Clock

DIGITS = 9  # of the longest number of a slot: of seconds, that is thirty years


class StartUps:
    """Notes once for each worker how long after the beginning of its slot it worked.

    Its slot is the one in which the plan asked for it, which is an annotation of the pod. So this
    is all the time that a plan loses at a start: to decide, to make the pod, to wait until its gang
    is complete and its gate is open, to be bound, and to get ready.

    Parameters
    ----------
    clock : Clock
        When slots begin, in seconds.
    metrics : Metrics
        Where it is noted.
    pods : iterable of mapping
        Pods that are there already: those that work are not looked at, nobody saw them begin.

    Examples
    --------
    >>> metrics = Metrics()
    >>> starts = StartUps(Clock(60.0, epoch=1000.0), metrics, pods=())
    >>> pod = {"metadata": {"uid": "p", "annotations": {names.SLOT: "2"}}}
    >>> starts.note([pod], working={"p"}, at=1127.5)
    >>> starts.note([pod], working={"p"}, at=1140.0)  # it works since it was seen first
    >>> metrics.registry.get_sample_value("oasis_startup_seconds_sum")
    7.5
    """

    def __init__(self, clock: Clock, metrics: Metrics, pods: Iterable[Mapping[str, Any]]) -> None:
        self._clock, self._metrics = clock, metrics
        self._known = {pod["metadata"]["uid"] for pod in pods if is_working(pod)}

    def note(self, pods: Iterable[Mapping[str, Any]], working: set[str], at: float) -> None:
        """Note those of `pods` whose uids are among the `working` for the first time, at `at`."""
        for pod in pods:
            meta = pod["metadata"]
            uid = meta["uid"]
            if uid in working and uid not in self._known:
                self._known.add(uid)
                begin = self._begin((meta.get("annotations") or {}).get(names.SLOT, ""))
                if begin is not None and begin <= at:
                    self._metrics.startup.observe(at - begin)

    def _begin(self, slot: str) -> float | None:
        """When the slot of an annotation begins; None if it is none: anybody may change it."""
        is_slot = len(slot) <= DIGITS and slot.isdecimal()
        return self._clock.begin(int(slot)) if is_slot else None

    def forget_others(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Keep only those of `pods`."""
        self._known &= {pod["metadata"]["uid"] for pod in pods}
