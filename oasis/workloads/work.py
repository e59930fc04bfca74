"""Amounts of work of jobs: E, N, M, tau and e as each preset draws them (docs/workloads)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from oasis.model import rounding
from oasis.model.cluster import Cluster
from oasis.model.errors import InputError
from oasis.model.job import GBIT_PER_MB
from oasis.model.resources import BANDWIDTH
from oasis.model.rounding import FloatArray, IntArray
from oasis.workloads.presets import DECAY, RESOURCES, Preset, Range, fitting

Columns = dict[str, npt.NDArray[Any]]


def whole(rng: np.random.Generator, ends: tuple[int, ...], size: int) -> IntArray:
    """Draw integers uniformly from ``ends[0]`` to ``ends[1]``, both included."""
    return rng.integers(ends[0], ends[1], size=size, endpoint=True)


def demands(rng: np.random.Generator, preset: Preset, size: int) -> Columns:
    """Draw the columns ``worker`` and ``ps``, demands of shape (size, R), with b_i <= B_i."""
    worker, ps = (_units(rng, ranges, size) for ranges in (preset.worker, preset.ps))
    bandwidth = rng.uniform(*preset.worker_bandwidth, size=size)
    # B_i is drawn from the part of its range that b_i
    # leaves, because (7) cannot hold with b_i > B_i.
    lowest, highest = preset.ps_bandwidth
    set_bandwidth(worker, bandwidth)
    set_bandwidth(ps, rng.uniform(np.maximum(lowest, bandwidth), highest))
    return {"worker": worker, "ps": ps}


def set_bandwidth(demand: FloatArray, bandwidth: FloatArray) -> None:
    """Set the bandwidth column of `demand` (n, R) in place."""
    demand[:, RESOURCES.index(BANDWIDTH)] = bandwidth


def bandwidth_of(demand: FloatArray) -> FloatArray:
    """Return the bandwidth column of `demand` (n, R), Gbit/s."""
    return demand[:, RESOURCES.index(BANDWIDTH)]


def utilities(
    rng: np.random.Generator, preset: Preset, priority: Range, mix: tuple[float, ...], size: int
) -> Columns:
    """Draw the columns ``priority``, ``decay`` and ``target`` of sigmoid utilities."""
    kind = rng.permutation(np.repeat(np.arange(len(DECAY)), shares(mix, size)))
    lowest, highest = np.array(DECAY).T
    return {
        "priority": rng.uniform(*priority, size=size),
        "decay": rng.uniform(lowest[kind], highest[kind]),
        "target": rng.uniform(*preset.target, size=size),
    }


def shares(mix: tuple[float, ...], size: int) -> IntArray:
    """Return how many of `size` jobs are in each class, by `mix` and largest remainders."""
    exact = np.array(mix) * size
    counts: IntArray = np.floor(exact).astype(np.int64)
    # Stable, so that of equal remainders the first class is rounded up on every platform.
    largest = np.argsort(counts - exact, kind="stable")
    counts[largest[: size - counts.sum()]] += 1
    return counts


def rows(columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield a dictionary for each job, with Python numbers, and demands by resource name."""
    plain = {name: array.tolist() for name, array in columns.items()}
    for group in ("worker", "ps"):
        plain[group] = [dict(zip(RESOURCES, row, strict=True)) for row in plain[group]]
    for values in zip(*plain.values(), strict=True):
        yield dict(zip(plain, values, strict=True))


def _units(
    rng: np.random.Generator, ranges: Mapping[str, tuple[int, int]], size: int
) -> FloatArray:
    table = np.zeros((size, len(RESOURCES)))
    for name, ends in ranges.items():
        table[:, RESOURCES.index(name)] = whole(rng, ends, size)
    return table


Draw = Callable[[IntArray], tuple[Columns, npt.NDArray[np.bool_]]]
# Drawing is much faster in arrays: many candidates at once, and the first good one is taken.
CANDIDATES = 32768  # drawn in one round, for all jobs together
MAX_PER_JOB = 2048  # drawn in one round for one job
MAX_ROUNDS = 100  # a job without a good candidate by then has next to none


def exchange_slots(
    gradient_mb: FloatArray, bandwidth: FloatArray, slot_seconds: float
) -> FloatArray:
    """Return 2 e_i / b_i in slots: the time to send and fetch gradients."""
    slots: FloatArray = 2 * gradient_mb * GBIT_PER_MB / bandwidth / slot_seconds
    return slots


def paper(rng: np.random.Generator, preset: Preset, size: int) -> Columns:
    """Draw the columns of `size` jobs, every parameter uniformly in the range of the paper."""
    return demands(rng, preset, size) | {
        "chunks": whole(rng, preset.chunks, size),
        "epochs": whole(rng, preset.epochs, size),
        "minibatches": whole(rng, preset.minibatches, size),
        "gradient_mb": rng.uniform(preset.gradient_mb[0], preset.gradient_mb[1], size=size),
        "minibatch_time": rng.uniform(*preset.minibatch_time, size=size),
    }


def calibrate(
    rng: np.random.Generator, preset: Preset, allowed: IntArray, slot_seconds: float
) -> Columns:
    """Draw jobs whose E, M, e and b leave room for tau, so that each alone can meet its target.

    Parameters
    ----------
    allowed : (n,) int array
        Slots that each job may take: gamma3 rounded down, at most T - a_i.
    """
    shortest, longest = preset.minibatch_time

    def draw(job: IntArray) -> tuple[Columns, npt.NDArray[np.bool_]]:
        columns: Columns = {
            "epochs": whole(rng, preset.epochs, job.size),
            "minibatches": whole(rng, preset.minibatches, job.size),
            "gradient_mb": rng.uniform(preset.gradient_mb[0], preset.gradient_mb[1], size=job.size),
            "bandwidth": rng.uniform(*preset.worker_bandwidth, size=job.size),
        }
        exchange = exchange_slots(columns["gradient_mb"], columns["bandwidth"], slot_seconds)
        steps = columns["epochs"] * columns["minibatches"]
        room = allowed[job] / steps - exchange  # the largest tau that still meets the target
        return columns | {"room": room}, room > shortest

    columns = paper(rng, preset, allowed.size)
    redrawn = redraw(allowed.size, draw)
    if redrawn is None:
        raise InputError(
            "slot_seconds",
            f"{slot_seconds:g} s is too short for the preset 'calibrated', "
            "where sending the gradients must leave time to meet the target",
        )
    room = np.minimum(longest, redrawn.pop("room"))
    set_bandwidth(columns["worker"], redrawn.pop("bandwidth"))
    # Log-uniform, because the range spans a factor of
    # 100: uniform draws would hardly ever be small.
    tau = log_uniform(rng, shortest, room)
    # Rounding may leave the ends of the range by a last digit.
    return columns | redrawn | {"minibatch_time": np.clip(tau, shortest, room)}


def testbed(
    rng: np.random.Generator, preset: Preset, arrival: IntArray, horizon: int, cluster: Cluster
) -> Columns:
    """Draw jobs with tau by a drawn duration; redraw those that `cluster` cannot end in time."""

    def draw(job: IntArray) -> tuple[Columns, npt.NDArray[np.bool_]]:
        columns = _testbed_candidates(rng, preset, job.size, cluster.slot_seconds)
        work = rounding.ceil(columns["chunks"] * columns.pop("length"))
        # A job that fits nowhere divides by nearly 0, takes for ever, and is drawn again.
        workers = np.maximum(parallelism(columns, cluster), 1e-3)
        limit = np.minimum(preset.duration[1], horizon - arrival[job])
        fits = rounding.ceil(work / workers) <= limit
        return columns, fits & (columns["minibatch_time"] > 0)

    columns = redraw(arrival.size, draw)
    if columns is None:
        raise InputError(
            "horizon",
            "expected room for a job of the preset 'testbed' between its arrival "
            f"and slot {horizon} on the machines given",
        )
    epochs = np.rint(preset.epochs_kept * columns["epochs"]).astype(np.int64)
    return columns | {"epochs": np.maximum(1, epochs)}


def _testbed_candidates(
    rng: np.random.Generator, preset: Preset, size: int, slot_seconds: float
) -> Columns:
    columns = demands(rng, preset, size)
    pair = rng.integers(len(preset.chunks), size=size)
    epochs = whole(rng, preset.epochs, size)
    minibatches = np.array(preset.minibatches)[pair]
    gradient_mb = rng.choice(np.array(preset.gradient_mb), size=size)
    # continuous length in (D - 1, D], so that ceil(E M kappa) = D
    length = whole(rng, preset.duration, size) - rng.uniform(size=size)
    exchange = exchange_slots(gradient_mb, bandwidth_of(columns["worker"]), slot_seconds)
    return columns | {
        "chunks": np.array(preset.chunks)[pair],
        "epochs": epochs,
        "minibatches": minibatches,
        "gradient_mb": gradient_mb,
        "minibatch_time": length / (epochs * minibatches) - exchange,
        "length": length,
    }


def parallelism(columns: Columns, cluster: Cluster) -> IntArray:
    """Return how many workers of each job the empty cluster can run at once, at most N_i."""
    workers = fitting(columns["worker"], cluster.worker_capacity)
    if not cluster.ps_ids:
        return np.minimum(columns["chunks"], workers).astype(np.int64)
    ps = fitting(columns["ps"], cluster.ps_capacity)
    served = rounding.floor(ps * bandwidth_of(columns["ps"]) / bandwidth_of(columns["worker"]))
    most: IntArray = np.minimum(columns["chunks"], np.minimum(workers, served)).astype(np.int64)
    return most


def all_reduced(columns: Columns, slot_seconds: float) -> Columns:
    """Return the columns that change when workers exchange gradients without parameter servers.

    A job stays as much work as it was: what 2 e_i / b_i took becomes part of tau_i.
    """
    exchange = exchange_slots(columns["gradient_mb"], bandwidth_of(columns["worker"]), slot_seconds)
    worker, ps = columns["worker"].copy(), np.zeros_like(columns["ps"])
    set_bandwidth(worker, np.zeros(len(worker)))
    return {
        "worker": worker,
        "ps": ps,
        "gradient_mb": np.zeros_like(exchange),
        "minibatch_time": columns["minibatch_time"] + exchange,
    }


def redraw(size: int, draw: Draw) -> Columns | None:
    """Return a good draw for each of `size` jobs; None if a job has none after `MAX_ROUNDS`.

    `draw` takes, for each candidate, the index of the job it is for. It returns the columns of the
    candidates and which of them are good. A job gets its first good candidate.
    """
    columns: Columns = {}
    pending = np.arange(size)
    for _ in range(MAX_ROUNDS):
        if not pending.size and columns:
            return columns
        # The fewer jobs are left, the harder they are to fit: each gets more candidates.
        per_job = int(np.clip(CANDIDATES // max(pending.size, 1), 1, MAX_PER_JOB))
        drawn, good = draw(np.repeat(pending, per_job))
        table = good.reshape(pending.size, per_job)
        done = table.any(axis=1)
        first = (np.arange(pending.size) * per_job + table.argmax(axis=1))[done]
        for name, values in drawn.items():
            blank = np.zeros((size, *values.shape[1:]), values.dtype)
            columns.setdefault(name, blank)[pending[done]] = values[first]
        pending = pending[~done]
    return None


def log_uniform(rng: np.random.Generator, least: float, most: FloatArray) -> FloatArray:
    """Draw values from `least` to `most` with uniform logarithms.

    The logarithms and exponentials are rounded from extended precision, where NumPy has one: in
    double precision, their last digit depends on the instructions that the processor has.
    """
    low, high = (np.log(np.asarray(end, np.longdouble)).astype(float) for end in (least, most))
    drawn: FloatArray = np.exp(rng.uniform(low, high).astype(np.longdouble)).astype(float)
    return drawn
