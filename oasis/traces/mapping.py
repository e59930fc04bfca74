"""From a recorded job to a job of the model (docs/traces gives every formula)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import floor
from typing import Any

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.job import GBIT_PER_MB, Job
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray
from oasis.model.utility import Utility, UtilityColumns
from oasis.traces.options import TraceOptions, option
from oasis.traces.plain_job import PlainJob
from oasis.traces.window import JobRecord, Window
from oasis.version import __version__
from oasis.workloads.presets import DECAY
from oasis.workloads.work import shares

RESOURCES = ("gpu", "cpu", "memory_gb", BANDWIDTH)


def build(
    trace: str,
    window: Window,
    cluster: Cluster,
    options: TraceOptions,
    found: Mapping[str, Any],
) -> Instance:
    """The instance of `window` on `cluster`; `found` is what reading the files reports."""
    jobs = jobs_of(window, options)
    metadata = {
        "generator": f"oasis.traces.{trace}",
        "version": __version__,
        "seed": options.seed,
        "options": asdict(options),
        "left_out": dict(window.left_out),
        "cannot_finish": sum(
            job.arrival + job.shortest_duration(options.slot_seconds) > options.horizon
            for job in jobs
        ),
    }
    return Instance(options.horizon, cluster, jobs, metadata | dict(found))


def jobs_of(window: Window, options: TraceOptions) -> tuple[Job, ...]:
    """The jobs of the model that stand for the records of `window`."""
    durations = np.array([record.duration for record in window.records])
    worth = drawn_utilities(durations / options.slot_seconds, options)
    return tuple(
        _job(record, window.start, options, utility)
        for record, utility in zip(window.records, worth.rows(), strict=True)
    )


def _job(record: JobRecord, start: float, options: TraceOptions, utility: Utility) -> Job:
    """Spread the worker-seconds of `record` over chunks, epochs and mini-batches."""
    # kappa = tau + 2 e / b: gradients go to the parameter servers, and parameters come back.
    exchange = 2 * options.gradient_mb * GBIT_PER_MB / options.worker_bandwidth_gbps  # seconds
    nominal = options.minibatch_seconds + exchange
    most = max(1, floor(record.size / nominal))  # every chunk gets a mini-batch of nominal length
    chunks = min(most, max(1, round(options.elasticity * record.workers)))
    steps = max(1, floor(record.size / (chunks * nominal)))  # mini-batches of a chunk, all epochs
    epochs = min(options.epochs, steps)
    minibatches = steps // epochs
    # the rest of the division lengthens the mini-batches, so that W_i is as recorded
    seconds = record.size / (chunks * epochs * minibatches) - exchange
    worker, ps = dict(record.demand), {}
    if options.gradient_mb:  # else no bandwidth is reserved, and (6) asks for no parameter server
        worker[BANDWIDTH] = options.worker_bandwidth_gbps
        ps = {
            "cpu": options.ps_cpus,
            "memory_gb": options.ps_memory_gb,
            BANDWIDTH: options.ps_bandwidth_gbps,
        }
    return Job(
        id=record.id,
        arrival=int((record.submitted - start) // options.slot_seconds),
        epochs=epochs,
        chunks=chunks,
        minibatches=minibatches,
        # A record shorter than one exchange of gradients
        # leaves no time to train; its job gets longer.
        minibatch_time=max(0.0, seconds) / options.slot_seconds,
        gradient_mb=options.gradient_mb,
        worker=worker,
        ps=ps,
        utility=utility,
        requires=record.requires,
    )


def drawn_utilities(durations: FloatArray, options: TraceOptions) -> UtilityColumns:
    """Sigmoids of section V; priority and decay are drawn, the target follows the duration.

    Durations (jobs,) are in slots, and so are the delays of the utilities.
    """
    rng = np.random.default_rng(options.seed)
    size = len(durations)
    mix = (options.insensitive, 1 - options.insensitive - options.critical, options.critical)
    # The shares are exact and only their order is drawn: by chance, twenty jobs would miss the mix.
    kind = rng.permutation(np.repeat(np.arange(len(DECAY)), shares(mix, size)))
    lowest, highest = np.array(DECAY).T
    decay = rng.uniform(lowest[kind], highest[kind])
    priority = rng.uniform(options.min_priority, options.max_priority, size=size)
    target = np.maximum(1.0, options.target_factor * durations)
    return UtilityColumns(priority, decay, target)


@dataclass(frozen=True, slots=True)
class MachineOptions(TraceOptions):
    """Assumptions about a trace that records neither machines nor CPUs nor memory.

    Examples
    --------
    >>> from oasis.traces import MachineOptions
    >>> options = MachineOptions(min_gpus=4, worker_servers=16, gpus_per_server=8)
    >>> options.cluster().worker_ids[-1]
    'w#15'
    """

    min_gpus: int = option(2, "leave out jobs with fewer GPUs; the default is distributed jobs")
    gpus_per_worker: int = option(1, "GPUs of one worker", minimum=1)
    cpus_per_gpu: float = option(4.0, "CPU cores that come with a GPU")
    memory_gb_per_gpu: float = option(32.0, "memory that comes with a GPU, in GB")
    worker_servers: int = option(8, "machines for workers", minimum=1)
    gpus_per_server: int = option(2, "GPUs of each of them", minimum=1)
    ps_servers: int = option(4, "machines for parameter servers", minimum=1)
    ps_server_cpus: float = option(8.0, "CPU cores of each of them")
    ps_server_memory_gb: float = option(32.0, "memory of each of them in GB")

    def record(self, job: PlainJob) -> JobRecord:
        """The record of a job of which the trace says no more than its GPUs and times.

        A job without GPUs is one worker with CPUs and memory alone.
        """
        each = self.gpus_per_worker
        demand = {
            "gpu": float(each) if job.gpus else 0.0,
            "cpu": each * self.cpus_per_gpu,
            "memory_gb": each * self.memory_gb_per_gpu,
        }
        # Rounded up, because the last worker may use fewer GPUs than the others.
        workers = max(1, -(-job.gpus // each))
        return JobRecord(
            job.id, job.submitted, job.duration, job.gpus, workers, demand, job.started
        )

    def cluster(self) -> Cluster:
        """The machines; those for workers have CPUs and memory in proportion to their GPUs."""
        gpus = self.gpus_per_server
        shape = (gpus, gpus * self.cpus_per_gpu, gpus * self.memory_gb_per_gpu)
        capacity = dict(zip(RESOURCES, (*shape, self.server_bandwidth_gbps), strict=True))
        ps_capacity = {
            "cpu": self.ps_server_cpus,
            "memory_gb": self.ps_server_memory_gb,
            BANDWIDTH: self.server_bandwidth_gbps,
        }
        workers = (Server("w", capacity, self.worker_servers),)
        ps = (Server("p", ps_capacity, self.ps_servers),)
        return Cluster(RESOURCES, workers, ps, self.slot_seconds)
