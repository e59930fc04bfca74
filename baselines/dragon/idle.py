"""For how long how much of each machine has been idle."""

from __future__ import annotations

import math


class IdleClock:
    """Since when how much of one resource has been free on each machine, without a break.

    What was idle last is taken into use first, so that the rest keeps its age; `use` takes what has
    been idle for longest.

    Parameters
    ----------
    machines : int
        Number of machines.

    Examples
    --------
    Two GPUs are free from time 0 on, two more from time 50; then one of these is taken:

    >>> clock = IdleClock(1)
    >>> for now, free in ((0.0, 2), (50.0, 4)):
    ...     clock.note(0, free, now)
    >>> clock.idle(0, 60.0, now=60.0), clock.idle(0, 10.0, now=60.0)
    (2, 4)
    >>> clock.note(0, 3, 70.0)
    >>> clock.idle(0, 60.0, now=70.0)
    2
    >>> clock.use(0, 2)  # two are left: one of the first and one of the others
    >>> clock.idle(0, 60.0, now=70.0), clock.idle(0, 20.0, now=70.0)
    (1, 2)
    """

    def __init__(self, machines: int) -> None:
        # by machine, amounts with the time since when so much has been free; both increase
        self._levels: list[list[tuple[int, float]]] = [[] for _ in range(machines)]

    def note(self, machine: int, free: int, now: float) -> None:
        """So much of `machine` is free from `now` on."""
        levels = self._levels[machine]
        since = now
        while levels and levels[-1][0] > free:
            since = levels.pop()[1]
        if free > (levels[-1][0] if levels else 0):
            levels.append((free, since))

    def use(self, machine: int, free: int) -> None:
        """What has been idle for longest on `machine` is used, until `free` is left."""
        levels = self._levels[machine]
        used = (levels[-1][0] if levels else 0) - free
        self._levels[machine] = [(level - used, since) for level, since in levels if level > used]

    def idle(self, machine: int, limit: float, now: float) -> int:
        """The amount of `machine` that has been free for `limit` or longer."""
        amounts = [amount for amount, since in self._levels[machine] if since + limit <= now]
        return amounts[-1] if amounts else 0

    def next_passing(self, machine: int, limit: float, now: float) -> float:
        """When some of `machine` will next have been free for `limit`; infinity: never."""
        return min(
            (since + limit for _, since in self._levels[machine] if since + limit > now),
            default=math.inf,
        )
