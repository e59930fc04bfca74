"""Limits as people write them: ``90s``, ``5m``, ``1h``, ``500ms``; ``5%``."""

from __future__ import annotations

import math
from typing import Any

from oasis.model.errors import InputError
from oasis.traces.times import elapsed_seconds


class Duration(float):
    """Seconds that were written with a unit of time, so that they are no units of work."""


def read_seconds(value: Any, what: str = "seconds", *, is_time: bool = True) -> float:
    """A number of seconds >= 0, or infinity."""
    parsed = _number(value)
    if parsed is None and is_time and isinstance(value, str):
        # A limit of 1:30 may be minutes or hours.
        seconds = math.nan if ":" in value else elapsed_seconds(value.strip())
        parsed = None if math.isnan(seconds) else Duration(seconds)
    if parsed is None or not parsed >= 0:  # nor is NaN
        is_number = parsed is not None or not is_time
        forms = "" if is_number else " (such as 90, 90s, 5m, 1h or 500ms)"
        raise InputError("", f"expected {what} >= 0, or inf{forms}, got {_shown(value, parsed)}")
    return parsed


def read_share(value: Any) -> float:
    """A share from 0 to 1, or infinity: ``0.05`` and ``5%`` are the same."""
    text = value.strip() if isinstance(value, str) else ""
    parsed = _number(text[:-1], 100.0) if text.endswith("%") else _number(value)
    # Above 1 it is 5 for 5 % more likely than 500 %.
    if parsed is None or not (0 <= parsed <= 1 or parsed == math.inf):
        forms = "from 0 to 1, such as 0.05 or 5%, or inf"
        raise InputError("", f"expected a share {forms}, got {_shown(value, parsed)}")
    return parsed


def share_hint(value: Any) -> str:
    """Advice to whoever gave a percentage where a plain number is read; empty for others."""
    text = value.strip() if isinstance(value, str) else ""
    share = _number(text[:-1], 100.0) if text.endswith("%") else None
    return "" if share is None else f"; a share is a number from 0 to 1, {share:g} for {text}"


def _number(value: Any, divisor: float = 1.0) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) / divisor
    except (ValueError, OverflowError):
        return None


def _shown(value: Any, parsed: float | None) -> str:
    return repr(value) if parsed is None else f"{parsed:g}"
