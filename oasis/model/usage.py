"""Resources that a set of schedules uses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oasis.model.instance import Instance
from oasis.model.resources import as_array
from oasis.model.rounding import FloatArray
from oasis.model.schedule import Schedule, add_usage


def committed(
    instance: Instance, schedules: Mapping[str, Schedule]
) -> tuple[FloatArray, FloatArray]:
    """Resources that `schedules` use, shapes (T, H, R) and (T, K, R), in raw units.

    Examples
    --------
    >>> import oasis
    >>> from oasis.model.usage import committed
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> worker, ps = committed(instance, run.schedules)
    >>> worker.shape, ps.shape
    ((10, 7, 5), (10, 2, 5))
    >>> worker[4, 0].round(2)  # six workers of job j0
    array([ 0.  , 30.  , 60.  , 60.  ,  6.75])
    """
    cluster, horizon = instance.cluster, instance.horizon
    worker = np.zeros((horizon, *cluster.worker_capacity.shape))
    ps = np.zeros((horizon, *cluster.ps_capacity.shape))
    for job in instance.jobs:
        schedule = schedules.get(job.id)
        if schedule is not None:
            demands = [as_array(demand, cluster.resources) for demand in (job.worker, job.ps)]
            add_usage(worker, schedule.workers, demands[0])
            add_usage(ps, schedule.ps, demands[1])
    return worker, ps
