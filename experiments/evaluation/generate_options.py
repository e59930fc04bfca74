"""The arguments of `oasis.generate` as options: for the command line and for sweeps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import oasis
from experiments.evaluation.options import described
from oasis.workloads import PRESETS
from oasis.workloads.presets import MIX, PRIORITY

_FROM_PRESET = "[default: the preset's]"


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What an instance is drawn from; `oasis.generate` checks it.

    Parameters
    ----------
    preset, jobs, worker_servers, ps_servers, horizon, seed, arrivals, counts, slot_seconds, \
machines, priority, mix
        As for `oasis.generate`.

    Examples
    --------
    >>> drawn = GenerateOptions("testbed", jobs=3, seed=7).draw()
    >>> drawn == oasis.generate("testbed", jobs=3, seed=7)
    True
    """

    preset: str = described("calibrated", f"settings to draw from: {', '.join(PRESETS)}")
    jobs: int | None = described(None, f"number of jobs I. {_FROM_PRESET}")
    worker_servers: int | None = described(None, f"machines for workers H. {_FROM_PRESET}")
    ps_servers: int | None = described(None, f"machines for parameter servers K. {_FROM_PRESET}")
    horizon: int | None = described(None, f"slots T. {_FROM_PRESET}")
    seed: int = described(0, "the same seed gives the same bytes")
    arrivals: str | None = described(
        None, "kind: uniform, poisson or google (shaped by --counts). [default: uniform]"
    )
    counts: str | None = described(None, "CSV hour,job_submits that shapes the arrivals")
    slot_seconds: float | None = described(None, f"length of a slot. {_FROM_PRESET}")
    machines: str = described(
        "gpu_workers", "which: gpu_workers, or as_printed: the paper's swapped ones"
    )
    priority: tuple[float, float] = described(PRIORITY, "range of gamma1, the jobs' values")
    mix: tuple[float, float, float] = described(
        MIX, "shares of time-insensitive, -sensitive and -critical jobs"
    )

    def draw(self) -> oasis.Instance:
        """Draw the instance.

        Raises
        ------
        ValueError
            Naming the argument that is wrong.
        """
        arguments: dict[str, Any] = asdict(self)
        return oasis.generate(**arguments)
