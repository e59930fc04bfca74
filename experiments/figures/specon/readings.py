"""SpeCon by other readings than that of the policy."""

from __future__ import annotations

from baselines.specon import Category, Container, SpeCon


class OtherReading(SpeCon):
    """SpeCon by a reading of line 15 of Algorithm 1, and of when Algorithm 3 runs."""

    # `counted`: line 15 counts containers that still make progress on the "worker" or in the
    # "cluster". `rebalancing`: Algorithm 3 runs "always", as it is printed, or when all containers
    # have "converged", as the text of section V-C has it.
    def __init__(self, alpha: float, interval: float, counted: str, rebalancing: str) -> None:
        super().__init__(alpha, interval)
        self.counted, self.rebalancing = counted, rebalancing

    def even_out(self, now: float) -> None:
        """Algorithm 3, if it runs now."""
        converged = (each.category is Category.CONVERGED for each in self._everyone())
        if self.rebalancing == "always" or all(converged):
            super().even_out(now)

    def _counted(self, home: int) -> list[Container]:
        return self._everyone() if self.counted == "cluster" else super()._counted(home)

    def _everyone(self) -> list[Container]:
        return [self._containers[job.index] for job in self._running]
