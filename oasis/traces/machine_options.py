"""What is assumed of machines and of workers where a trace records GPUs alone."""

from __future__ import annotations

from dataclasses import dataclass

from oasis.model.cluster import Cluster, Server
from oasis.model.resources import BANDWIDTH
from oasis.traces.mapping import RESOURCES
from oasis.traces.options import TraceOptions, option
from oasis.traces.plain_job import PlainJob
from oasis.traces.window import Record


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

    def record(self, job: PlainJob, started: float | None = None) -> Record:
        """The record of a job of which the trace says no more than its GPUs and times.

        A job without GPUs is one worker with CPUs and memory alone.
        """
        each = self.gpus_per_worker
        demand = {
            "gpu": float(each) if job.gpus else 0.0,
            "cpu": each * self.cpus_per_gpu,
            "memory_gb": each * self.memory_gb_per_gpu,
        }
        workers = max(1, -(-job.gpus // each))
        return Record(job.id, job.submitted, job.duration, job.gpus, workers, demand, started)

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
