"""Sweeps (docs/sweeps): a grid of runs on every core or a Dask cluster, resumed if interrupted."""

from oasis.model.extras import require

require("sweeping", "pandas", "pyarrow", "joblib", "threadpoolctl")

from experiments.sweep.cells import Cell, SweepConfig, expand, read_config, sweep_config
from experiments.sweep.executors import Dask, Executor, Local
from experiments.sweep.run import (
    SweepProgress,
    SweepResult,
    UnwrittenSweepError,
    recorded,
    run_sweep,
)
from experiments.sweep.store import FAILED, CellResult, ResultStore, read_frame, repeatable
from experiments.sweep.summary import summarise, varying
from experiments.sweep.tasks import TASKS, Case, CellTask, Options

__all__ = [
    "FAILED",
    "TASKS",
    "Case",
    "Cell",
    "CellResult",
    "CellTask",
    "Dask",
    "Executor",
    "Local",
    "Options",
    "ResultStore",
    "SweepConfig",
    "SweepProgress",
    "SweepResult",
    "UnwrittenSweepError",
    "expand",
    "read_config",
    "read_frame",
    "recorded",
    "repeatable",
    "run_sweep",
    "summarise",
    "sweep_config",
    "varying",
]
