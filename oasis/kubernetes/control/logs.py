"""The controller's log: lines for people, or one JSON object a line for machines."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

LOG_FORMATS = ("text", "json")
TEXT = "%(asctime)s %(levelname)s %(message)s"
FIELDS = ("slot", "job", "reason", "action", "pod", "node", "seconds", "count")


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: time, level, message, and what `FIELDS` it was given.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "a slot begins", "levelname": "INFO", "slot": 3})
    >>> made = json.loads(JsonFormatter().format(record))
    >>> made["message"], made["level"], made["slot"]
    ('a slot begins', 'info', 3)
    """

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        found |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            found["error"] = self.formatException(record.exc_info)
        return json.dumps(found)


def handler(form: str) -> logging.Handler:
    """A handler that writes to standard error in one of `LOG_FORMATS`.

    Examples
    --------
    >>> type(handler("json").formatter).__name__
    'JsonFormatter'
    """
    made = logging.StreamHandler()
    made.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(TEXT))
    return made
