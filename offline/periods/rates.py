"""Rows that say how fast the part of a job can work that completes by a slot.

With completions in fractions, a job that is done to one half by slot k could do the work of that
half at the speed of the whole. Let C(k) say whether the job has completed in its period by the end
of slot k, y(t) be its workers, N the most of them, W its work, and b of at most B the work that it
brings along. The part done by k works at most at the speed N (C(k) - C(t - 1)) in slot t:

    sum over t <= k of min(y(t), N (C(k) - C(t - 1))) + min(b, B C(k)) >= W C(k).

Every schedule keeps it: if C(k) = 1, the job has done its work by its completion, and before that
both terms of each minimum allow for all its workers; if C(k) = 0, nothing is asked for. The minimum
is at most either of its terms, so that any choice of terms gives a linear row that holds. The row
that a solution breaks most has the smaller one of each.

References
----------
Balas, Disjunctive programming, Annals of Discrete Mathematics 5, 1979: the rows are a projection
of the model in which each completion of a job has workers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from oasis.model.rounding import FloatArray
from offline.model.variables import JobVariables
from offline.periods.model import PeriodModel
from offline.periods.parts import Part
from offline.periods.rows import Row, at_least

CLEAR = 2e-3  # of a job's work: by how much a row must be broken
SOME = 1e-6  # a smaller part of a completion is only HiGHS's rounding


def keep_rates(model: PeriodModel, values: FloatArray) -> int:
    """Add the rows that a solution of all periods breaks clearly; how many."""
    broken = [
        (number, row)
        for number, parts in enumerate(model.parts)
        for part in parts
        for row in broken_rates(model.master.jobs[part.job], part, values)
    ]
    for number, row in broken:
        model.add(number, row)
    return len(broken)


def broken_rates(c: JobVariables, part: Part, values: FloatArray) -> Iterator[Row]:
    """The rows of one part that a solution breaks clearly."""
    previous = 0.0
    for slot, done in part.done.items():
        completed = float(values[done])
        if completed - previous > SOME:
            row = rate_row(c, part, slot, values)
            sides = sum(value * values[column] for column, value in row.terms.items())
            if sides < -CLEAR * c.work:
                yield row
        previous = completed


def rate_row(c: JobVariables, part: Part, slot: int, values: FloatArray) -> Row:
    """The row of completions up to `slot` with the smaller term of each minimum in a solution."""
    done = part.done[slot]
    terms = {done: -float(c.work)}
    if part.brought is not None:
        if values[part.brought] <= part.most_brought * values[done]:
            terms[part.brought] = 1.0
        else:
            terms[done] += part.most_brought
    for t, workers in part.workers.items():
        if t > slot:
            break
        before = part.before(t)
        share = values[done] - (0.0 if before is None else values[before])
        if values[workers] <= c.parallel * share:
            terms[workers] = 1.0
        else:
            terms[done] += c.parallel
            if before is not None:
                terms[before] = terms.get(before, 0.0) - c.parallel
    return at_least(terms)
