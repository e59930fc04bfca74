"""Resources that a set of schedules uses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oasis.model.instance import Instance
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule, usage


def committed(
    instance: Instance, schedules: Mapping[str, Schedule]
) -> tuple[FloatArray, FloatArray]:
    """Resources that `schedules` use, shapes (T, H, R) and (T, K, R), in raw units."""
    cluster, horizon = instance.cluster, instance.horizon
    worker = np.zeros((horizon, *cluster.worker_capacity.shape))
    ps = np.zeros((horizon, *cluster.ps_capacity.shape))
    for job in instance.jobs:
        schedule = schedules.get(job.id)
        if schedule is not None:
            demands = [as_array(demand, cluster.resources) for demand in (job.worker, job.ps)]
            worker += usage(schedule.workers, demands[0], worker.shape[:2])
            ps += usage(schedule.ps, demands[1], ps.shape[:2])
    return worker, ps
