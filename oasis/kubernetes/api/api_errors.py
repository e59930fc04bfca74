"""What an API server answers when it does not do what it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oasis.model.errors import OasisError


class ApiError(OasisError):
    """An answer that is no success.

    Parameters
    ----------
    method, path : str
        Of the request.
    status : int
        HTTP status.
    reason : str
        Word of the server, such as ``Conflict``; empty if it gave none.
    message : str
        Sentence of the server.
    retry_after : float or None
        Seconds to wait, if the server said so.

    Examples
    --------
    >>> print(ApiError("GET", "/api/v1/nodes", 403, "Forbidden", "no rights"))
    GET /api/v1/nodes: 403 Forbidden: no rights
    """

    def __init__(
        self,
        method: str,
        path: str,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{method} {path}: {status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message
        self.retry_after = retry_after


class LostAnswerError(OasisError):
    """No answer came: the request may have been carried out, or not.

    Parameters
    ----------
    method, path : str
        Of the request.
    message : str
        What went wrong.
    never_sent : bool
        Whether it is known that the server has not seen it.

    Examples
    --------
    >>> print(LostAnswerError("GET", "/api/v1/nodes", "timed out"))
    GET /api/v1/nodes: no answer: timed out
    """

    def __init__(self, method: str, path: str, message: str, never_sent: bool = False) -> None:
        super().__init__(f"{method} {path}: no answer: {message}")
        self.never_sent = never_sent


def parsed_error(
    method: str, path: str, status: int, content: bytes, headers: Mapping[str, Any]
) -> ApiError:
    """The error that an answer is; its body may be a Status object or plain text."""
    reason, message = "", content.decode("utf-8", "replace").strip()[:300]
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if isinstance(found, dict):
        reason, message = str(found.get("reason") or ""), str(found.get("message") or "")
    return ApiError(method, path, status, reason, message, _seconds(headers.get("Retry-After")))


def _seconds(value: Any) -> float | None:
    """Retry-After in seconds; a date is left out, API servers send none."""
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return None
