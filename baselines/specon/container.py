"""Algorithm 1 of SpeCon: how fast the training in a container still makes progress."""

from __future__ import annotations

import math
from enum import StrEnum

from oasis.scheduling import PolicyJob


class Category(StrEnum):
    """How fast a container progresses (section V-A): PC, WC and CC of the paper."""

    PROGRESSING = "progressing"
    WATCHING = "watching"
    CONVERGED = "converged"


class Container:
    """A job and what has been seen of its progress.

    Parameters
    ----------
    job : PolicyJob
        The job.
    observed : bool
        Whether anybody looks at its evaluation function.

    Attributes
    ----------
    home : int or None
        The machine where all of it runs; None if it waits or is spread over several.
    category : Category
        Of Algorithm 1.
    value, growth : float
        Value and growth (1) of the evaluation function when it was last looked at.
    largest : float
        The largest absolute value so far.
    converged_at : float or None
        When it was found to have converged, if it is in that category.
    migrated, rebalanced : bool
        Whether Algorithm 2 has decided on it, and whether Algorithm 3 has moved it.

    Examples
    --------
    A training whose loss falls ever more slowly: two looks show its first growth, and of the next
    ones each that is slower than alpha takes it one category further; then it asks to be moved.

    >>> container = Container(PolicyJob("a", 0.0, 1.0, ((0, 1),)))
    >>> for look, loss in enumerate((1.0, 0.2, 0.195, 0.192, 0.191)):
    ...     print(container.look(loss, 0.01, now=30.0 * look), container.category)
    False progressing
    False progressing
    False watching
    False converged
    True converged
    """

    def __init__(self, job: PolicyJob, observed: bool = True) -> None:
        self.job, self.observed = job, observed
        self.migrated = self.rebalanced = False
        self.begin_again()

    def begin_again(self) -> None:
        """Line 2: a container that joins a worker is progressing.

        One that lost its worker does so too, unless Algorithm 2 has decided on it, as it is then no
        longer looked at: it stays converged.
        """
        self.home: int | None = None
        if not self.migrated:
            self.category = Category.PROGRESSING
            self.converged_at: float | None = None
            self.value: float | None = None
            self.growth, self.largest = math.inf, 0.0

    def look(self, value: float, alpha: float, now: float) -> bool:
        """Lines 4-22: find the category at time t_m; whether the container asks to be moved.

        Read, where Algorithm 1 says something else than the text of section V-A or leaves it open:

        - Lines 10-12 move a watching container to the watching category, so that none would ever
          converge; the text moves it to the converged category.
        - As printed, the conditions of lines 7, 10 and 13 are looked at one after the other, so
          that a container could go through all of them at once; the text has them for where the
          container "currently" is, one step each time.
        - alpha is "a percentage value" of a growth whose unit is that of the evaluation function
          (Fig. 1 shows "normalized values"): the growth is taken as part of the largest value seen.
        - There is no last growth when the first one is seen: that one counts as slower.
        - A growth of exactly alpha, which the paper leaves out, changes nothing.

        Parameters
        ----------
        value : float
            Of the evaluation function.
        alpha : float
            A growth below this part of the largest value so far is slow.
        now : float
            The time.
        """
        last, self.value = self.value, value
        self.largest = max(self.largest, abs(value))
        if last is None:
            return False
        growth, before = abs(value - last), self.growth
        self.growth = growth
        share = growth / self.largest if self.largest else 0.0
        if share > alpha:
            self.category, self.converged_at = Category.PROGRESSING, None
        elif share < alpha and growth < before:
            if self.category is Category.CONVERGED:
                return True
            if self.category is Category.WATCHING:
                self.category, self.converged_at = Category.CONVERGED, now
            else:
                self.category = Category.WATCHING
        return False
