"""Machines of several kinds and jobs of several forms, drawn from a seed; their joint optimum.

The optimum is plain Python that shares nothing with `oasis`: every choice of a form for each job,
every count of workers in every slot, and every way to place them.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from oasis import Cluster, Form, Instance, Job, Piecewise, Server, Speeds
from tests.oracle.reference_search import ps_for, total_work
from tests.strategies import FloatArray, Market

RESOURCES = ("gpu", "bandwidth_gbps")
KINDS = ("a", "b", "c")
Labels = Mapping[str, Any]
SLACK = 1e-9  # sums of amounts are floats


def machines(rng: np.random.Generator, name: str) -> tuple[Server, ...]:
    """One to three, of which two may come from one entry; one may have no label."""
    found = []
    for k in range(int(rng.integers(1, 3))):
        labels = {"gpu": str(rng.choice(KINDS))} if rng.random() < 0.9 else {}
        if rng.random() < 0.5:
            labels["zone"] = str(rng.choice(["east", "west"]))
        capacity = dict(zip(RESOURCES, rng.integers(2, 9, 2).astype(float), strict=True))
        count = 2 if k == 0 and rng.random() < 0.3 else 1
        found.append(Server(f"{name}{k}", capacity, count, labels))
    return tuple(found)


def some(rng: np.random.Generator) -> Labels:
    """Labels that the tasks of a form may require."""
    asked: dict[str, list[str]] = {}
    if rng.random() < 0.7:
        asked["gpu"] = [str(kind) for kind in rng.choice(KINDS, rng.integers(1, 3), replace=False)]
    if rng.random() < 0.2:
        asked["zone"] = [str(rng.choice(["east", "west"]))]
    return asked


def ways(rng: np.random.Generator) -> dict[str, Any]:
    """Forms in full, with and without parameter servers, or speeds."""
    if rng.random() < 0.3:
        kinds = rng.choice(KINDS, rng.integers(2, 4), replace=False)
        return {"speeds": Speeds("gpu", {str(k): float(rng.choice([0.5, 1, 2])) for k in kinds})}
    forms = []
    for _ in range(int(rng.integers(2, 4))):
        chunks, has_ps = int(rng.integers(1, 5)), bool(rng.random() < 0.5)
        forms.append(
            Form(
                worker={"gpu": float(rng.integers(0, 3)), "bandwidth_gbps": float(has_ps)},
                ps={"gpu": float(rng.integers(0, 2)), "bandwidth_gbps": float(rng.integers(1, 4))}
                if has_ps
                else {},
                chunks=chunks,
                minibatch_time=float(rng.choice([0.25, 0.5, 1.0, 1.5])),
                min_workers=int(rng.integers(1, chunks + 1)) if rng.random() < 0.4 else 1,
                requires=some(rng),
                ps_requires=some(rng) if rng.random() < 0.5 else None,
            )
        )
    return {"forms": tuple(forms)}


def instance(seed: int) -> Instance:
    """Two or three jobs of up to three forms, in part of one, that fight for a few machines."""
    rng = np.random.default_rng((seed, 1))
    horizon = int(rng.integers(2, 5))
    cluster = Cluster(RESOURCES, machines(rng, "w"), machines(rng, "p"), slot_seconds=1.0)
    jobs = []
    for k in range(int(rng.integers(2, 4))):
        values = np.sort(rng.choice([0.5, 1.0, 2.0, 5.0, 9.0, 20.0], horizon))[::-1]
        several = ways(rng) if rng.random() < 0.8 else {"requires": some(rng)}
        arrival = int(rng.integers(0, horizon)) if rng.random() < 0.5 else 0
        jobs.append(_job(rng, f"j{k}", arrival, values, several))
    return Instance(horizon, cluster, tuple(jobs))


def instances() -> st.SearchStrategy[Instance]:
    """Instances of any seed."""
    return st.integers(0, 10**6).map(instance)


def market(seed: int) -> Market:
    """A job of two or three forms on a few machines; some prices are 0, some machines full."""
    rng = np.random.default_rng(seed)
    horizon = int(rng.integers(2, 5))
    cluster = Cluster(RESOURCES, machines(rng, "w"), machines(rng, "p"), slot_seconds=1.0)
    values = np.sort(rng.choice([0.0, 1.0, 2.0, 5.0, 9.0, 20.0], horizon))[::-1]
    job = _job(rng, "j", 0, values, ways(rng))
    arrays = []
    for capacity in (cluster.worker_capacity, cluster.ps_capacity):
        shape = (horizon, *capacity.shape)
        used = np.floor(rng.random(shape) * rng.choice([0.0, 0.0, 0.5, 1.1], shape) * capacity)
        arrays.append((rng.choice([0.0, 0.25, 0.25, 0.5, 1.5], shape), np.minimum(used, capacity)))
    (worker_prices, worker_used), (ps_prices, ps_used) = arrays
    return Market(job, cluster, horizon, worker_prices, ps_prices, worker_used, ps_used)


def _job(
    rng: np.random.Generator, name: str, arrival: int, values: FloatArray, several: dict[str, Any]
) -> Job:
    return Job(
        name,
        arrival,
        epochs=int(rng.integers(1, 3)),
        chunks=int(rng.integers(1, 3)),
        minibatches=1,
        minibatch_time=float(rng.choice([0.5, 1.0])),
        gradient_mb=0.0,
        worker={"gpu": 1.0, "bandwidth_gbps": 1.0},
        ps={"bandwidth_gbps": 2.0},
        utility=Piecewise(tuple(map(float, range(len(values)))), tuple(values.tolist())),
        **several,
    )


# -- the optimum by enumeration --------------------------------------------------------------------

Tasks = tuple[Mapping[str, float], int, Labels]  # what one asks for, how many, where


def optimum(given: Instance) -> float:
    """(1) over all joint schedules, each job in one form."""
    return max(
        _in_these_forms(given, forms) for forms in product(*(job.in_forms for job in given.jobs))
    )


def _in_these_forms(given: Instance, jobs: Sequence[Job]) -> float:
    work = tuple(total_work(job, given.cluster) for job in jobs)

    @cache
    def fits(counts: tuple[int, ...]) -> bool:
        pairs = list(zip(jobs, counts, strict=True))
        workers = [(job.worker, n, job.requires) for job, n in pairs]
        hosted = [(job.ps, ps_for(job, n), job.ps_requires) for job, n in pairs]
        return _placed(workers, _free(given.cluster.worker_servers)) and _placed(
            hosted, _free(given.cluster.ps_servers)
        )

    @cache
    def best(slot: int, left: tuple[int, ...]) -> float:
        if slot == given.horizon:
            return 0.0
        most = 0.0
        options = [
            [0, *range(job.min_workers, job.chunks + 1)] if job.arrival <= slot and todo else [0]
            for job, todo in zip(jobs, left, strict=True)
        ]
        for counts in product(*options):
            if fits(counts):
                earned = sum(
                    float(job.utility(slot - job.arrival))
                    for job, n, todo in zip(jobs, counts, left, strict=True)
                    if todo and n >= todo
                )
                rest = tuple(max(0, todo - n) for todo, n in zip(left, counts, strict=True))
                most = max(most, earned + best(slot + 1, rest))
        return most

    return best(0, work)


def _free(servers: Sequence[Server]) -> list[tuple[Labels, dict[str, float]]]:
    return [(server.labels, dict(server.capacity)) for server in servers for _ in server.ids]


def _placed(tasks: Sequence[Tasks], free: list[tuple[Labels, dict[str, float]]]) -> bool:
    """Return whether all tasks find machines: the first one is tried on each, then the others."""
    if not tasks:
        return True
    (demand, count, required), rest = tasks[0], tasks[1:]
    if not count:
        return _placed(rest, free)
    for labels, room in free:
        admitted = all(labels.get(name) in values for name, values in required.items())
        if admitted and all(
            room.get(name, 0.0) >= amount - SLACK for name, amount in demand.items()
        ):
            for name, amount in demand.items():
                room[name] = room.get(name, 0.0) - amount
            found = _placed([(demand, count - 1, required), *rest], free)
            for name, amount in demand.items():
                room[name] += amount
            if found:
                return True
    return False
