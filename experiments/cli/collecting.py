"""How often Python looks for unreachable cycles while a command is at work."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 200_000  # new objects from one look to the next; Python's own 700 suit small programs


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Inside, Python looks for cycles once in `SELDOM` new objects.

    Instances and runs are made of many objects that stay, and each look goes over many of them.
    What is in no cycle, nearly everything, is freed at once in any case. The looks that Python
    takes when the process ends are spared altogether: its memory is given back anyway.

    Examples
    --------
    >>> import gc
    >>> with seldom_collected():
    ...     print(gc.get_threshold()[0])
    200000
    >>> gc.get_threshold()[0] < SELDOM
    True
    """
    atexit.register(gc.freeze)
    former = gc.get_threshold()
    gc.set_threshold(SELDOM, *former[1:])
    try:
        yield
    finally:
        gc.set_threshold(*former)
