"""Jobs of a test as `oasis whatif` takes those of a trace."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from experiments.evaluation import whatif
from oasis.simulator import PlainJob


def jobs_frame(jobs: Sequence[PlainJob]) -> pd.DataFrame:
    """Let the records be the frame of a trace."""
    fields = PlainJob.__dataclass_fields__
    return whatif.jobs_frame(
        pd.DataFrame([{name: getattr(job, name) for name in fields} for job in jobs])
    )
