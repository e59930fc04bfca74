"""Tiny congested instances for the oracles, drawn by Hypothesis or from a seed."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oasis import Cluster, Constant, Deadline, Instance, Job, Piecewise, Server, Sigmoid

RESOURCES = ("gpu", "cpu", "bandwidth_gbps")
# HiGHS 1.15.1 with all its presolve rules calls something worse optimal on these seeds.
FALSE_OPTIMA = (198, 1027, 1864, 2061, 2117, 2168)
Pick = Callable[[Sequence[Any]], Any]


def seeded(seed: int) -> Pick:
    """Uniform choice from a seeded generator."""
    rng = np.random.default_rng(seed)
    return lambda options: options[int(rng.integers(len(options)))]


def tiny_instance(pick: Pick, jobs: int = 4, horizon: int = 5) -> Instance:
    """One to `jobs` jobs over at most `horizon` slots on one or two servers a side."""
    slots = pick([1, *range(2, horizon + 1), horizon])
    cluster = Cluster(
        RESOURCES,
        tuple(_server(pick, f"w{h}") for h in range(pick([1, 2]))),
        tuple(_server(pick, f"p{k}") for k in range(pick([1, 2]))),
        slot_seconds=pick([1.0, 20.0]),
    )
    count = pick([*range(1, jobs + 1), jobs])
    return Instance(slots, cluster, tuple(_job(pick, f"j{i}", slots) for i in range(count)))


def on_one_server(gpus: Sequence[float], utilities: Sequence[float], horizon: int = 1) -> Instance:
    """Jobs of one worker for one slot, with these GPUs each, on a server that has four."""
    full = {"gpu": 4.0, "bandwidth_gbps": 10.0}
    cluster = Cluster(tuple(full), (Server("w", full),), (Server("p", full),), slot_seconds=1.0)
    jobs = (
        Job(
            id=f"j{k}",
            arrival=0,
            epochs=1,
            chunks=1,
            minibatches=1,
            minibatch_time=1.0,
            gradient_mb=0.0,
            worker={"gpu": asked},
            ps={},
            utility=Constant(utility),
        )
        for k, (asked, utility) in enumerate(zip(gpus, utilities, strict=True))
    )
    return Instance(horizon, cluster, tuple(jobs))


def _server(pick: Pick, name: str) -> Server:
    capacity = {
        "gpu": pick([0.0, 1.0, 2.0, 2.0, 3.0]),
        "cpu": pick([0.3, 1.0, 2.5, 4.0, 4.0]),
        "bandwidth_gbps": pick([1.0, 2.1, 5.0, 5.0]),
    }
    return Server(name, capacity)


def _job(pick: Pick, name: str, slots: int) -> Job:
    bandwidth = pick([0.0, 0.1, 0.7, 1.0])
    sends = bandwidth > 0 and pick([True, False])
    worker = {
        "gpu": pick([0.0, 0.0, 0.5, 1.0]),
        "cpu": pick([0.0, 0.1, 1.0, 1.3]),
        "bandwidth_gbps": bandwidth,
    }
    ps = {
        "gpu": 0.0,
        "cpu": pick([0.0, 0.1, 1.0, 1.1]),
        "bandwidth_gbps": bandwidth * pick([1.0, 1.5, 3.0, 1 / 0.3]),
    }
    return Job(
        id=name,
        arrival=pick([0, *range(slots)]),
        epochs=pick([1, 1, 2]),
        chunks=pick([1, 2, 3]),
        minibatches=1,
        minibatch_time=pick([0.1, 0.3, 0.6, 1.0, 1.5]),
        gradient_mb=pick([1.0, 10.0]) if sends else 0.0,
        worker=worker if bandwidth or pick([True, False]) else {},
        ps=ps,
        utility=_utility(pick),
    )


def _utility(pick: Pick) -> Any:
    value = pick([0.547, 1.0, 3.7, 10.0, 100.0])
    kind = pick(["sigmoid", "critical", "constant", "deadline", "piecewise"])
    if kind == "constant":
        return Constant(value)
    if kind == "deadline":
        return Deadline(value, pick([0.0, 1.0, 2.0]))
    if kind == "piecewise":
        return Piecewise((0.0, 2.0), (value, value * pick([0.0, 0.5, 1.0])))
    return Sigmoid(value, pick([4.0, 6.0]) if kind == "critical" else 0.5, pick([1.0, 2.5]))
