"""How many parameter servers go with so many workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from oasis.model import rounding


class PsRule(Protocol):
    """The number of parameter servers by the number of workers.

    `per_worker` and `fixed` describe the rule to whoever needs it as linear inequalities: `n`
    workers, at least one, need ``ceil(per_worker * n) + fixed`` of them.

    Examples
    --------
    Both rules are described alike to whoever needs linear inequalities:

    >>> [(rule.per_worker, rule.fixed, rule.needed(3)) for rule in (ByBandwidth(0.5), FixedPs(1))]
    [(0.5, 0, 2), (0.0, 1, 1)]
    """

    @property
    def per_worker(self) -> float:
        """Parameter servers that each worker adds, before rounding up."""
        ...

    @property
    def fixed(self) -> int:
        """Parameter servers that are needed however many workers there are."""
        ...

    def needed(self, workers: int) -> int:
        """Fewest parameter servers for `workers`; none for no worker."""
        ...

    def most(self, workers: int) -> int:
        """Most parameter servers for `workers`."""
        ...


@dataclass(frozen=True, slots=True)
class ByBandwidth:
    """The rule of the OASiS paper: the parameter servers must keep up with the workers.

    Parameters
    ----------
    per_worker : float
        b_i / B_i: n workers need ceil(n b_i / B_i) parameter servers (6), and at most n (7).

    Examples
    --------
    >>> ByBandwidth(0.3).needed(4), ByBandwidth(0.3).most(4)
    (2, 4)
    """

    per_worker: float = 0.0

    @property
    def fixed(self) -> int:
        return 0

    def needed(self, workers: int) -> int:
        return int(rounding.ceil(workers * self.per_worker)) if self.per_worker else 0

    def most(self, workers: int) -> int:
        return workers


@dataclass(frozen=True, slots=True)
class FixedPs:
    """The same number of parameter servers for any number of workers.

    Parameters
    ----------
    count : int
        Exactly so many run beside the workers; most Kubernetes jobs have one. 0: the job can have
        none, because it has no template for them.

    Examples
    --------
    >>> FixedPs(1).needed(4), FixedPs(1).needed(0)
    (1, 0)
    """

    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"count: expected at least 0 parameter servers, got {self.count}")

    @property
    def per_worker(self) -> float:
        return 0.0

    @property
    def fixed(self) -> int:
        return self.count

    def needed(self, workers: int) -> int:
        return self.count if workers else 0

    def most(self, workers: int) -> int:
        return self.needed(workers)
