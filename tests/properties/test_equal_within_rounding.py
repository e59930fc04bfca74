"""Values that differ by rounding alone change no decision of any policy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oasis
from experiments.evaluation.policies import POLICIES, VARIED, entry_of
from oasis.simulator import PlainJob, replay, rigid_workload

ROUNDING = 1e-12  # relative; far more than a sum of floats loses, far less than anybody means
INSTANCES: dict[str, dict[str, Any]] = {
    "testbed": {"jobs": 12},
    "testbed-observed": {"jobs": 12},
    "calibrated": {"jobs": 12, "worker_servers": 4, "ps_servers": 4, "horizon": 14},
}
