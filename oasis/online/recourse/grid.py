"""Demands whose sums are exact in floats, so that a release undoes a commit to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import ceil

import numpy as np
import numpy.typing as npt

from oasis.model.cluster import Cluster
from oasis.model.job import Job
from oasis.model.rounding import IntArray

MANTISSA = 53  # bits of a float


@dataclass(frozen=True, slots=True)
class GridJob(Job):
    """A job whose demands are multiples of one small power of two for each resource.

    Parameters
    ----------
    original : Job
        The job as it was given; its ratio of bandwidths decides on the parameter servers (6).
    """

    original: Job = field(kw_only=True)

    def ps_needed(self, workers: npt.ArrayLike) -> IntArray:
        return self.original.ps_needed(workers)


def grid_of(cluster: Cluster) -> dict[str, float]:
    """For each resource, the spacing of floats at twice the largest capacity.

    Sums of multiples of it that fit a server are exact; it changes an amount by no more than
    2^-51 of the largest server. Counts are rounded with a tolerance of 1e-9 (see `rounding`)
    of their own server, so that this loses no task unless servers differ by a factor of millions.
    """
    largest = np.maximum(cluster.worker_capacity.max(axis=0), cluster.ps_capacity.max(axis=0))
    _, exponent = np.frexp(np.maximum(largest, np.finfo(float).tiny * 2.0**60))
    return {
        name: float(np.ldexp(1.0, int(power) + 1 - MANTISSA))
        for name, power in zip(cluster.resources, exponent, strict=True)
    }


def on_grid(job: Job, grid: Mapping[str, float]) -> GridJob:
    """`job` with its demands rounded up to the grid: what fits here also fits in raw units."""
    given = {field.name: getattr(job, field.name) for field in fields(Job)}
    for group in ("worker", "ps"):
        given[group] = {
            name: ceil(amount / grid[name]) * grid[name] for name, amount in given[group].items()
        }
    return GridJob(**given, original=job)
