"""The presets: sizes and ranges of section V, one `Preset` each (docs/workloads)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

Range = tuple[float, float]

# gamma2 per slot of time-insensitive, time-sensitive and time-critical jobs, and their shares
DECAY: tuple[Range, ...] = ((0.0, 0.0), (0.01, 1.0), (4.0, 6.0))
MIX = (0.10, 0.55, 0.35)
PRIORITY: Range = (1.0, 100.0)  # gamma1


@dataclass(frozen=True, slots=True)
class Preset:
    """Default sizes and parameter ranges of a preset, both ends included.

    Parameters
    ----------
    jobs, worker_servers, ps_servers, horizon : int
        I, H, K and T.
    slot_seconds : float
        Length of a slot.
    quiet_slots : int
        Slots at the end of the horizon in which no job arrives.
    epochs : range of int
        E_i.
    chunks, minibatches : tuple of int
        N_i and M_i: the two ends of a range, or for ``testbed`` the pairs (N_i, M_i) by column.
    minibatch_time, duration : range
        tau_i in slots; for ``testbed`` the shortest duration instead, in slots.
    gradient_mb : tuple of float
        e_i: the two ends of a range, or for ``testbed`` the models to choose from.
    worker, ps : mapping of str to range
        w_i^r and s_i^r, whole units.
    worker_bandwidth, ps_bandwidth : range
        b_i and B_i in Gbit/s; B_i is drawn from the part of its range from b_i on.
    target : range
        gamma3 in slots.

    Examples
    --------
    >>> from oasis.workloads import PRESETS
    >>> PRESETS["testbed"].horizon, PRESETS["testbed"].slot_seconds
    (10, 1200.0)
    """

    jobs: int
    worker_servers: int
    ps_servers: int
    horizon: int
    slot_seconds: float
    quiet_slots: int
    epochs: tuple[int, int]
    chunks: tuple[int, ...]
    minibatches: tuple[int, ...]
    gradient_mb: tuple[float, ...]
    worker: Mapping[str, tuple[int, int]]
    ps: Mapping[str, tuple[int, int]]
    worker_bandwidth: Range
    ps_bandwidth: Range
    target: Range
    minibatch_time: Range = (0.001, 0.1)
    duration: tuple[int, int] = (2, 6)


_SIMULATION = Preset(
    jobs=100,
    worker_servers=50,
    ps_servers=50,
    horizon=300,
    slot_seconds=3600.0,
    quiet_slots=0,
    epochs=(50, 200),
    chunks=(5, 100),
    minibatches=(10, 100),
    gradient_mb=(30.0, 575.0),
    worker={"gpu": (0, 4), "cpu": (1, 10), "memory_gb": (2, 32), "storage_gb": (5, 10)},
    ps={"gpu": (0, 0), "cpu": (1, 10), "memory_gb": (2, 32), "storage_gb": (5, 10)},
    worker_bandwidth=(0.1, 5.0),
    ps_bandwidth=(5.0, 20.0),
    target=(1.0, 15.0),
)
_TESTBED = replace(
    _SIMULATION,
    jobs=12,
    worker_servers=7,
    ps_servers=2,
    horizon=10,
    slot_seconds=1200.0,
    quiet_slots=1,
    epochs=(4, 30),
    chunks=(7, 10),
    minibatches=(3, 2),
    # AlexNet, ResNet-50, ResNet-101, ResNet-152, VGG-11, Inception-BN
    gradient_mb=(244.0, 102.0, 178.0, 241.0, 531.0, 45.0),
    worker={"gpu": (0, 1), "cpu": (1, 5), "memory_gb": (2, 10), "storage_gb": (5, 10)},
    ps={"gpu": (0, 0), "cpu": (1, 5), "memory_gb": (2, 10), "storage_gb": (5, 10)},
    worker_bandwidth=(1.0, 3.0),
    ps_bandwidth=(1.0, 3.0),
    target=(2.0, 8.0),
)
PRESETS: dict[str, Preset] = {
    "paper": _SIMULATION,
    "calibrated": _SIMULATION,
    "testbed": _TESTBED,
}
