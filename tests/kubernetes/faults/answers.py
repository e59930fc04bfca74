"""Answers as an API server gives them when something is wrong."""

from __future__ import annotations

import json

RETRY_AFTER = "1"
REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status(code: int) -> dict[str, object]:
    """A Status object of `code`."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "injected by the test",
        "reason": REASONS[code],
        "code": code,
    }


def refusal(code: int) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an answer of `code`; 429 is plain text, as the API server's own is."""
    if code == 429:
        text = b"Too many requests, please try again later.\n"
        return text, {"Content-Type": "text/plain; charset=utf-8", "Retry-After": RETRY_AFTER}
    return json.dumps(status(code)).encode(), {"Content-Type": "application/json"}


def watch_expired() -> bytes:
    """The event by which a watch says that its resourceVersion is too old."""
    return json.dumps({"type": "ERROR", "object": status(410)}).encode() + b"\n"
