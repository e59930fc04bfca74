"""Random instances with the settings of section V (docs/workloads)."""

from __future__ import annotations

import numpy as np

from oasis.model.cluster import Cluster
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import Sigmoid
from oasis.version import __version__
from oasis.workloads import work
from oasis.workloads.arrivals import Counts, draw_arrivals, slot_weights
from oasis.workloads.columns import Columns, rows, utilities
from oasis.workloads.machines import MACHINES, RESOURCES, draw_servers, testbed_servers
from oasis.workloads.presets import MIX, PRESETS, PRIORITY
from oasis.workloads.settings import Settings, resolve


def generate(
    preset: str = "calibrated",
    *,
    jobs: int | None = None,
    worker_servers: int | None = None,
    ps_servers: int | None = None,
    horizon: int | None = None,
    seed: int = 0,
    arrivals: str | None = None,
    counts: Counts | None = None,
    slot_seconds: float | None = None,
    machines: str = "gpu_workers",
    priority: tuple[float, float] = PRIORITY,
    mix: tuple[float, float, float] = MIX,
) -> Instance:
    """Draw an instance with the settings of section V; the same arguments give the same instance.

    Parameters
    ----------
    preset : {"calibrated", "paper", "testbed"}
        ``paper`` draws every parameter as printed, ``calibrated`` refits tau within the same ranges
        so that every job can meet its target alone, ``testbed`` is section V-B.
    jobs, worker_servers, ps_servers, horizon : int, optional
        I, H, K and T; left out, the preset's.
    seed : int
        Machines, arrivals and jobs draw from streams of their own, so that more machines leave
        the arrivals (and, but for ``testbed``, the jobs) as they are.
    arrivals : {"uniform", "poisson", "google"}, optional
        ``uniform``: every slot is equally likely. ``poisson``: a Poisson process, `jobs` its mean
        count. ``google``: slots weighted by `counts`. Default: ``google`` if `counts` are given,
        else ``uniform``.
    counts : path or array_like, optional
        Jobs submitted in each hour; a file has the columns ``hour,job_submits``.
    slot_seconds : float, optional
        Length of a slot; left out, the preset's.
    machines : {"gpu_workers", "as_printed"}
        Whether worker servers are P2 and G3 machines and PS servers C4, or the reverse, as printed.
        ``testbed`` has machines of its own.
    priority : tuple of float
        Range of gamma1.
    mix : tuple of float
        Shares of time-insensitive, time-sensitive and time-critical jobs; sum 1.

    Returns
    -------
    Instance
        Its metadata hold the preset, the seed, the version and every parameter.

    Raises
    ------
    ValueError
        Naming the argument.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> len(instance.jobs), len(instance.cluster.worker_ids), instance.horizon
    (3, 7, 10)
    >>> instance == oasis.generate("testbed", jobs=3, seed=1)
    True
    """
    settings = resolve(
        preset,
        jobs=jobs,
        worker_servers=worker_servers,
        ps_servers=ps_servers,
        horizon=horizon,
        seed=seed,
        arrivals=arrivals,
        counts=counts,
        slot_seconds=slot_seconds,
        machines=machines,
        priority=priority,
        mix=mix,
    )
    return _draw(settings)


def _draw(settings: Settings) -> Instance:
    table = PRESETS[settings.preset]
    machines, times, jobs = np.random.default_rng(settings.seed).spawn(3)
    cluster = _cluster(machines, settings)
    last = max(0, settings.horizon - 1 - table.quiet_slots)
    weights = slot_weights(settings.counts, settings.horizon, settings.slot_seconds, last)
    arrival = draw_arrivals(times, settings.arrivals, settings.jobs, weights)
    columns = utilities(jobs, table, settings.priority, settings.mix, arrival.size)
    columns |= {"arrival": arrival} | _work(jobs, settings, arrival, columns["target"], cluster)
    metadata = {"generator": "oasis.generate", "version": __version__}
    return Instance(settings.horizon, cluster, _jobs(columns), metadata | settings.metadata())


def _cluster(rng: np.random.Generator, settings: Settings) -> Cluster:
    sizes = (settings.worker_servers, settings.ps_servers)
    if settings.preset == "testbed":
        workers, ps = testbed_servers(*sizes)
    else:
        workers, ps = (
            draw_servers(stream, prefix, catalogue, size)
            for stream, prefix, catalogue, size in zip(
                rng.spawn(2), "wp", MACHINES[settings.machines], sizes, strict=True
            )
        )
    return Cluster(RESOURCES, workers, ps, settings.slot_seconds)


def _work(
    rng: np.random.Generator,
    settings: Settings,
    arrival: IntArray,
    target: FloatArray,
    cluster: Cluster,
) -> Columns:
    table = PRESETS[settings.preset]
    if settings.preset == "testbed":
        return work.testbed(rng, table, arrival, settings.horizon, cluster)
    if settings.preset == "calibrated":
        allowed = np.minimum(np.floor(target).astype(np.int64), settings.horizon - arrival)
        return work.calibrated(rng, table, allowed, settings.slot_seconds)
    return work.paper(rng, table, arrival.size)


def _jobs(columns: Columns) -> tuple[Job, ...]:
    jobs = []
    for k, row in enumerate(rows(columns)):
        utility = Sigmoid(row.pop("priority"), row.pop("decay"), row.pop("target"))
        jobs.append(Job(id=f"j{k}", utility=utility, **row))
    return tuple(jobs)
