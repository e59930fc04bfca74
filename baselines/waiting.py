"""Queues that stay fast when they are long: waiting jobs by size, and ends of running jobs."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush

ROUNDING = 1e-9  # relative, of times


def _waits(work: float) -> bool:
    return work < math.inf


class Waiting:
    """Jobs of one size that wait, by their index, with the work of each.

    A tree of the least work of each half finds the next job that has no more than so much, without
    a look at those before it: on an overloaded cluster, hundreds of thousands wait.

    Examples
    --------
    >>> waiting = Waiting()
    >>> for index, work in ((3, 50.0), (5, 10.0), (8, 20.0)):
    ...     waiting.enter(index, work)
    >>> waiting.next(3, set(), lambda work: work <= 30), waiting.next(5, {True}, lambda work: True)
    (5, None)
    >>> waiting.leave(5)
    >>> waiting.next(3, {False}, lambda work: work <= 30), bool(waiting)
    (8, True)
    """

    def __init__(self) -> None:
        self._indices: list[int] = []  # of those that wait or waited, in order
        self._leaves = 1  # of the tree
        self._least = [math.inf, math.inf]  # by node: the root is 1, below k are 2 k and 2 k + 1
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def enter(self, index: int, work: float) -> None:
        """Add a waiting job."""
        self._count += 1
        place = bisect_left(self._indices, index)
        is_there = self._indices[place : place + 1] == [index]
        if not is_there and (place < len(self._indices) or place == self._leaves):
            # One that came before others comes back, or the tree is full.
            self._rebuild(index)
            place = bisect_left(self._indices, index)
        elif not is_there:
            self._indices.append(index)
        self._set(place, work)

    def leave(self, index: int) -> None:
        """Remove a waiting job."""
        self._count -= 1
        self._set(bisect_left(self._indices, index), math.inf)

    def has_after(self, index: int) -> bool:
        """Return whether a job with a larger index waits."""
        return self._find(index, _waits) is not None

    def next(
        self, after: int, failed: Collection[bool], is_quick: Callable[[float], bool]
    ) -> int | None:
        """The next job behind `after` of a kind, quick or not, that has not `failed`.

        A job is quick if one with more work is.
        """
        if True not in failed:
            fits = is_quick if False in failed else _waits
            return self._find(after, lambda work: _waits(work) and fits(work))
        found = None if False in failed else self._find(after, _waits)
        while found is not None and is_quick(self._work(found)):
            found = self._find(found, _waits)
        return found

    def _work(self, index: int) -> float:
        return self._least[self._leaves + bisect_left(self._indices, index)]

    def _rebuild(self, index: int) -> None:
        """Rebuild the tree with a leaf for `index`, without jobs that no longer wait."""
        works = self._least[self._leaves : self._leaves + len(self._indices)]
        kept = {i: work for i, work in zip(self._indices, works, strict=True) if _waits(work)}
        self._indices = sorted((*kept, index))
        # Twice as many leaves as jobs at least, so that a rebuild pays for as many arrivals.
        self._leaves = 1 << (2 * len(self._indices)).bit_length()
        row = [kept.get(i, math.inf) for i in self._indices]
        row += [math.inf] * (self._leaves - len(row))
        levels = [row]
        while len(levels[-1]) > 1:
            below = levels[-1]
            levels.append(list(map(min, below[::2], below[1::2])))
        self._least = [math.inf, *(work for level in reversed(levels) for work in level)]

    def _set(self, place: int, work: float) -> None:
        least, node = self._least, self._leaves + place
        least[node] = work
        node //= 2
        while node:
            least[node] = min(least[2 * node], least[2 * node + 1])
            node //= 2

    def _find(self, after: int, fits: Callable[[float], bool]) -> int | None:
        """First job behind `after` whose work `fits`; with a work all smaller ones fit, too."""
        # A node has the least work below it: if that does not fit, nothing below it does.
        place = bisect_right(self._indices, after)
        if place == len(self._indices):
            return None
        least, node = self._least, self._leaves + place
        while not fits(least[node]):
            # Up as long as there is nothing on the right, and then to the right.
            while node % 2:
                node //= 2
            if not node:
                return None
            node += 1
        while node < self._leaves:
            node = 2 * node if fits(least[2 * node]) else 2 * node + 1
        return self._indices[node - self._leaves]


class Ends:
    """Earliest ends of running jobs; exact ends are computed in order, on request.

    Examples
    --------
    >>> ends = Ends()
    >>> for index, end in ((1, 30.0), (2, 10.0), (3, 20.0)):
    ...     ends.add(index, end)
    >>> ends.remove(3)
    >>> list(ends.in_order([(20.0, 7)], lambda index: {1: 30.0, 2: 25.0}[index]))
    [(20.0, 7), (25.0, 2), (30.0, 1)]
    """

    def __init__(self) -> None:
        self._bounds: list[tuple[float, int]] = []
        self._of: dict[int, float] = {}

    def add(self, index: int, bound: float) -> None:
        """Note that a job ends at `bound` or later."""
        self._of[index] = bound
        insort(self._bounds, (bound, index))

    def remove(self, index: int) -> None:
        """Forget a job, if it is here."""
        bound = self._of.pop(index, None)
        if bound is not None:
            del self._bounds[bisect_left(self._bounds, (bound, index))]

    def in_order(
        self, more: Sequence[tuple[float, int]], end: Callable[[int], float]
    ) -> Iterator[tuple[float, int]]:
        """All jobs and `more` by their ends; `end` is called only for the jobs that are taken."""
        found, bounds = list(more), iter(self._bounds)
        heapify(found)
        following = next(bounds, None)
        while found or following:
            # Rounding may move an end a little: those that end together are found together.
            while following and (
                not found or following[0] <= found[0][0] + ROUNDING * (1 + abs(found[0][0]))
            ):
                heappush(found, (end(following[1]), following[1]))
                following = next(bounds, None)
            yield heappop(found)
