"""Settings of the controller."""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from oasis.kubernetes.names import NAMESPACE
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES, ResourceMap
from oasis.model.errors import InputError
from oasis.model.validation import check_unique, number

TEXT = "%(asctime)s %(levelname)s %(message)s"
FIELDS = ("slot", "job", "reason", "action", "pod", "node", "seconds", "count")


class JsonFormatter(logging.Formatter):
    """Formats a record as a line of JSON: time, level, message, and the `FIELDS` that it has."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def handler(form: str) -> logging.Handler:
    """Return a handler that logs to standard error as ``text`` or as ``json``."""
    stream = logging.StreamHandler()
    stream.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(TEXT))
    return stream


def check_names(namespace: str, name: str) -> None:
    """Raise if Kubernetes would refuse an object or a label with these names of a controller."""
    for field, value in (("namespace", namespace), ("name", name)):
        if not NAMESPACE.fullmatch(value):
            raise InputError(field, "expected a name such as team-a", value)


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings that distinguish one controller from another.

    Parameters
    ----------
    namespace, name : str
        Where its lease and its checkpoint are, and what both are called.
    slot_seconds : float
        Length of a slot.
    startup_seconds : float
        Part of a slot that may pass before the pods that were started at its beginning work: a
        worker that runs for the rest has done a worker-slot.
    resources : ResourceMap
        What the cluster calls the resources of the model.
    ps_share : Fraction, optional
        Part of nodes with role ``both`` that parameter servers have; left out, such nodes take
        both kinds of tasks.
    horizon : int, optional
        From this slot on completions are worth nothing.
    first_slot_at : float, optional
        When slot 0 begins, in seconds since 1970; left out, when the first controller starts. What
        a checkpoint remembers goes before it.
    watched : str, optional
        Namespace of the jobs; left out, they may be in any.
    namespaced : tuple of str
        It has rights in these namespaces alone, and sees no other; empty, it has them everywhere.
    node_selector : str, optional
        Only nodes with these labels; left out, all that have a role.
    pods_ready_timeout : float
        Seconds after which a job loses room in which not all of its pods have become ready.
    minimum_run_time : float
        Seconds for which a job is left as it is after it was started or changed.
    lease_seconds : float
        So long without a sign of life another controller waits before it takes over, as in
        Kubernetes' own leader election.

    Raises
    ------
    ValueError
        Naming the setting.

    Examples
    --------
    >>> ControllerSettings(slot_seconds=300, minimum_run_time=1000).minimum_run
    4
    """

    namespace: str = "oasis-system"
    name: str = "oasis-scheduler"
    slot_seconds: float = 60.0
    startup_seconds: float = 0.0
    resources: ResourceMap = DEFAULT_RESOURCES
    ps_share: Fraction | None = None
    horizon: int | None = None
    first_slot_at: float | None = None
    watched: str | None = None
    namespaced: tuple[str, ...] = ()
    node_selector: str | None = None
    pods_ready_timeout: float = 300.0
    minimum_run_time: float = 0.0
    lease_seconds: float = 15.0

    @property
    def minimum_run(self) -> int:
        """The minimum run time in slots, rounded up."""
        return math.ceil(self.minimum_run_time / self.slot_seconds)

    @property
    def controller(self) -> str:
        """``namespace/name``: as jobs name the controller that schedules them."""
        return f"{self.namespace}/{self.name}"

    def __post_init__(self) -> None:
        check_names(self.namespace, self.name)
        number(self.slot_seconds, "slot_seconds", above=True)
        number(self.lease_seconds, "lease_seconds", above=True)
        number(self.pods_ready_timeout, "pods_ready_timeout", above=True)
        number(self.minimum_run_time, "minimum_run_time")
        check_unique(self.namespaced, "namespaced", "namespaces")
        if self.namespaced and self.watched is not None:
            raise InputError("namespaced", "expected none where one namespace alone is watched")
