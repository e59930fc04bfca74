"""Kinds of jobs, for pictures of more jobs than can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oasis.model.job import Job
from oasis.model.utility import Sigmoid

ClassOf = Callable[[Job], str]
CRITICAL = 4.0  # gamma2 per slot from which section V of the paper calls a job time-critical
NAMES = ("time-critical", "time-sensitive", "time-insensitive")


def urgency(job: Job) -> str:
    """How much a job suffers from waiting: the classes of the paper's section V, else its kind.

    Examples
    --------
    >>> import oasis
    >>> jobs = oasis.generate("testbed", jobs=3, seed=1).jobs
    >>> [urgency(job) for job in jobs]
    ['time-sensitive', 'time-sensitive', 'time-critical']
    """
    utility = job.utility
    if not isinstance(utility, Sigmoid):
        return str(getattr(utility, "kind", type(utility).__name__))
    if utility.decay <= 0:
        return NAMES[2]
    return NAMES[0] if utility.decay >= CRITICAL else NAMES[1]


def by_class(jobs: Sequence[Job], class_of: ClassOf = urgency) -> dict[str, list[Job]]:
    """Jobs of each class in the order given; the most urgent class first, others by name."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(class_of(job), []).append(job)
    known = [name for name in NAMES if name in found]
    return {name: found[name] for name in [*known, *sorted(found.keys() - set(NAMES))]}
