"""Parameters of many jobs at once, drawn from the ranges of a preset: an array for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray, IntArray
from oasis.workloads.machines import RESOURCES
from oasis.workloads.presets import DECAY, Preset, Range

Columns = dict[str, npt.NDArray[Any]]


def whole(rng: np.random.Generator, ends: tuple[int, ...], size: int) -> IntArray:
    """Integers, each in `ends` with the same probability."""
    return rng.integers(ends[0], ends[1], size=size, endpoint=True)


def demands(rng: np.random.Generator, preset: Preset, size: int) -> Columns:
    """``worker`` and ``ps`` demands, shape (size, R), with b_i <= B_i."""
    worker, ps = (_units(rng, ranges, size) for ranges in (preset.worker, preset.ps))
    bandwidth = rng.uniform(*preset.worker_bandwidth, size=size)
    lowest, highest = preset.ps_bandwidth
    set_bandwidth(worker, bandwidth)
    set_bandwidth(ps, rng.uniform(np.maximum(lowest, bandwidth), highest))
    return {"worker": worker, "ps": ps}


def set_bandwidth(demand: FloatArray, bandwidth: FloatArray) -> None:
    """Write the bandwidth column of `demand` (n, R)."""
    demand[:, RESOURCES.index(BANDWIDTH)] = bandwidth


def bandwidth_of(demand: FloatArray) -> FloatArray:
    """Bandwidth column of `demand` (n, R), Gbit/s."""
    return demand[:, RESOURCES.index(BANDWIDTH)]


def utilities(
    rng: np.random.Generator, preset: Preset, priority: Range, mix: tuple[float, ...], size: int
) -> Columns:
    """``priority``, ``decay`` and ``target`` of the sigmoids."""
    kind = rng.permutation(np.repeat(np.arange(len(DECAY)), shares(mix, size)))
    lowest, highest = np.array(DECAY).T
    return {
        "priority": rng.uniform(*priority, size=size),
        "decay": rng.uniform(lowest[kind], highest[kind]),
        "target": rng.uniform(*preset.target, size=size),
    }


def shares(mix: tuple[float, ...], size: int) -> IntArray:
    """Jobs of each class: `mix` times `size`, largest remainders rounded up, sum `size`."""
    exact = np.array(mix) * size
    counts: IntArray = np.floor(exact).astype(np.int64)
    largest = np.argsort(counts - exact, kind="stable")
    counts[largest[: size - counts.sum()]] += 1
    return counts


def rows(columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield a dictionary for each job, with Python numbers, and demands by resource name."""
    plain = {name: array.tolist() for name, array in columns.items()}
    for group in ("worker", "ps"):
        plain[group] = [dict(zip(RESOURCES, row, strict=True)) for row in plain[group]]
    for values in zip(*plain.values(), strict=True):
        yield dict(zip(plain, values, strict=True))


def _units(
    rng: np.random.Generator, ranges: Mapping[str, tuple[int, int]], size: int
) -> FloatArray:
    table = np.zeros((size, len(RESOURCES)))
    for name, ends in ranges.items():
        table[:, RESOURCES.index(name)] = whole(rng, ends, size)
    return table
