"""Machines of section V: the EC2 catalogue and the testbed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oasis.model import rounding
from oasis.model.cluster import Server
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray

RESOURCES = ("gpu", "cpu", "memory_gb", "storage_gb", BANDWIDTH)

Shape = tuple[int, int, float]  # GPUs, vCPUs, memory in GB
P2_G3: tuple[Shape, ...] = (
    (1, 4, 61),
    (8, 32, 488),
    (16, 64, 732),
    (1, 16, 122),
    (2, 32, 244),
    (4, 64, 488),
)
C4: tuple[Shape, ...] = ((0, 2, 3.75), (0, 4, 7.5), (0, 8, 15), (0, 16, 30), (0, 36, 60))

# The text puts workers on C4, which has no GPU, and PSs on P2 and G3: read as swapped.
MACHINES = {"gpu_workers": (P2_G3, C4), "as_printed": (C4, P2_G3)}
STORAGE_GB = 1000.0  # not published
SERVER_BANDWIDTH_GBPS = (20.0, 50.0)

TESTBED_GPU_SHARE = 4 / 7
TESTBED_BANDWIDTH_GBPS = 20.0  # the dual-port 10 GbE card


def draw_servers(
    rng: np.random.Generator, prefix: str, catalogue: Sequence[Shape], count: int
) -> tuple[Server, ...]:
    """`count` machines drawn evenly from `catalogue`, each with its own bandwidth."""
    kinds = rng.integers(len(catalogue), size=count).tolist()
    bandwidths = rng.uniform(*SERVER_BANDWIDTH_GBPS, size=count).tolist()
    return tuple(
        _server(f"{prefix}{k}", catalogue[kind], STORAGE_GB, bandwidth)
        for k, (kind, bandwidth) in enumerate(zip(kinds, bandwidths, strict=True))
    )


def testbed_servers(worker_servers: int, ps_servers: int) -> tuple[tuple[Server, ...], ...]:
    """Machines of section V-B; the same share of worker machines has a GPU at any size."""
    with_gpu = int(np.ceil(TESTBED_GPU_SHARE * worker_servers))
    workers = tuple(
        _server(f"w{h}", (int(h < with_gpu), 32, 80), 600.0, TESTBED_BANDWIDTH_GBPS)
        for h in range(worker_servers)
    )
    ps = tuple(
        _server(f"p{k}", (0, 8, 32), 1500.0, TESTBED_BANDWIDTH_GBPS) for k in range(ps_servers)
    )
    return workers, ps


def _server(name: str, shape: Shape, storage: float, bandwidth: float) -> Server:
    return Server(name, dict(zip(RESOURCES, (*shape, storage, bandwidth), strict=True)))


def fitting(demand: FloatArray, capacity: FloatArray) -> FloatArray:
    """Units of each `demand` (n, R) that empty machines of `capacity` (H, R) hold, shape (n,)."""
    shapes, machines = np.unique(capacity, axis=0, return_counts=True)
    each = np.full((demand.shape[0], *shapes.shape), np.inf)
    positive = np.broadcast_to(demand[:, None, :] > 0, each.shape)
    np.divide(shapes, demand[:, None, :], out=each, where=positive)
    total: FloatArray = rounding.floor(each.min(axis=2)) @ machines
    return total
