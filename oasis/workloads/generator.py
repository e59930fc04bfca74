"""Random instances with the settings of section V (docs/workloads)."""

from __future__ import annotations

import csv
import hashlib
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from oasis.model.choices import choice
from oasis.model.cluster import Cluster
from oasis.model.errors import InputError
from oasis.model.instance import Instance
from oasis.model.job import Job
from oasis.model.rounding import FloatArray, IntArray
from oasis.model.utility import Sigmoid
from oasis.model.validation import integer, number
from oasis.version import __version__
from oasis.workloads import work
from oasis.workloads.presets import (
    MACHINES,
    MIX,
    PRESETS,
    PRIORITY,
    RESOURCES,
    draw_servers,
    draw_speeds,
    servers_of_kinds,
    testbed_servers,
)
from oasis.workloads.work import Columns, rows, utilities

Counts: TypeAlias = str | os.PathLike[str] | npt.ArrayLike
ARRIVALS = ("uniform", "poisson", "google")
OWN_MACHINES = {
    "testbed": testbed_servers,
    "testbed-observed": testbed_servers,
    "kinds": servers_of_kinds,
}  # presets that fit their jobs
HEADER = ["hour", "job_submits"]
SECONDS_PER_HOUR = 3600.0


def draw_arrivals(rng: np.random.Generator, kind: str, jobs: int, weights: FloatArray) -> IntArray:
    """Draw arrival slots, in order; `weights` (T,) is the expected share of each slot.

    The number of arrivals is `jobs`, except for ``"poisson"``, where `jobs` is its mean.
    """
    draw = rng.poisson(jobs * weights) if kind == "poisson" else rng.multinomial(jobs, weights)
    return np.repeat(np.arange(weights.size), draw)


def slot_weights(
    counts: FloatArray | None, horizon: int, slot_seconds: float, last_arrival: int
) -> FloatArray:
    """Return the expected share of arrivals of each slot, shape (T,); 0 after `last_arrival`.

    Slot t covers hours [t, t + 1) slot_seconds / 3600 of `counts`, which start over at their end;
    within an hour arrivals are evenly likely. Without counts every slot weighs the same.
    """
    if counts is None:
        weights = np.ones(horizon)
    else:
        cumulative = np.concatenate([[0.0], np.cumsum(counts)])
        hours = np.arange(horizon + 1) * (slot_seconds / SECONDS_PER_HOUR)
        # Counts are summed up first, so that slots of any
        # length, also parts of an hour, get their share.
        rounds, parts = np.divmod(hours, counts.size)
        total = np.interp(parts, np.arange(counts.size + 1), cumulative)
        weights = np.diff(rounds * cumulative[-1] + total)
    weights[last_arrival + 1 :] = 0.0
    if not weights.sum() > 0:
        raise InputError("counts", "expected an arrival within the horizon, got only zeros")
    shares: FloatArray = weights / weights.sum()
    return shares


def read_counts(counts: Counts) -> FloatArray:
    """Return hourly counts from an array or from a CSV file with columns ``hour,job_submits``."""
    if isinstance(counts, (str, os.PathLike)):
        values = np.array(_read_file(Path(counts)), dtype=np.float64)
    else:
        try:
            values = np.array(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("counts", "expected a path or an array of numbers") from None
    if values.ndim != 1 or not values.size:
        raise InputError("counts", f"expected a non-empty row of counts, got shape {values.shape}")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InputError("counts", "expected finite numbers >= 0")
    return values


def fingerprint(counts: FloatArray) -> dict[str, Any]:
    """Return length, sum and SHA-256 of `counts`, for the metadata of an instance."""
    # The byte order is fixed, so that every machine finds the same digest.
    digest = hashlib.sha256(np.ascontiguousarray(counts, "<f8").tobytes()).hexdigest()
    return {"hours": counts.size, "submits": float(counts.sum()), "sha256": digest}


def _read_file(path: Path) -> list[int]:
    submits: list[int] = []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream)
        header = next(rows, [])
        if header != HEADER:
            expected = ",".join(HEADER)
            raise InputError("counts", f"line 1: expected the header {expected}, got {header}")
        for row in rows:
            try:
                hour, count = map(int, row)
            except ValueError:
                expected = "expected an hour and a whole number of submits"
                raise InputError("counts", f"line {rows.line_num}: {expected}, got {row}") from None
            if hour != len(submits):
                expected = f"expected hour {len(submits)}"
                raise InputError("counts", f"line {rows.line_num}: {expected}, got {hour}")
            submits.append(count)
    return submits


SIZES = ("jobs", "worker_servers", "ps_servers", "horizon")


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """The arguments of `generate`, all filled in; the ranges come from the preset."""

    preset: str
    seed: int
    jobs: int
    worker_servers: int
    ps_servers: int
    horizon: int
    slot_seconds: float
    arrivals: str
    counts: FloatArray | None
    machines: str
    priority: tuple[float, float]
    mix: tuple[float, float, float]

    def metadata(self) -> dict[str, Any]:
        """Return the settings as plain data from which the instance can be drawn again."""
        parameters = asdict(self)
        counts = None if self.counts is None else fingerprint(self.counts)
        parameters |= {"counts": counts, "priority": [*self.priority], "mix": [*self.mix]}
        names = {name: parameters.pop(name) for name in ("preset", "seed")}
        return names | {"parameters": parameters}


def resolve(preset: Any, **settings: Any) -> GeneratorSettings:
    """Check the arguments of `generate` and take those that are None from the preset.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    preset = choice(preset, PRESETS, "preset")
    defaults = PRESETS[preset]
    for name in (*SIZES, "slot_seconds"):
        if settings[name] is None:
            settings[name] = getattr(defaults, name)
    for name in SIZES:
        settings[name] = integer(settings[name], name, minimum=0 if name == "ps_servers" else 1)
    settings["slot_seconds"] = number(settings["slot_seconds"], "slot_seconds", above=True)
    settings["seed"] = integer(settings["seed"], "seed")
    has_counts = settings["counts"] is not None
    if settings["arrivals"] is None:
        settings["arrivals"] = "google" if has_counts else "uniform"
    settings["arrivals"] = choice(settings["arrivals"], ARRIVALS, "arrivals")
    if (settings["arrivals"] == "google") != has_counts:
        expected = "no counts" if has_counts else "hourly counts (a path or an array)"
        raise InputError("counts", f"expected {expected} with arrivals={settings['arrivals']!r}")
    settings["counts"] = read_counts(settings["counts"]) if has_counts else None
    known = ("gpu_workers",) if preset in OWN_MACHINES else MACHINES
    settings["machines"] = choice(settings["machines"], known, "machines")
    settings["priority"] = _numbers(settings["priority"], "priority", 2)
    if settings["priority"][0] > settings["priority"][1]:
        raise InputError("priority", "expected low <= high", settings["priority"])
    settings["mix"] = _numbers(settings["mix"], "mix", 3)
    if abs(sum(settings["mix"]) - 1) > 1e-9:
        raise InputError("mix", "expected shares with sum 1", settings["mix"])
    return GeneratorSettings(preset=preset, **settings)


def _numbers(values: Any, name: str, size: int) -> tuple[float, ...]:
    if not isinstance(values, (tuple, list)) or len(values) != size:
        raise InputError(name, f"expected {size} numbers", values)
    return tuple(number(value, f"{name}[{k}]") for k, value in enumerate(values))


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
    preset : {"calibrated", "paper", "testbed", "testbed-observed", "kinds"}
        ``paper`` draws every parameter as printed, ``calibrated`` refits tau within the same ranges
        so that every job can meet its target alone, ``testbed`` is section V-B.
        ``testbed-observed`` has the same jobs with 0.4 of their epochs. ``kinds`` has GPUs of three
        kinds, and jobs of the testbed's sizes that run on each of them at a speed of its own
        (`Job.speeds`); there is more work than the machines can do.
    jobs, worker_servers, ps_servers, horizon : int, optional
        I, H, K and T; left out, the preset's. With K = 0 no job has parameter servers: its workers
        reserve no bandwidth, and `minibatch_time` includes the exchange of gradients (all-reduce),
        so that the job is as much work as with K > 0.
    seed : int
        Machines, arrivals and jobs draw from streams of their own, so that more machines leave
        the arrivals as they are, and the jobs of ``paper`` and ``calibrated``.
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
        The other presets have machines of their own.
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


def _draw(settings: GeneratorSettings) -> Instance:
    table = PRESETS[settings.preset]
    # Streams of their own: more machines draw nothing that arrivals and jobs draw from.
    machines, times, jobs, models = np.random.default_rng(settings.seed).spawn(4)
    cluster = _cluster(machines, settings)
    # A job needs a slot to run in, so at least slot 0 takes arrivals.
    last = max(0, settings.horizon - 1 - table.quiet_slots)
    weights = slot_weights(settings.counts, settings.horizon, settings.slot_seconds, last)
    arrival = draw_arrivals(times, settings.arrivals, settings.jobs, weights)
    columns = utilities(jobs, table, settings.priority, settings.mix, arrival.size)
    columns |= {"arrival": arrival} | _work(jobs, settings, arrival, columns["target"], cluster)
    if not settings.ps_servers:
        columns |= work.all_reduced(columns, settings.slot_seconds)
    metadata = {"generator": "oasis.generate", "version": __version__}
    drawn = _jobs(columns)
    if settings.preset == "kinds":
        speeds = draw_speeds(models, len(drawn))
        drawn = tuple(replace(job, speeds=speed) for job, speed in zip(drawn, speeds, strict=True))
    return Instance(settings.horizon, cluster, drawn, metadata | settings.metadata())


def _cluster(rng: np.random.Generator, settings: GeneratorSettings) -> Cluster:
    sizes = (settings.worker_servers, settings.ps_servers)
    if settings.preset in OWN_MACHINES:
        workers, ps = OWN_MACHINES[settings.preset](*sizes)
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
    settings: GeneratorSettings,
    arrival: IntArray,
    target: FloatArray,
    cluster: Cluster,
) -> Columns:
    table = PRESETS[settings.preset]
    if settings.preset in OWN_MACHINES:
        return work.testbed(rng, table, arrival, settings.horizon, cluster)
    if settings.preset == "calibrated":
        # A job completes with a whole slot, so a target of 4.7 slots leaves four.
        allowed = np.minimum(np.floor(target).astype(np.int64), settings.horizon - arrival)
        return work.calibrate(rng, table, allowed, settings.slot_seconds)
    return work.paper(rng, table, arrival.size)


def _jobs(columns: Columns) -> tuple[Job, ...]:
    jobs = []
    for k, row in enumerate(rows(columns)):
        utility = Sigmoid(row.pop("priority"), row.pop("decay"), row.pop("target"))
        jobs.append(Job(id=f"j{k}", utility=utility, **row))
    return tuple(jobs)
