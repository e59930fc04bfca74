"""Workloads of elastic jobs from traces, which record jobs of a fixed size."""

from __future__ import annotations

from typing import Any

from oasis.simulator.elastic import ElasticWorkload
from oasis.simulator.elastic_file import FORMAT, VERSION, elastic_from_dict
from oasis.traces.machine_options import MachineOptions
from oasis.traces.window import Record, Window


def elastic_from_window(window: Window, options: MachineOptions) -> ElasticWorkload:
    """Let the jobs of a trace grow and shrink.

    A job may run with one worker and with up to ``options.elasticity`` times the recorded ones; it
    begins with as many as recorded. Its work is what the recorded workers did in the recorded time,
    and n workers are n times as fast as one. The machines are those that `options` give for
    workers; there are no parameter servers, no gradients and no costs. All of that can be changed
    in the file that `write_elastic` writes.

    Examples
    --------
    >>> from oasis.simulator.elastic_trace import elastic_from_window
    >>> from oasis.traces import MachineOptions
    >>> from oasis.traces.window import Record, Window
    >>> record = Record("a", 100.0, 3600.0, 4, 4, {"gpu": 1.0})
    >>> made = elastic_from_window(Window(100.0, (record,), {}), MachineOptions(elasticity=2.0))
    >>> job = made.workload.jobs[0]
    >>> job.arrival, job.work, job.min_workers, job.max_workers
    (0.0, 14400.0, 1, 8)
    """
    gpus = options.gpus_per_server
    machine = {
        "id": "node",
        "count": options.worker_servers,
        "capacity": {
            "gpu": gpus,
            "cpu": gpus * options.cpus_per_gpu,
            "memory_gb": gpus * options.memory_gb_per_gpu,
        },
    }
    return elastic_from_dict(
        {
            "format": FORMAT,
            "version": VERSION,
            "resources": list(machine["capacity"]),  # type: ignore[call-overload]
            "machines": [machine],
            "jobs": [_job(record, window.start, options.elasticity) for record in window.records],
        }
    )


def _job(record: Record, start: float, elasticity: float) -> dict[str, Any]:
    most = max(record.workers, round(elasticity * record.workers))
    return {
        "id": record.id,
        "arrival": record.submitted - start,
        "work": record.size,
        "workers": {"min": 1, "initial": record.workers, "max": most},
        "worker": dict(record.demand),
    }
