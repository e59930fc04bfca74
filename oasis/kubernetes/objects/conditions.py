"""Conditions of a job: their types, reasons and messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from oasis.kubernetes.names import KIND
from oasis.kubernetes.objects.schema import checked, schema_of
from oasis.model.decision import Decision
from oasis.model.errors import InstanceError, OasisError, describe

ADMITTED, PLACED, COMPLETE, LATE, VALID = "Admitted", "Placed", "Complete", "Late", "Valid"
IN_STATE = "PolicyState"
STALLED = "Stalled"
UNDERESTIMATED = "Underestimated"
OVERRUN = "Overrun"
GATED = "Gated"
BAD_IF_TRUE = frozenset({LATE, STALLED, UNDERESTIMATED, OVERRUN, GATED})

# (beginning of a policy's reason, word for the condition)
REASONS = (
    ("payoff not positive", "PayoffNonPositive"),
    ("no room", "NoRoom"),
    ("does not fit", "NoRoom"),
    ("cannot finish", "DeadlineUnreachable"),
    ("worth nothing", "DeadlineUnreachable"),
    ("given up", "GivenUp"),
)


LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()  # that its format can say


def reason_word(reason: str) -> str:
    """Return the word in a condition for a policy's reason, such as NoRoom; else Rejected."""
    return next((word for begin, word in REASONS if reason.startswith(begin)), "Rejected")


def error_text(error: BaseException) -> str:
    """Return an exception in one line, without its class if it is an `OasisError`."""
    text = " ".join(str(error).split())
    if isinstance(error, OasisError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def time_text(time: float) -> str:
    """Return `time` as Kubernetes writes it, in UTC; at most the last second of the year 9999."""
    return datetime.fromtimestamp(min(time, LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def said(item: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return the condition of type `kind` of an object; empty if it has none."""
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == kind), {})


def with_condition(
    conditions: Iterable[Mapping[str, Any]],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: float,
    generation: int,
) -> list[dict[str, Any]]:
    """Return `conditions` with that of type `kind` set; its time changes only with `status`."""
    by_kind = {entry["type"]: dict(entry) for entry in conditions}
    before = by_kind.get(kind)
    since = time_text(now)
    if before is not None and before["status"] == status:
        since = before["lastTransitionTime"]
    by_kind[kind] = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:1024],
        "lastTransitionTime": since,
        "observedGeneration": generation,
    }
    # In one order, so that a status that says the same is equal, and is not written again.
    return [by_kind[kind] for kind in sorted(by_kind)]


def decision_message(decision: Decision | None, reason: str, completes: str | None) -> str:
    """Explain an admission decision: its numbers, and what would have to change."""
    # The `reason` is that of the policy; empty if it admitted the job.
    if decision is None:
        return reason or "accepted: the policy serves it as soon as its order allows"
    if decision.admitted:
        if decision.completion is None:
            return decision.reason or "accepted"
        when = f" and is planned to complete by {completes}" if completes else ""
        return f"worth {decision.utility:.6g}, costs {decision.cost:.6g}{when}"
    rejection = decision.rejection
    if rejection is None:
        return f"{reason}; no utility would have got it admitted"
    parts = [f"{reason}; admitted if it were worth more than {rejection.smallest_utility:.6g}"]
    if rejection.utility_factor is not None:
        parts.append(
            f", or its utility were multiplied by more than {rejection.utility_factor:.6g}"
        )
    spot = rejection.bottleneck
    if spot is not None:
        servers = ", ".join(spot.servers[:5]) + (" .." if len(spot.servers) > 5 else "")
        parts.append(
            f"; {spot.share:.0%} of the cost is {spot.resource} of the {spot.group} nodes {servers}"
        )
    return "".join(parts)


def read_status(written: str) -> dict[str, Any]:
    """Parse the status in an annotation, which is JSON; an `InstanceError` says what is wrong."""
    try:
        status = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InstanceError("", f"expected JSON, got {describe(written)}: {error}") from None
    parsed: dict[str, Any] = checked(schema_of(KIND)["status"], status)
    return parsed
