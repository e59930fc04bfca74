"""A job in one period: its variables, its rows, and its utilities as a few steps."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from offline.model.constraints import ps_ratio
from offline.model.variables import JobVariables
from offline.periods.rows import Row, at_least, at_most


@dataclass(frozen=True, slots=True)
class Part:
    """The variables of a job in one period, by number.

    Parameters
    ----------
    job : int
        Index into the jobs of the master.
    done : mapping of int to int
        Whether the job has completed in this period by the end of a slot; by slot, in order.
    workers : mapping of int to int
        Its workers, by slot.
    enters, brought : int or None
        Whether it enters the period unfinished, and the worker-slots that it brings along; None in
        the period of its arrival.
    leaves, taken : int or None
        Whether it leaves the period unfinished, and the worker-slots that it takes along; None in
        the last period in which it can be worth something.
    most_brought : float
        Most worker-slots that it can bring along.
    """

    job: int
    done: Mapping[int, int]
    workers: Mapping[int, int]
    enters: int | None
    brought: int | None
    leaves: int | None
    taken: int | None
    most_brought: float

    def before(self, slot: int) -> int | None:
        """The variable that says whether it has completed before a slot; None if it cannot have."""
        found = None
        for completion, column in self.done.items():
            if completion >= slot:
                break
            found = column
        return found


def utility_steps(utility: Mapping[int, float], step: float) -> dict[int, float]:
    """Utilities of completions that count as one: the last slot of each, and the first's utility.

    Utilities that count as one differ by `step` times the best one at most.

    Examples
    --------
    >>> utility_steps({4: 10.0, 5: 10.0, 6: 9.5, 7: 1.0}, 0.05)
    {6: 10.0, 7: 1.0}
    """
    steps: dict[int, float] = {}
    allowed, value = step * max(utility.values()), 0.0
    last = None
    for slot, worth in sorted(utility.items()):
        if last is None or value - worth > allowed:
            value = worth
        else:
            del steps[last]
        steps[slot], last = value, slot
    return steps


def ps_a_worker(c: JobVariables) -> float:
    """Parameter servers that a worker needs at least, (6); 0 if some workers need none."""
    ratio = ps_ratio(c.job, c.parallel) if c.ps else None
    return 0.0 if ratio is None or ratio[2] > 0 else ratio[0] / ratio[1]


def ps_of_all(c: JobVariables) -> int:
    """Parameter servers of a job when all its workers run."""
    return int(c.job.ps_needed(c.parallel)) if c.ps else 0


def rows_of(c: JobVariables, part: Part, most_taken: float) -> list[Row]:
    """The rows of a job in one period."""
    parallel, work = float(c.parallel), float(c.work)
    chain = list(part.done.values())
    rows = [at_least({b: 1.0, a: -1.0}) for a, b in itertools.pairwise(chain)]
    admitted = {column: 1.0 for column in (*chain[-1:], part.leaves) if column is not None}
    if part.enters is None or part.brought is None:
        rows.append(at_most(admitted, 1.0))
    else:
        rows.append(at_most({**admitted, part.enters: -1.0}))
        rows.append(at_most({part.brought: 1.0, part.enters: -part.most_brought}))
    brought = {} if part.brought is None else {part.brought: 1.0}
    for slot, workers in part.workers.items():  # (3): none unless the job is running
        terms = {workers: 1.0} | dict.fromkeys(admitted, -parallel)
        before = part.before(slot)
        if before is not None:
            terms[before] = terms.get(before, 0.0) + parallel
        rows.append(at_most(terms))
    for slot, done in part.done.items():  # (2): a job done by then has had its work
        had = {column: 1.0 for t, column in part.workers.items() if t <= slot}
        rows.append(at_least({**had, **brought, done: -work}))
    if part.leaves is not None and part.taken is not None:
        terms = dict.fromkeys(part.workers.values(), -1.0)
        terms |= dict.fromkeys(brought, -1.0) | {part.taken: 1.0}
        terms |= dict.fromkeys(chain[-1:], work)
        rows.append(at_most(terms))
        rows.append(at_most({part.taken: 1.0, part.leaves: -most_taken}))
    return rows
