"""The kinds of utilities that instances of the library have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from oasis.model.instance import Instance
from oasis.model.utility import Deadline, Piecewise, Sigmoid, Utility
from oasis.workloads.presets import MIX

MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of utilities.

    Parameters
    ----------
    mix : tuple of float
        Shares of time-insensitive, time-sensitive and time-critical jobs that are generated.
    change : callable
        Turns the utility that was generated for a job into one of this kind.
    """

    mix: tuple[float, float, float]
    change: Callable[[Sigmoid], Utility]


def _same(utility: Sigmoid) -> Utility:
    return utility


def _deadline(utility: Sigmoid) -> Utility:
    """A utility of the whole priority up to the target, and of nothing after it."""
    return Deadline(value=utility.priority, deadline=utility.target)


def _linear(utility: Sigmoid) -> Utility:
    """A utility that falls from the priority at once to 0 at twice the target, in a line."""
    return Piecewise(delays=(0.0, 2 * utility.target), values=(utility.priority, 0.0))


UTILITIES: Mapping[str, Kind] = {
    MIXED: Kind(MIX, _same),
    "critical": Kind((0.0, 0.0, 1.0), _same),
    "deadline": Kind(MIX, _deadline),
    "linear": Kind(MIX, _linear),
}


def with_utilities(instance: Instance, kind: str) -> Instance:
    """The instance with utilities of that kind, everything else as it was generated.

    Parameters
    ----------
    instance : Instance
        With sigmoid utilities, as the generator makes them.
    kind : str
        One of `UTILITIES`.

    Examples
    --------
    A deadline at the target of each job's sigmoid, worth its priority:

    >>> import oasis
    >>> from experiments.library.utilities import with_utilities
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> before, after = instance.jobs[0], with_utilities(instance, "deadline").jobs[0]
    >>> after.utility.value == before.utility.priority
    True
    """
    change = UTILITIES[kind].change
    jobs = []
    for job in instance.jobs:
        assert isinstance(job.utility, Sigmoid)
        jobs.append(replace(job, utility=change(job.utility)))
    return replace(instance, jobs=tuple(jobs), metadata={**instance.metadata, "utilities": kind})
