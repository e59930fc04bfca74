"""The Hypothesis strategies of the test suite, beside those of `oasis.testing`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from oasis import (
    Cluster,
    Constant,
    Deadline,
    Instance,
    Job,
    OASiS,
    Piecewise,
    Server,
    Sigmoid,
    Utility,
)
from oasis.testing import clusters, crowded_instances, instances, jobs, utilities

FloatArray = npt.NDArray[np.float64]

BANDWIDTH = "bandwidth_gbps"
RESOURCES = ("gpu", "cpu", BANDWIDTH)
PRICES = (0.0, 0.25, 1.0, 1.0, 2.0, 10.0)
SHARES = (0.0, 0.0, 0.0, 0.25, 0.5, 0.7, 1.0)


def of(*options: Any) -> st.SearchStrategy[Any]:
    """One of `options`; Hypothesis shrinks towards the first."""
    return st.sampled_from(options)


def horizons(most: int) -> st.SearchStrategy[int]:
    """1 to `most` slots, longer ones more often."""
    return of(*sorted([*range(1, most + 1), *range(1 + most // 2, most + 1), most, most]))


def fewer(factor: int) -> settings:
    """Settings for a test whose examples are `factor` times dearer than most."""
    return settings(max_examples=max(1, settings().max_examples // factor))


def more(factor: int) -> settings:
    """Settings for a test whose examples are `factor` times cheaper than most."""
    return settings(max_examples=settings().max_examples * factor)


def all_instances(most_servers: int = 2) -> st.SearchStrategy[Instance]:
    """Nasty ones and crowded ones."""
    return st.one_of(
        instances(cluster=clusters(most_servers)), crowded_instances(most_servers=most_servers)
    )


# -- one job in a market ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Market:
    """One job, and what `oasis.best_schedule` is told about the cluster."""

    job: Job
    cluster: Cluster
    horizon: int
    worker_prices: FloatArray
    ps_prices: FloatArray
    worker_used: FloatArray
    ps_used: FloatArray

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `oasis.best_schedule` and of the oracles."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def levels(shape: tuple[int, ...], options: tuple[float, ...]) -> st.SearchStrategy[FloatArray]:
    """Arrays with all entries among `options`."""
    return hnp.arrays(np.float64, shape, elements=st.sampled_from(options))


@st.composite
def prices(draw: st.DrawFn, instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Any non-negative prices of the worker servers and of the parameter-server hosts."""
    capacities = instance.cluster.worker_capacity, instance.cluster.ps_capacity
    worker, ps = (draw(levels((instance.horizon, *c.shape), PRICES)) for c in capacities)
    return worker, ps


@st.composite
def markets(
    draw: st.DrawFn,
    *,
    most_slots: int = 5,
    most_work: int = 12,
    most_servers: int = 2,
    utility: st.SearchStrategy[Utility] | None = None,
    shares: tuple[float, ...] = SHARES,
) -> Market:
    """A job, a cluster in part used up, and prices from few levels."""
    horizon = draw(horizons(most_slots))
    job = draw(jobs(horizon, most_work=most_work, utility=utility))
    cluster = draw(clusters(most_servers))
    shapes = [(horizon, *c.shape) for c in (cluster.worker_capacity, cluster.ps_capacity)]
    price = [draw(levels(shape, PRICES)) for shape in shapes]
    share = [draw(levels(shape, shares)) for shape in shapes]
    used = share[0] * cluster.worker_capacity, share[1] * cluster.ps_capacity
    return Market(job, cluster, horizon, *price, *used)


def generous_markets(**options: Any) -> st.SearchStrategy[Market]:
    """Markets where most jobs are worth more than they cost."""
    late = st.builds(Sigmoid, st.just(1000.0), of(0.01, 0.5, 4.0), of(2.5, 15.0))
    patient = st.one_of(st.just(Constant(1000.0)), late)
    utility = st.one_of(patient, utilities((1000.0,)))
    return markets(utility=utility, shares=(0.0, 0.0, 0.25, 0.5), **options)


@st.composite
def calm_markets(draw: st.DrawFn, most_slots: int = 20, most_work: int = 40) -> Market:
    """Long horizons with few changes and many identical servers: large jobs, ties everywhere.

    Prices and usage are constant over runs of slots and often equal among servers, so that a
    search that looks at equal slots or equal servers once must still count them all.
    """
    horizon = draw(horizons(most_slots))
    cuts = sorted(draw(st.lists(st.integers(1, horizon), max_size=3)))
    lengths = np.diff([0, *(min(cut, horizon) for cut in cuts), horizon])
    machines = []
    for prefix in "wp":
        capacity = {"gpu": draw(of(3.0, 8.0)), "cpu": draw(of(6.0, 2.5)), BANDWIDTH: 8.0}
        entries = [Server(f"{prefix}0", capacity, draw(st.integers(1, 4)))]
        if draw(st.booleans()):
            entries.append(Server(f"{prefix}1", {**capacity, "cpu": 4.0}, draw(st.integers(1, 2))))
        machines.append(tuple(entries))
    cluster = Cluster(RESOURCES, *machines, 1.0)
    arrays = []
    for options, scale in ((PRICES, None), ((0.0, 0.0, 0.5, 1.0), 1.0)):
        for capacity in (cluster.worker_capacity, cluster.ps_capacity):
            row = draw(levels((len(lengths), len(capacity), 1), options))
            steps = np.repeat(row, lengths, axis=0) * np.array([0.25, 1.0, 0.5])
            arrays.append(steps if scale is None else steps * capacity)
    bandwidth = draw(of(1.0, 0.0, 0.3))
    chunks = draw(st.integers(1, 8))
    smooth = st.builds(Sigmoid, of(1000.0, 50.0), of(0.01, 0.5, 4.0, 800.0), of(0.0, 2.5, 15.0))
    job = Job(
        id="j",
        arrival=draw(of(0, 0, *range(horizon))),
        epochs=draw(st.integers(1, max(1, most_work // chunks))),
        chunks=chunks,
        minibatches=1,
        minibatch_time=draw(of(0.5, 1.0, 0.3)),
        gradient_mb=0.0,
        worker={"gpu": draw(of(0.0, 1.0)), "cpu": draw(of(1.0, 0.3)), BANDWIDTH: bandwidth},
        ps={"cpu": draw(of(1.0, 2.0)), BANDWIDTH: bandwidth * draw(of(1.0, 2.5, 4.0))},
        utility=draw(st.one_of(smooth, utilities((1000.0, 50.0)))),
    )
    return Market(job, cluster, horizon, *arrays)


def rugged_markets() -> st.SearchStrategy[Market]:
    """Markets whose slot costs are neither convex nor alike, so that no shortcut is exact.

    Parameter servers are dear and come in steps, servers are small, slots differ, and the job is
    worth about what it costs at several completions. Such a market hardly ever comes out of
    independent choices, so it is drawn at random from a seed that Hypothesis chooses.
    """
    return st.integers(0, 2**32 - 1).map(rugged_market)


def rugged_market(seed: int) -> Market:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, rng.choice([2, 4]), rng.integers(1, 7))
    horizon = int(lengths.sum())
    chunks = int(rng.integers(1, 10))
    step = float(rng.choice([1.0, 2.0, 2.5, 3.0, 4.0]))
    machines, prices, used = [], [], []
    for prefix, scale in (("w", 1.0), ("p", float(rng.choice([0.3, 2.0, 6.0])))):
        capacities = rng.integers(1, rng.choice([4, 10]), rng.integers(1, 4)).astype(float)
        entries = (
            Server(f"{prefix}{k}", {"cpu": float(size), BANDWIDTH: 100.0})
            for k, size in enumerate(capacities)
        )
        machines.append(tuple(entries))
        shape = len(lengths), len(capacities), 2
        drawn = rng.choice([0.25, 0.5, 1.0, 2.0], shape)
        if rng.random() < 0.5:
            drawn = rng.random(shape)
        prices.append(np.repeat(scale * drawn * [1.0, 0.1], lengths, axis=0))
        taken = np.zeros(shape)
        if rng.random() < 0.6:
            taken[:, :, 0] = np.minimum(capacities, rng.integers(0, 4, shape[:2]))
        used.append(np.repeat(taken, lengths, axis=0))
    work = chunks * int(rng.integers(1, 5))
    typical = work * float(prices[0][:, :, 0].mean()) + work / step * float(prices[1].mean())
    value = typical * float(rng.choice([0.8, 1.2, 2.0, 5.0]))
    late = float(rng.integers(0, horizon + 1))
    utility: Utility = (
        Constant(value),
        Sigmoid(2 * value, float(rng.choice([0.1, 0.5, 2.0])), late),
        Piecewise((0.0, late + 1.0), (value, value * rng.choice([0.0, 0.3, 0.8]))),
        Deadline(value, late),
    )[int(rng.choice([0, 1, 1, 2, 2, 3]))]
    job = Job(
        id="j",
        arrival=int(rng.integers(0, 2)) if horizon > 1 else 0,
        epochs=work // chunks,
        chunks=chunks,
        minibatches=1,
        minibatch_time=float(rng.choice([1.0, 1.0, 0.7])),
        gradient_mb=0.0,
        worker={"cpu": 1.0, BANDWIDTH: 1.0},
        ps={"cpu": 1.0, BANDWIDTH: step},
        utility=utility,
    )
    cluster = Cluster(("cpu", BANDWIDTH), *machines, 1.0)
    return Market(job, cluster, horizon, *prices, *used)


# -- schedulers ------------------------------------------------------------------------------------


@st.composite
def schedulers(
    draw: st.DrawFn, floors: tuple[float, ...] = (1e-3, 0.0)
) -> Callable[[Instance], OASiS]:
    """A way to make a scheduler from an instance: every option of `OASiS.from_instance`."""
    options = {
        "normalize": draw(of(True, False)),
        "min_utility_fraction": draw(of(*floors)),
        "scale": draw(of(1.0, 0.2, 0.5, 5.0)),
        "granularity": draw(of("worker-slot", "chunk")),
    }
    return Maker(options)


@dataclass(frozen=True)
class Maker:
    """`OASiS.from_instance` with some options, and a repr that shows them."""

    options: dict[str, Any]

    def __call__(self, instance: Instance) -> OASiS:
        return OASiS.from_instance(instance, **self.options)


# -- gangs, and markets at the edge of what there can be -------------------------------------------


@st.composite
def gang_markets(draw: st.DrawFn, given: st.SearchStrategy[Market]) -> Market:
    """The job works with a minimum of workers, which may do more than is left, or with none."""
    market = draw(given)
    chunks = market.job.chunks
    least = draw(of((chunks + 1) // 2, *range(1, chunks + 1)))
    return replace(market, job=replace(market.job, min_workers=least))


def _bandwidths(draw: st.DrawFn, job: Job, worker: float, ps: float) -> Job:
    demands = {"worker": {**job.worker, BANDWIDTH: worker}, "ps": {**job.ps, BANDWIDTH: ps}}
    return replace(job, gradient_mb=0.0, minibatch_time=draw(of(0.5, 1.0, 1 / 3)), **demands)


@st.composite
def degenerate_markets(draw: st.DrawFn, twist: str) -> Market:
    """A market of which one thing is as extreme as it can be."""
    market = draw(generous_markets(most_slots=8, most_work=20, most_servers=4))
    job, price = market.job, (market.worker_prices, market.ps_prices)
    used = market.worker_used, market.ps_used
    if twist == "no demand":
        nothing = dict.fromkeys(job.worker, 0.0)
        job = replace(job, worker=nothing, ps=nothing, gradient_mb=0.0, minibatch_time=0.5)
    elif twist == "b = B":
        job = _bandwidths(draw, job, *draw(of((1.0, 1.0), (0.1, 0.1))))
    elif twist == "b close to 0":
        job = _bandwidths(draw, job, *draw(of((1e-12, 1.0), (1e-9, 1.0), (1e-30, 1e-30))))
    elif twist == "underflowed prices":
        price = tuple(draw(of(5e-324, 1e-310, 1e-300)) * np.ceil(each) for each in price)
    elif twist == "tied prices":
        price, used = tuple(map(np.ones_like, price)), tuple(map(np.zeros_like, used))
    elif twist == "full servers":
        capacities = market.cluster.worker_capacity, market.cluster.ps_capacity
        shares = (draw(levels(each.shape, (1.0, 1.0, 1.0, 0.5))) for each in used)
        used = tuple(each * capacity for each, capacity in zip(shares, capacities, strict=True))
    elif twist == "one slot left":
        job = replace(job, arrival=market.horizon - 1)
    return Market(job, market.cluster, market.horizon, *price, *used)


TWISTS = (
    *("no demand", "b = B", "b close to 0", "underflowed prices", "tied prices"),
    *("full servers", "one slot left"),
)


# -- jobs and clusters without parameter servers ---------------------------------------------------


def all_reduced(job: Job, *, keep_demand: bool) -> Job:
    """The job with workers that exchange gradients without parameter servers."""
    worker = {name: amount for name, amount in job.worker.items() if name != BANDWIDTH}
    time = job.minibatch_time or 0.5
    ps = job.ps if keep_demand else {}
    return replace(job, worker=worker, ps=ps, gradient_mb=0.0, minibatch_time=time)


def without_servers(instance: Instance, *, keep_demand: bool = False) -> Instance:
    """The instance with jobs and a cluster without parameter servers."""
    jobs = tuple(all_reduced(job, keep_demand=keep_demand) for job in instance.jobs)
    return replace(instance, jobs=jobs, cluster=replace(instance.cluster, ps_servers=()))


@st.composite
def bare(draw: st.DrawFn, made: st.SearchStrategy[Instance]) -> Instance:
    """Instances without parameter servers; the jobs of some say what one would demand."""
    return without_servers(draw(made), keep_demand=draw(st.booleans()))
