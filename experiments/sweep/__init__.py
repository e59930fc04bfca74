"""Sweeps (docs/sweeps): a grid of runs on every core or a Dask cluster, resumed if interrupted."""

from oasis.extras import require

require("sweeping", "pandas", "pyarrow", "joblib", "threadpoolctl")

from experiments.sweep.cells import Cell as Cell
from experiments.sweep.cells import SweepConfig as SweepConfig
from experiments.sweep.cells import expand as expand
from experiments.sweep.cells import read_config as read_config
from experiments.sweep.cells import sweep_config as sweep_config
from experiments.sweep.executors import Dask as Dask
from experiments.sweep.executors import Executor as Executor
from experiments.sweep.executors import Local as Local
from experiments.sweep.run import SweepProgress as SweepProgress
from experiments.sweep.run import SweepResult as SweepResult
from experiments.sweep.run import UnwrittenSweepError as UnwrittenSweepError
from experiments.sweep.run import recorded as recorded
from experiments.sweep.run import run_sweep as run_sweep
from experiments.sweep.store import FAILED as FAILED
from experiments.sweep.store import CellResult as CellResult
from experiments.sweep.store import ResultStore as ResultStore
from experiments.sweep.store import read_frame as read_frame
from experiments.sweep.store import repeatable as repeatable
from experiments.sweep.summary import summarise as summarise
from experiments.sweep.summary import varying as varying
from experiments.sweep.tasks import TASKS as TASKS
from experiments.sweep.tasks import Case as Case
from experiments.sweep.tasks import CellTask as CellTask
from experiments.sweep.tasks import Options as Options
