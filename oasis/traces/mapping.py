"""From recorded jobs to jobs of the model, and machines for them (docs/traces: the formulas)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from math import ceil, floor
from typing import Any, TypeVar

import numpy as np

from oasis.model.cluster import Cluster, Server
from oasis.model.errors import InstanceError
from oasis.model.job import GBIT_PER_MB, Job
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import UtilityColumns
from oasis.traces.options import TraceOptions, options_of_toml
from oasis.traces.plain_job import FACTS
from oasis.traces.table import Frame
from oasis.workloads.presets import DECAY
from oasis.workloads.work import shares

Options = TypeVar("Options", bound=TraceOptions)
RESOURCES = ("gpu", "cpu", "memory_gb", BANDWIDTH)
_BANDWIDTH = {BANDWIDTH: "server_bandwidth_gbps"}
WORKERS = {**dict.fromkeys(("gpu", "cpu", "memory_gb"), "gpus_per_server"), **_BANDWIDTH}
PS = {"cpu": "ps_server_cpus", "memory_gb": "ps_server_memory_gb", **_BANDWIDTH}


def jobs_of(frame: Frame, options: TraceOptions) -> tuple[Job, ...]:
    """The jobs of the model that stand for the rows of a window, which begins at 0 s.

    A row has ``workers``, and ``gpu``, ``cpu`` and ``memory_gb`` of each. Its worker-seconds are
    spread over chunks, epochs and mini-batches. It may have ``requires`` too: labels of machines.
    """
    slot = options.slot_seconds
    workers, duration = frame["workers"].to_numpy(), frame["duration"].to_numpy()
    size = workers * duration  # worker-seconds
    # kappa = tau + 2 e / b: gradients go to the parameter servers, and parameters come back.
    exchange = 2 * options.gradient_mb * GBIT_PER_MB / options.worker_bandwidth_gbps  # seconds
    nominal = options.minibatch_seconds + exchange
    most = np.floor(size / nominal)  # every chunk gets a mini-batch of nominal length
    chunks = np.fmax(1, np.fmin(most, np.rint(options.elasticity * workers)))
    steps = np.fmax(1, np.floor(size / (chunks * nominal)))  # mini-batches of a chunk, all epochs
    epochs = np.fmin(options.epochs, steps)
    minibatches = steps // epochs
    # The rest of the division lengthens the mini-batches, so that W_i is as recorded. A record
    # shorter than one exchange of gradients leaves no time to train; its job gets longer.
    seconds = np.fmax(0.0, size / (chunks * epochs * minibatches) - exchange)
    gradients: dict[str, Any] = {"gradient_mb": options.gradient_mb, "ps": {}}
    bandwidth: dict[str, float] = {}
    if options.gradient_mb:  # else no bandwidth is reserved, and (6) asks for no parameter server
        bandwidth = {BANDWIDTH: options.worker_bandwidth_gbps}
        gradients["ps"] = {
            "cpu": options.ps_cpus,
            "memory_gb": options.ps_memory_gb,
            BANDWIDTH: options.ps_bandwidth_gbps,
        }
    columns = {
        "id": frame["id"].tolist(),
        "arrival": map(int, (frame["submitted"] // slot).tolist()),
        "epochs": map(int, epochs.tolist()),
        "chunks": map(int, chunks.tolist()),
        "minibatches": map(int, minibatches.tolist()),
        "minibatch_time": (seconds / slot).tolist(),
        "worker": (row | bandwidth for row in frame[[*RESOURCES[:3]]].to_dict("records")),
        "utility": drawn_utilities(duration / slot, options).rows(),
        "requires": frame["requires"] if "requires" in frame else repeat({}, len(frame)),
    }
    rows = zip(*columns.values(), strict=True)
    return tuple(Job(**gradients, **dict(zip(columns, row, strict=True))) for row in rows)


def drawn_utilities(durations: FloatArray, options: TraceOptions) -> UtilityColumns:
    """Sigmoids of section V, with delays in slots as the durations (jobs,) are."""
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


_Checked: Any = options_of_toml("MachineOptions", TraceOptions)


class MachineOptions(_Checked):  # type: ignore[misc]
    """Assumptions about a trace that records neither machines nor CPUs nor memory.

    Examples
    --------
    >>> from oasis.traces import MachineOptions
    >>> options = MachineOptions(min_gpus=4, worker_servers=16, gpus_per_server=8)
    >>> options.cluster().worker_ids[-1]
    'w#15'
    """

    __slots__ = ()

    def sized(self, frame: Frame) -> Frame:
        """The jobs with their workers; one without GPUs is a worker with CPUs and memory alone."""
        each, gpus = self.gpus_per_worker, frame["gpus"]
        return frame.assign(
            # Rounded up, because the last worker may use fewer GPUs than the others.
            workers=np.maximum(1, -(-gpus // each)),
            gpu=np.where(gpus > 0, float(each), 0.0),
            cpu=each * self.cpus_per_gpu,
            memory_gb=each * self.memory_gb_per_gpu,
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


# Those of openb come with a list of nodes.
OPTIONS: Mapping[str, Any] = {
    name: options_of_toml(name, TraceOptions if name == "OpenbOptions" else MachineOptions)
    for name in FACTS["options"]
    if name not in ("TraceOptions", "MachineOptions")
}

# --- machines that hold all jobs ------------------------------------------------------------------


def fit_machines(
    options: MachineOptions, frame: Frame, jobs: Sequence[Job], fixed: Collection[str]
) -> MachineOptions:
    """`options` with the fewest servers that hold the busiest moment of a window, and its horizon.

    The busiest moment is that of the recorded runs where the trace says when each job began, and
    otherwise of runs that begin at submission: workers and parameter servers are counted at that
    moment, and each server holds as many of them as its capacity allows. In the horizon, every job
    can finish with the recorded workers, whether it starts at its arrival or when it really did.
    """
    per_server = max(options.gpus_per_server, options.gpus_per_worker)
    options = chosen(options, fixed, gpus_per_server=per_server)
    shape = options.cluster()
    # The largest worker counts for all of them: whatever mix runs, this number fits on each server.
    worker = {**frame[[*RESOURCES[:3]]].max(), BANDWIDTH: options.worker_bandwidth_gbps}
    hold = _held(worker, shape.worker_servers[0].capacity, WORKERS)
    hold_ps = _held(jobs[0].ps, shape.ps_servers[0].capacity, PS)
    return chosen(
        options,
        fixed,
        worker_servers=max(1, ceil(busiest(frame, frame["workers"]) / hold)),
        ps_servers=max(1, ceil(busiest(frame, ps_counts(frame, jobs)) / hold_ps)),
        horizon=max(options.arrival_slots, last_slot(frame, jobs, options)),
    )


def chosen(options: Options, fixed: Collection[str], **values: Any) -> Options:
    """`options` with these values, but for those that are `fixed`."""
    return replace(options, **{name: one for name, one in values.items() if name not in fixed})


def ps_counts(frame: Frame, jobs: Sequence[Job]) -> IntArray:
    """Parameter servers of the recorded workers of each job; all jobs need as many a worker."""
    return jobs[0].ps_needed(_workers(frame, jobs))


def busiest(frame: Frame, amount: Any) -> float:
    """The most of `amount` (jobs,) that the recorded runs hold at one time."""
    begins, amount = _begins(frame), np.asarray(amount, dtype=float)
    times = np.concatenate([begins + frame["duration"], begins])
    changes = np.concatenate([-amount, amount])
    # At one time an end sorts before a beginning.
    order = np.lexsort([changes, np.repeat([0, 1], len(frame)), times])
    return max(0.0, float(np.cumsum(changes[order]).max()))


def last_slot(frame: Frame, jobs: Sequence[Job], options: TraceOptions) -> int:
    """Slots until every job has ended, with the recorded workers."""
    slot = options.slot_seconds
    work = np.array([job.work(slot) for job in jobs])
    # The floor of a negative quotient is a ceiling in whole numbers, without rounding of floats.
    alone = [job.arrival for job in jobs] - (-work // _workers(frame, jobs))
    recorded = np.ceil((_begins(frame) + frame["duration"]) / slot)
    return int(max(1, alone.max(), recorded.max()))


def _workers(frame: Frame, jobs: Sequence[Job]) -> IntArray:
    found: IntArray = np.minimum(frame["workers"].to_numpy(), [job.chunks for job in jobs])
    return found


def _begins(frame: Frame) -> Frame:
    return frame["started"].fillna(frame["submitted"])


def _held(demand: Mapping[str, float], capacity: Mapping[str, float], sizes: Any) -> int:
    """Number of such workers, or parameter servers, that fit one server; 1 if there are none."""
    counts = {
        # 0.3 / 0.1 is below 3 as a float, and yet three fit.
        name: floor(capacity.get(name, 0.0) / wanted * (1 + 1e-12))
        for name, wanted in demand.items()
        if wanted > 0
    }
    scarcest = min(counts, key=lambda name: counts[name], default="")
    if scarcest and counts[scarcest] < 1:
        expected = f"expected {scarcest} >= {demand[scarcest]:g}, which each of them needs"
        raise InstanceError(sizes[scarcest], f"{expected}, got {capacity.get(scarcest, 0.0):g}")
    return counts.get(scarcest, 1)
