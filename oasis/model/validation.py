"""Checks of numbers, names and lists, shared by all classes that validate their fields."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oasis.model.errors import InstanceError

LARGEST_COUNT = 2**53  # up to here every integer is a float, beyond it no longer
LARGEST_SIZE = 10**6  # of slots and of servers, because arrays have a row for each
LARGEST_AMOUNT = 1e30  # of a resource, a size or a utility: beyond it, sums and products overflow
SMALLEST_AMOUNT = 1e-30  # of a resource or a slot, but for 0: below it, quotients overflow
LARGEST_SEED = 2**31 - 1  # that HiGHS takes; NumPy takes larger ones


def number(
    value: Any,
    path: str,
    *,
    minimum: float = 0.0,
    above: bool = False,
    maximum: float = math.inf,
) -> float:
    """Return `value` as a finite float from `minimum` (not itself, if `above`) to `maximum`."""
    if type(value) is float and minimum < value <= maximum and value < math.inf:
        return value  # nearly all numbers are such: what follows takes ten times as long
    limit = f" {'>' if above else '>='} {minimum:g}" if minimum > -math.inf else ""
    expected = f"expected a finite number{limit}"
    # True is an integer for Python, and never meant as a number in a file.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InstanceError(path, expected, value)
    try:
        result = float(value)
    except OverflowError:
        raise InstanceError(path, f"{expected}, got an integer too large for a float") from None
    if not math.isfinite(result) or result < minimum or (above and result == minimum):
        raise InstanceError(path, expected, value)
    if result > maximum:
        raise InstanceError(path, f"expected a number <= {maximum:g}", value)
    return result


def amount(value: Any, path: str) -> float:
    """Return `value` as a float that is 0, or from `SMALLEST_AMOUNT` to `LARGEST_AMOUNT`."""
    result = number(value, path, maximum=LARGEST_AMOUNT)
    if 0.0 < result < SMALLEST_AMOUNT:
        expected = f"expected 0 or a number >= {SMALLEST_AMOUNT:g}"
        raise InstanceError(path, expected, value)
    return result


def integer(value: Any, path: str, *, minimum: int = 0, maximum: int = LARGEST_COUNT) -> int:
    """Return `value` as an int from `minimum` to `maximum`; floats and booleans are refused."""
    if type(value) is int and minimum <= value <= maximum:
        return value
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < minimum:
        raise InstanceError(path, f"expected an integer >= {minimum}", value)
    if value > maximum:
        raise InstanceError(path, f"expected an integer <= {maximum}", value)
    return int(value)


def text(value: Any, path: str) -> str:
    """Return `value` if it is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise InstanceError(path, "expected a non-empty string", value)
    return value


def check_unique(names: Iterable[str], path: str, what: str, suffix: str = "") -> None:
    """Raise `InstanceError` at ``path[k]suffix`` for the first repeated name."""
    seen: set[str] = set()
    for k, name in enumerate(names):
        if name in seen:
            raise InstanceError(f"{path}[{k}]{suffix}", f"duplicate {what} {name!r}")
        seen.add(name)


def check_list(value: Any, path: str) -> Sequence[Any]:
    """Return `value` if it is a list."""
    if not isinstance(value, (list, tuple)):
        raise InstanceError(path, "expected a list", value)
    return value


def check_keys(data: Any, required: Sequence[str], optional: Sequence[str] = ()) -> None:
    """Raise `InstanceError` unless `data` is an object with these keys and no others."""
    if not isinstance(data, Mapping):
        raise InstanceError("", "expected an object", data)
    for name in data:
        if name not in required and name not in optional:
            known = ", ".join((*required, *optional))
            raise InstanceError(str(name), f"unknown key; expected one of {known}")
    for name in required:
        if name not in data:
            raise InstanceError(name, "missing; this key is required")
