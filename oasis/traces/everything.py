"""Keep every job of a trace: options that leave out no job, and machines that hold all jobs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from math import ceil, floor
from typing import Any, TypeVar

from oasis.model.errors import InstanceError
from oasis.model.job import Job
from oasis.model.resources import BANDWIDTH
from oasis.traces.mapping import MachineOptions, jobs_of
from oasis.traces.options import TraceOptions
from oasis.traces.window import JobRecord, Window

Options = TypeVar("Options", bound=TraceOptions)
CHOSEN = ("worker_servers", "gpus_per_server", "ps_servers", "max_node_gpus", "horizon")  # and said
_BANDWIDTH = {BANDWIDTH: "server_bandwidth_gbps"}
WORKERS = {**dict.fromkeys(("gpu", "cpu", "memory_gb"), "gpus_per_server"), **_BANDWIDTH}
PS = {"cpu": "ps_server_cpus", "memory_gb": "ps_server_memory_gb", **_BANDWIDTH}


def loosened(kind: type[TraceOptions], given: Mapping[str, Any]) -> dict[str, Any]:
    """Add to `given` the options whose defaults would contradict it."""
    defaults = {entry.name: entry.default for entry in fields(kind)}
    more: dict[str, Any] = {}
    for low, high in (("min_gpus", "max_gpus"), ("min_duration", "max_duration")):
        if high in given and low not in given:
            more[low] = 0
        elif low in given and high not in given:
            # A lower limit above the default of the upper one would leave out every job.
            more[high] = max(defaults[high], given[low])
    if "horizon" in given and "arrival_slots" not in given:
        more["arrival_slots"] = min(defaults["arrival_slots"], given["horizon"])
    elif "arrival_slots" in given and "horizon" not in given:
        more["horizon"] = max(defaults["horizon"], given["arrival_slots"])
    return {**given, **more}


def widened(
    options: Options,
    records: Sequence[JobRecord],
    fixed: Collection[str],
    begin: float | None = None,
) -> Options:
    """Change the options that leave out jobs so that they leave out none, except those in `fixed`.

    Jobs without GPUs stay left out unless ``options.cpu_jobs`` keeps them. The new values come
    from the trace, such as the GPUs of its largest job. They are recorded, and
    an import with these values takes the same jobs. `begin` is where the window begins, if
    ``options.start`` is a time.
    """
    if not records:
        return options
    first = min(record.submitted for record in records) if begin is None else begin
    last = max(record.submitted for record in records)
    slots = max(1, floor((last - first) / options.slot_seconds) + 1)
    if "horizon" in fixed:
        slots = min(slots, options.horizon)
    wide: dict[str, Any] = {
        "min_gpus": 0 if options.cpu_jobs else 1,
        "max_gpus": max(record.gpus for record in records),
        "min_duration": 0.0,
        "max_duration": max(record.duration for record in records),
        "start": "first",
        "arrival_slots": slots,
        "stride": 1,
        "max_jobs": len(records),
        "keep": "first",
    }
    for low, high in (("min_gpus", "max_gpus"), ("min_duration", "max_duration")):
        if low in fixed:
            wide[high] = max(wide[high], getattr(options, low))
    wide = {name: value for name, value in wide.items() if name not in fixed}
    if "horizon" not in fixed:
        wide["horizon"] = max(options.horizon, wide.get("arrival_slots", options.arrival_slots))
    return replace(options, **wide)


def fit_machines(options: MachineOptions, window: Window, fixed: Collection[str]) -> MachineOptions:
    """`options` with the fewest servers that hold the busiest moment of `window`, and its horizon.

    The busiest moment is that of the recorded runs where the trace says when each job began, and
    otherwise of runs that begin at submission: workers and parameter servers are counted at that
    moment, and each server holds as many of them as its capacity allows. In the horizon, every job
    can finish with the recorded workers, whether it starts at its arrival or when it really did.
    """
    if options.gpus_per_worker > options.gpus_per_server and "gpus_per_server" not in fixed:
        options = replace(options, gpus_per_server=options.gpus_per_worker)
    jobs = jobs_of(window, options)
    ps = ps_counts(window, jobs)
    shape = MachineOptions.cluster(options)
    demands = [
        {**record.demand, BANDWIDTH: options.worker_bandwidth_gbps} for record in window.records
    ]
    # The largest worker counts for all of them: whatever mix runs, this number fits on each server.
    hold = min(_held(demand, shape.worker_servers[0].capacity, WORKERS) for demand in demands)
    hold_ps = _held(jobs[0].ps, shape.ps_servers[0].capacity, PS)
    chosen: dict[str, Any] = {
        "worker_servers": max(1, ceil(busiest(window.records, lambda r: r.workers) / hold)),
        "ps_servers": max(1, ceil(busiest(window.records, lambda r: ps[r.id]) / hold_ps)),
        "horizon": max(options.arrival_slots, last_slot(window, options)),
    }
    return replace(options, **{name: n for name, n in chosen.items() if name not in fixed})


def ps_counts(window: Window, jobs: Sequence[Job]) -> dict[str, int]:
    """Parameter servers of each job's recorded workers, by its name."""
    return {
        record.id: int(job.ps_needed(min(record.workers, job.chunks)))
        for record, job in zip(window.records, jobs, strict=True)
    }


def busiest(records: Sequence[JobRecord], amount: Callable[[JobRecord], float]) -> float:
    """The most of `amount` that the runs of `records` hold at one time."""
    events = []
    for record in records:
        begin = _begin(record)
        events += [(begin, 1, amount(record)), (begin + record.duration, 0, -amount(record))]
    held = most = 0.0
    # At one time an end, 0, sorts before a beginning, 1.
    for _, _, change in sorted(events):
        held += change
        most = max(most, held)
    return most


def last_slot(window: Window, options: TraceOptions) -> int:
    """Slots until every job of `window` has ended, with the recorded workers."""
    slot = options.slot_seconds
    last = 1
    for record, job in zip(window.records, jobs_of(window, options), strict=True):
        workers = min(record.workers, job.chunks)
        recorded = (_begin(record) + record.duration - window.start) / slot
        # The floor of a negative quotient is a ceiling
        # in whole numbers, without rounding of floats.
        last = max(last, job.arrival - (-job.work(slot) // workers), ceil(recorded))
    return last


def _begin(record: JobRecord) -> float:
    return record.submitted if record.started is None else record.started


def _held(demand: Mapping[str, float], capacity: Mapping[str, float], sizes: Any) -> int:
    """Number of such workers, or parameter servers, that fit one server."""
    counts = {
        # 0.3 / 0.1 is below 3 as a float, and yet three fit.
        name: floor(capacity.get(name, 0.0) / wanted * (1 + 1e-12))
        for name, wanted in demand.items()
        if wanted > 0
    }
    scarcest = min(counts, key=lambda name: counts[name])
    if counts[scarcest] < 1:
        expected = f"expected {scarcest} >= {demand[scarcest]:g}, which each of them needs"
        raise InstanceError(sizes[scarcest], f"{expected}, got {capacity.get(scarcest, 0.0):g}")
    return counts[scarcest]
