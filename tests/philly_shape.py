"""Plain jobs of a part of Philly's trace, or of its shape and drawn from a seed, without it.

Most jobs have one GPU and last minutes, few have many and last days; they come in bursts, by day
more than by night. All times are whole seconds, as in the trace.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from oasis.simulator import PlainJob
from oasis.traces import read_plain

GPUS, SHARES = (1, 2, 4, 8), (0.72, 0.1, 0.09, 0.09)
DAY = 86_400


@cache
def philly_jobs(trace: Path, cluster: str) -> tuple[PlainJob, ...]:
    """The jobs of a virtual cluster; the 80,000 rows of the others would take seconds to read."""
    with trace.open(encoding="utf-8") as stream, NamedTemporaryFile("w", suffix=".csv") as part:
        rows = stream.readlines()
        part.writelines([rows[0], *(row for row in rows if row.rstrip().endswith(f",{cluster}"))])
        part.flush()
        return read_plain(part.name, format="philly").jobs


def philly_shaped(jobs: int, seed: int = 0, mean_gap: float = 250.0) -> list[PlainJob]:
    """Jobs in order of submission; with the default gap some 64 GPUs are busy and at times full."""
    rng = np.random.default_rng(seed)
    burst = rng.choice((0.05, 4.0), jobs, p=(0.75, 0.25))
    by_day = 1.0 + 0.5 * np.sin(np.cumsum(burst * mean_gap) / DAY * 2 * np.pi)
    submitted = np.cumsum(rng.exponential(mean_gap, jobs) * burst * by_day).astype(int)
    durations = np.maximum(1, rng.lognormal(7.5, 2.2, jobs)).clip(max=7 * DAY).astype(int)
    gpus = rng.choice(GPUS, jobs, p=SHARES)
    rows = zip(submitted.tolist(), durations.tolist(), gpus.tolist(), strict=True)
    return [PlainJob(f"j{k}", float(s), float(d), g) for k, (s, d, g) in enumerate(rows)]
