"""Policies that keep the jobs that wait in one line, and whether one may be passed in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baselines.counts import FixedCounts
from baselines.placing import Placing
from oasis.scheduling import BasePolicy, JobBook, PolicyJob, Site

STRICT, FIT = "strict", "fit"


def check_line(line: str) -> str:
    """`line`, if it is one.

    Parameters
    ----------
    line : str
        ``strict``: the first job that does not fit blocks all behind it; ``fit``: it alone waits,
        and those behind it take what there is.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> check_line("backfill")
    Traceback (most recent call last):
    ValueError: line: expected strict or fit, got 'backfill'
    """
    if line not in (STRICT, FIT):
        raise ValueError(f"line: expected {STRICT} or {FIT}, got {line!r}")
    return line


class Misfits:
    """Sizes of jobs that did not fit at one instant: one more job of such a size is not tried.

    What is free only shrinks while a policy serves its line, so the answer would be the same. On a
    full cluster this makes a long line cheap.

    Examples
    --------
    >>> misfits = Misfits()
    >>> first, second = (PolicyJob(name, 0.0, 1.0, ((0, 1),), max_workers=4) for name in "ab")
    >>> misfits.add(first, 4, 0)
    >>> misfits.has(second, 4, 0), misfits.has(second, 3, 0)
    (True, False)
    """

    def __init__(self) -> None:
        self._sizes: set[tuple[object, ...]] = set()

    def has(self, job: PolicyJob, workers: int, ps: int) -> bool:
        """Whether a job of the size of `job`, with so many tasks, did not fit."""
        return bool(self._sizes) and (job.worker, job.ps, workers, ps) in self._sizes

    def add(self, job: PolicyJob, workers: int, ps: int) -> None:
        """Note that `job` did not fit with so many tasks."""
        self._sizes.add((job.worker, job.ps, workers, ps))


class OneLine(BasePolicy):
    """What the policies share that serve jobs of fixed counts in one order.

    Parameters
    ----------
    seed : int or None
        Of the counts (`FixedCounts`); None: nothing is drawn.
    line : {"strict", "fit"}
        Whether a job that does not fit blocks those behind it.
    placement : str or None
        As for `Placing`.
    """

    def __init__(
        self, seed: int | None = 0, *, line: str = STRICT, placement: str | None = None
    ) -> None:
        self._seed, self.line = seed, check_line(line)
        self._counts, self._placing = FixedCounts(seed), Placing(placement)

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"seed": self._seed, "line": self.line, **self._placing.parameters}

    def reset(self, site: Site) -> None:
        self._site = site
        self._placement = self._placing.on(site)
        self._counts.reset(self._placing.empty(site))
        self._book = JobBook(self._counts.draw)
