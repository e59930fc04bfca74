"""How much of one resource the jobs of an instance want, beside what there is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oasis.model.rounding import FloatArray


@dataclass(frozen=True, slots=True)
class Load:
    """How much of one resource is wanted.

    Parameters
    ----------
    group : {"worker", "ps"}
        Of which servers.
    resource : str
        The resource.
    capacity : float
        What all servers of the group have together.
    wanted : ndarray
        Shape (T,): the demand of `Description`.
    """

    group: str
    resource: str
    capacity: float
    wanted: FloatArray

    @property
    def mean(self) -> float:
        """What is wanted over the whole horizon, as a multiple of what there is."""
        return self._share(float(self.wanted.mean()))

    @property
    def peak(self) -> float:
        """What is wanted in the slot with the highest demand, as a multiple of what there is."""
        return self._share(float(self.wanted.max()))

    @property
    def peak_slot(self) -> int:
        """The first slot with the highest demand."""
        return int(self.wanted.argmax())

    def _share(self, amount: float) -> float:
        return amount / self.capacity if self.capacity else np.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data; multiples are None where there is nothing of the resource."""
        there = self.capacity > 0
        return {
            "group": self.group,
            "resource": self.resource,
            "capacity": self.capacity,
            "mean": self.mean if there else None,
            "peak": self.peak if there else None,
            "peak_slot": self.peak_slot,
            "wanted": self.wanted.tolist(),
        }
