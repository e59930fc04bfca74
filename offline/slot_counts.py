"""Which worker counts of all jobs the empty servers can hold together in a slot, by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from oasis.model.cluster import Cluster
from oasis.model.groups import GROUPS
from oasis.model.job import Job
from oasis.model.rounding import fits

Counts = tuple[int, ...]
Units = tuple[tuple[int, ...], ...]  # units of each job on each server


@dataclass(frozen=True, slots=True)
class SlotPlacement:
    """Where the workers and parameter servers of each job go in one slot.

    Parameters
    ----------
    workers, ps : tuple of tuple of int
        Units of each job on each server of the group.
    """

    workers: Units
    ps: Units


def fitting_counts(
    jobs: Sequence[Job], most: Sequence[int], cluster: Cluster
) -> dict[Counts, SlotPlacement]:
    """Every vector of worker counts that fits the empty servers, with one way to place it.

    Parameters
    ----------
    jobs : sequence of Job
        Whose workers are counted.
    most : sequence of int
        Most workers of each job in a slot.
    cluster : Cluster
        The servers.
    """
    fitting: dict[Counts, SlotPlacement] = {}
    for counts in product(*(range(n + 1) for n in most)):
        # fewer workers always fit where more do, and product() counts upwards
        if all(n == 0 or _one_less(counts, i) in fitting for i, n in enumerate(counts)):
            placement = _placed(jobs, counts, cluster)
            if placement is not None:
                fitting[counts] = placement
    return fitting


def _placed(jobs: Sequence[Job], counts: Counts, cluster: Cluster) -> SlotPlacement | None:
    """(4)-(7) of one slot: no more parameter servers than (6) asks for, which keeps (7)."""
    needed = [int(job.ps_needed(n)) for job, n in zip(jobs, counts, strict=True)]
    placed = []
    for group, units in zip(GROUPS, (counts, needed), strict=True):
        rows = [[group.of(job).get(name, 0.0) for name in cluster.resources] for job in jobs]
        found = next(_packings(list(units), rows, group.capacity(cluster).tolist(), []), None)
        if found is None:
            return None
        placed.append(found)
    return SlotPlacement(*placed)


def _packings(
    units: Sequence[int],
    demands: Sequence[Sequence[float]],
    capacity: Sequence[Sequence[float]],
    placed: list[tuple[int, ...]],
) -> Iterator[Units]:
    """All ways to put ``units[i]`` items of ``demands[i]`` on the servers, job after job."""
    if len(placed) == len(units):
        yield tuple(placed)
        return
    for split in _splits(units[len(placed)], len(capacity)):
        here = [*placed, split]
        if all(_fits(here, demands, limits, server) for server, limits in enumerate(capacity)):
            yield from _packings(units, demands, capacity, here)


def _fits(
    placed: list[tuple[int, ...]],
    demands: Sequence[Sequence[float]],
    limits: Sequence[float],
    server: int,
) -> bool:
    return all(
        fits(
            math.fsum(
                row[server] * demand[r] for row, demand in zip(placed, demands, strict=False)
            ),
            limit,
        )
        for r, limit in enumerate(limits)
    )


def _splits(total: int, servers: int) -> Iterator[tuple[int, ...]]:
    """All ways to split `total` items over `servers` servers."""
    if servers <= 1:
        if servers or not total:  # without a server there is one way to place nothing
            yield (total,) * servers
        return
    for first in range(total, -1, -1):
        for rest in _splits(total - first, servers - 1):
            yield (first, *rest)


def _one_less(counts: Counts, i: int) -> Counts:
    return (*counts[:i], counts[i] - 1, *counts[i + 1 :])
