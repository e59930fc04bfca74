"""The streams of jobs that the benchmarks replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import oasis
from oasis import Instance, Job, OASiS, Sigmoid

GBIT_PER_MB = 0.008


def calibrated(horizon: int, servers: int, jobs: int, seed: int = 0) -> Instance:
    """The preset, with as many worker servers as hosts of parameter servers."""
    return oasis.generate(
        "calibrated",
        jobs=jobs,
        worker_servers=servers,
        ps_servers=servers,
        horizon=horizon,
        seed=seed,
    )


def long_jobs(horizon: int, servers: int, jobs: int, seed: int = 0) -> Instance:
    """The calibrated jobs, made to last up to T/2.

    All arrive in the first half of the horizon. The shortest duration is uniform on 1..T/2 (or what
    the job had, if longer), by way of tau_i, and gamma3 is that duration times a number uniform on
    1..2, so that a job can still meet its target alone.
    """
    instance = calibrated(horizon, servers, jobs, seed)
    rng = np.random.default_rng([seed, horizon])
    return replace(instance, jobs=tuple(_lengthened(job, rng, instance) for job in instance.jobs))


def _lengthened(job: Job, rng: np.random.Generator, instance: Instance) -> Job:
    duration = rng.uniform(1, instance.horizon / 2)
    exchange = 2 * job.gradient_mb * GBIT_PER_MB / job.bandwidth / instance.cluster.slot_seconds
    tau = max(job.minibatch_time, duration / (job.epochs * job.minibatches) - exchange)
    longer = replace(job, minibatch_time=tau, arrival=job.arrival // 2)
    slots = longer.shortest_duration(instance.cluster.slot_seconds)
    target = slots * rng.uniform(1, 2)
    return replace(longer, utility=replace(job.utility, target=target))


STREAMS: dict[str, Callable[..., Instance]] = {"calibrated": calibrated, "long": long_jobs}


def loaded(instance: Instance, share: float = 0.5) -> tuple[OASiS, list[Job]]:
    """A scheduler that has decided on the first `share` of the jobs, and the rest of them."""
    scheduler = OASiS.from_instance(instance)
    jobs = instance.jobs_by_arrival()
    first = int(share * len(jobs))
    for job in jobs[:first]:
        scheduler.submit(job)
    return scheduler, jobs[first:]


def probes(instance: Instance, count: int = 30) -> tuple[OASiS, list[Job]]:
    """A scheduler half way through a stream, and jobs of one shape that look at every slot.

    They have the demands of the next jobs of the stream, arrive in slot 0 and last 20 slots with
    30 workers; their utility falls over the whole horizon.
    """
    scheduler, rest = loaded(instance)
    scheduler.now = 0
    horizon = instance.horizon
    return scheduler, [
        replace(
            job,
            id=f"probe{k}",
            arrival=0,
            epochs=20,
            chunks=30,
            minibatches=1,
            minibatch_time=1.0,
            gradient_mb=0.0,
            utility=Sigmoid(1e4, 8 / horizon, horizon / 2),
        )
        for k, job in enumerate(rest[:count])
    ]
