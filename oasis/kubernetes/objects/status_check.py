"""Whether a status that was read from an annotation is one that we can have written.

The API server checks the status of an ``OasisJob`` against its schema. What stands for it on other
kinds is an annotation, which anybody may edit who may edit the object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oasis.kubernetes.objects.schema import PHASES
from oasis.model.errors import InstanceError, located_at
from oasis.model.validation import check_list, describe, integer, number, text

WHOLE = ("arrivalSlot", "promisedSlot", "completionSlot", "workers", "observedGeneration")
AMOUNTS = {
    "progress": ("workerSeconds", "total", "percent"),
    "resizes": ("count", "restarts", "seconds", "lastSeconds"),
}
CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")


def read_status(written: str) -> dict[str, Any]:
    """The status that an annotation holds.

    Parameters
    ----------
    written : str
        JSON text.

    Raises
    ------
    InstanceError
        Naming the field that we cannot have written, and what was expected there.

    Examples
    --------
    >>> read_status('{"phase": "Waiting", "arrivalSlot": 3}')
    {'phase': 'Waiting', 'arrivalSlot': 3}
    >>> read_status('{"arrivalSlot": "x"}')
    Traceback (most recent call last):
        ...
    oasis.model.errors.InstanceError: arrivalSlot: expected an integer >= 0, got 'x'
    """
    try:
        status = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InstanceError("", f"expected JSON, got {describe(written)}: {error}") from None
    _object(status, "")
    if "phase" in status and status["phase"] not in PHASES:
        expected = f"expected one of {', '.join(PHASES)}, got {describe(status['phase'])}"
        raise InstanceError("phase", expected)
    for name in WHOLE:
        if name in status:
            integer(status[name], name)
    if "utility" in status:
        number(status["utility"], "utility")
    if "promisedCompletion" in status:
        text(status["promisedCompletion"], "promisedCompletion")
    for name, amounts in AMOUNTS.items():
        found = _object(status.get(name, {}), name)
        for amount in amounts:
            if amount in found:
                number(found[amount], f"{name}.{amount}")
    for k, entry in enumerate(check_list(status.get("conditions", []), "conditions")):
        path = f"conditions[{k}]"
        for name in CONDITION:
            _string(_object(entry, path).get(name), f"{path}.{name}")
    for k, entry in enumerate(check_list(status.get("plan", []), "plan")):
        with located_at(f"plan[{k}]"):
            _slot(entry)
    return dict(status)


def _slot(entry: Any) -> None:
    """One slot of the plan: how many tasks on which nodes."""
    integer(_object(entry, "").get("slot"), "slot")
    for task in ("workers", "parameterServers"):
        for node, count in _object(entry.get(task, {}), task).items():
            integer(count, f"{task}.{node}")


def _object(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InstanceError(path, f"expected an object, got {describe(value)}")
    return value


def _string(value: Any, path: str) -> None:
    if not isinstance(value, str):  # a message may be empty
        raise InstanceError(path, f"expected a string, got {describe(value)}")
