"""Slots that are as short as the machine allows.

What is decided on a cluster can be compared with a simulation only if the pods of each slot were
there in time. The controller counts the worker-slots that were not; where there are any, the run is
made again with slots that are twice as long.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

SLOTS = tuple(float(text) for text in os.environ.get("OASIS_SLOTS", "2,4,8,16").split(","))


def lost_slots(controllers: Mapping[str, Any]) -> dict[str, float]:
    """Worker-slots that were planned and not worked, by name of the controller; only where any."""
    found = {
        name: controller.metrics.lost._value.get()  # the library has no public reader
        for name, controller in controllers.items()
    }
    return {name: amount for name, amount in found.items() if amount}


def compared(
    run: Callable[[float, tuple[str, ...]], tuple[dict[str, Any], dict[str, float]]],
    names: tuple[str, ...],
) -> dict[str, Any]:
    """What differs where nothing was late.

    Parameters
    ----------
    run : callable
        Takes the length of a slot and names; gives what differs from the simulation, and what was
        late, by name. A name that differs and was late is run again, more slowly.
    names : tuple of str
        What is to be compared.

    Raises
    ------
    TimeoutError
        If the machine is too slow even for the longest slots.
    """
    differ: dict[str, Any] = {}
    for slot in SLOTS:
        found, late = run(slot, names)
        differ |= {name: what for name, what in found.items() if name not in late}
        print(f"slots of {slot:g} s: {names}: late {late}, differ {sorted(found)}")  # noqa: T201
        names = tuple(name for name in names if name in found and name in late)
        if not names:
            return differ
    raise TimeoutError(f"{names}: pods came late even in slots of {SLOTS[-1]:g} s")
