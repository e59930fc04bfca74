"""Microsoft Philly, 2017 (ATC'19), in the form distributed with the Sia artifact (docs/traces)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from oasis.model.cluster import Cluster, Server
from oasis.model.instance import Instance
from oasis.model.resources import BANDWIDTH
from oasis.traces.mapping import RESOURCES, build
from oasis.traces.options import TraceOptions, option
from oasis.traces.table import MalformedError, Table, read_table, real, whole
from oasis.traces.window import Record, select

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


@dataclass(frozen=True, slots=True)
class PhillyOptions(TraceOptions):
    """Assumptions about the Philly trace, which records neither machines nor CPUs nor memory.

    Examples
    --------
    >>> from oasis.traces import PhillyOptions
    >>> options = PhillyOptions(min_gpus=4, start="first")
    >>> options.min_gpus, options.max_gpus
    (4, 8)
    >>> PhillyOptions(stride=0)
    Traceback (most recent call last):
        ...
    oasis.model.errors.InstanceError: stride: expected an integer >= 1, got 0
    """

    min_gpus: int = option(2, "leave out jobs with fewer GPUs; the default is distributed jobs")
    virtual_cluster: str = option("", "take the jobs of this virtual cluster alone")
    gpus_per_worker: int = option(1, "GPUs of one worker", minimum=1)
    cpus_per_gpu: float = option(4.0, "CPU cores that come with a GPU")
    memory_gb_per_gpu: float = option(32.0, "memory that comes with a GPU, in GB")
    worker_servers: int = option(8, "machines for workers", minimum=1)
    gpus_per_server: int = option(2, "GPUs of each of them", minimum=1)
    ps_servers: int = option(4, "machines for parameter servers", minimum=1)
    ps_server_cpus: float = option(8.0, "CPU cores of each of them")
    ps_server_memory_gb: float = option(32.0, "memory of each of them in GB")


def read_philly(path: str | os.PathLike[str], options: PhillyOptions | None = None) -> Instance:
    """Turn the Philly trace into an instance.

    Parameters
    ----------
    path : path
        CSV file with the columns ``timestamp,duration,num_gpus,gpu_time,cluster``.
    options : PhillyOptions, optional
        The assumptions; all of them are recorded in the metadata.

    Returns
    -------
    Instance
        ``metadata["malformed"]`` counts the rows that could not be used, by kind.

    Raises
    ------
    InstanceError
        If a column is missing or no job is left.
    ValueError
        If an option is out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from oasis.traces import PhillyOptions, read_philly
    >>> rows = '''timestamp,duration,num_gpus,gpu_time,cluster
    ... 2017-10-09 07:00:00,3600,4,14400,a
    ... 2017-10-09 07:40:00,5400,2,10800,a
    ... '''
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "philly.csv")
    ...     _ = path.write_text(rows)
    ...     instance = read_philly(path, PhillyOptions(start="first"))
    >>> [(job.id, job.arrival, job.work(instance.slot_seconds)) for job in instance.jobs]
    [('philly-2', 0, 8), ('philly-3', 1, 6)]
    """
    options = PhillyOptions() if options is None else options
    start = None
    if options.start not in ("busiest", "first"):
        try:
            start = submission_time(options.start)
        except MalformedError:
            expected = "expected busiest, first or a time such as 2017-10-09 07:00:00"
            raise ValueError(f"start: {expected}, got {options.start!r}") from None

    def parse(line: int, row: Mapping[str, str]) -> tuple[str, Record]:
        return row["cluster"], _record(line, row, options)

    table: Table[tuple[str, Record]] = read_table(path, COLUMNS, parse)
    wanted = options.virtual_cluster
    records = [record for name, record in table.rows if wanted in ("", name)]
    window = select(records, options, start)
    found = {
        "trace": "Microsoft Philly",
        "licence": "CC-BY 4.0, msr-fiddle/philly-traces",
        "files": {"jobs": Path(path).name},
        "rows": {"jobs": len(table.rows)},
        "malformed": {"jobs": table.malformed} if table.malformed else {},
        "window_start": str(datetime.fromtimestamp(window.start, UTC).replace(tzinfo=None)),
    }
    return build("philly", window, _cluster(options), options, found)


def _record(line: int, row: Mapping[str, str], options: PhillyOptions) -> Record:
    submitted = submission_time(row["timestamp"])
    duration = real(row["duration"], "duration")
    if duration == 0:
        raise MalformedError("bad duration")
    gpus = whole(row["num_gpus"], "num_gpus", 1)
    total = real(row["gpu_time"], "gpu_time")
    if abs(total - duration * gpus) > 1e-6 * total:
        raise MalformedError("gpu_time is not duration times num_gpus")
    each = options.gpus_per_worker
    demand = {
        "gpu": float(each),
        "cpu": each * options.cpus_per_gpu,
        "memory_gb": each * options.memory_gb_per_gpu,
    }
    return Record(f"philly-{line}", submitted, duration, gpus, -(-gpus // each), demand)


def submission_time(text: str) -> float:
    """Seconds since the epoch of a time of the trace, which names no time zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise MalformedError("bad timestamp") from None
    if time.tzinfo is not None:
        raise MalformedError("bad timestamp")  # the trace states none: local times of one place
    return time.replace(tzinfo=UTC).timestamp()


def _cluster(options: PhillyOptions) -> Cluster:
    gpus = options.gpus_per_server
    shape = (gpus, gpus * options.cpus_per_gpu, gpus * options.memory_gb_per_gpu)
    capacity = dict(zip(RESOURCES, (*shape, options.server_bandwidth_gbps), strict=True))
    ps_capacity = {
        "cpu": options.ps_server_cpus,
        "memory_gb": options.ps_server_memory_gb,
        BANDWIDTH: options.server_bandwidth_gbps,
    }
    workers = (Server("w", capacity, options.worker_servers),)
    ps = (Server("p", ps_capacity, options.ps_servers),)
    return Cluster(RESOURCES, workers, ps, options.slot_seconds)
