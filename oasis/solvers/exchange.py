"""Solutions that a running solve takes from elsewhere and gives away, while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Exchange(Protocol):
    """Who has solutions of the model of a running solve, and wants those that it finds."""

    def better(self, objective: float) -> Mapping[str, float] | None:
        """Variables by name of a solution that is worth more than `objective`, None if unknown.

        Called in the solver's own thread, so that it only looks at what is at hand. A solution that
        breaks a row is ignored by the solver.
        """
        ...

    def found(self, values: Mapping[str, float]) -> None:
        """Take a better solution that the solver has found; called in the calling thread."""
        ...
