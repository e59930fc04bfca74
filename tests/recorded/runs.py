"""Golden runs: every policy in every driver, one line of totals and digests each.

They say that a change of structure changes no decision. ``python -m tests.recorded compare`` makes
them all again and names those that differ, and in which part: the totals, the decisions on the
jobs, or what each job held when.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oasis
from experiments.evaluation.elastic_jobs import elastic_policy
from oasis.simulator import (
    ChangeCosts,
    Outage,
    PlainJob,
    Workload,
    elastic_from_dict,
    replay,
    rigid_workload,
)
from offline import configuration_bound, solve
from tests.builders import policies
from tests.live import KINDS, Drill
from tests.recorded.outputs import leaves, repeatable
from tests.unit.kubernetes.fakes import cluster_with

Run = tuple[str, Callable[[], dict[str, Any]]]  # its name, and how to make it

INSTANCES = {
    "testbed": {"preset": "testbed", "seed": 2},
    "small": {
        **{"preset": "calibrated", "seed": 3, "jobs": 10},
        **{"worker_servers": 4, "ps_servers": 4, "horizon": 10},
    },
    "wide": {
        **{"preset": "calibrated", "seed": 4, "jobs": 30},
        **{"worker_servers": 8, "ps_servers": 8, "horizon": 40},
    },
    "paper": {
        **{"preset": "paper", "seed": 5, "jobs": 6},
        **{"worker_servers": 3, "ps_servers": 3, "horizon": 200},
    },
}
# Options beside the defaults, so that each branch of the two planners is run.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "oasis": [{}, {"min_utility_fraction": 0.0}, {"granularity": "chunk"}, {"scale": 0.5}],
    "recourse": [{}, {"commitment": "start"}, {"commitment": "arrival"}, {"rounds": 0, "seed": 5}],
    "fifo": [{}, {"line": "fit"}],
    "las": [{}, {"line": "fit"}],
    "srtf": [{}, {"line": "fit"}],
}


def runs() -> Iterator[Run]:
    """Every golden run, in a fixed order."""
    yield from _simulated()
    yield from _replayed()
    yield from _elastic()
    yield from _live()
    yield from _on_a_cluster()
    yield from _proven()


def digest(document: Any) -> list[Any]:
    """A hash of what was decided in plain data, and one number that stands for its floats.

    The number is a weighted sum, so that it also changes if two floats change places.
    """
    found = list(leaves(repeatable(document)))
    floats = [value for value in found if isinstance(value, float) and math.isfinite(value)]
    rest = ["#" if isinstance(v, float) and math.isfinite(v) else str(v) for v in found]
    sums = math.fsum((1 + k / len(floats)) * value for k, value in enumerate(floats))
    return [hashlib.sha256(json.dumps(rest).encode()).hexdigest()[:16], sums]


def _named(name: str, options: dict[str, Any]) -> str:
    return name + "".join(f" {key}={value}" for key, value in options.items())


def _simulated() -> Iterator[Run]:
    for label, made in INSTANCES.items():
        instance = oasis.generate(**made)
        for name in policies():
            for options in VARIANTS.get(name, [{}]):
                run = partial(of_run, instance, name, options)
                yield f"simulate {label} {_named(name, options)}", run


def of_run(instance: oasis.Instance, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """A run on an instance: what it earned, whom it admitted, what ran where."""
    run = oasis.simulate(instance, oasis.make_policy(name, instance, **options))
    decided = [
        [d.job_id, d.admitted, d.completion, d.utility, d.payoff, d.cost] for d in run.decisions
    ]
    held = {name: [s.workers.tolist(), s.ps.tolist()] for name, s in run.schedules.items()}
    return {
        "total": run.total_utility,
        "admitted": run.admitted,
        "decisions": digest(decided),
        "schedules": digest(held),
        "calls": run.outcome.calls if run.outcome is not None else None,
    }


def _rigid_jobs() -> list[PlainJob]:
    rng = np.random.default_rng(7)
    at = np.cumsum(rng.exponential(90.0, 60))
    sizes = rng.choice([1, 1, 2, 4, 8], 60)
    durations = rng.lognormal(6.0, 1.0, 60)
    rows = zip(at.tolist(), durations.tolist(), sizes.tolist(), strict=True)
    return [PlainJob(f"p{k}", s, d, g, owner=f"u{k % 3}") for k, (s, d, g) in enumerate(rows)]


def _replayed() -> Iterator[Run]:
    jobs = _rigid_jobs()
    outages = [Outage(0, 1000.0, 2500.0), Outage(2, 1800.0, 4000.0)]
    costs = ChangeCosts(start=5.0, resume=30.0, resize=20.0, migrate=25.0)
    for placement in ("pooled", "whole"):
        workload = rigid_workload(jobs, 3, 8, placement)
        how = {} if placement == "pooled" else {"costs": costs, "outages": outages}
        for name in policies():
            if name in ("oasis", "recourse"):  # which need an instance
                continue
            for options in VARIANTS.get(name, [{}]):
                make = partial(oasis.make_policy, name, **options)
                run = partial(of_outcome, workload, make, **how)
                yield f"replay {placement} {_named(name, options)}", run


def of_outcome(workload: Workload, make: Callable[[], Any], **how: Any) -> dict[str, Any]:
    """A run on a workload: when each job ran, and what was in use when."""
    outcome = replay(workload, make(), **how)
    times = [
        [
            *(job.job_id, job.start, job.end, job.running, job.overhead),
            *(job.restarts, job.resizes, job.migrations),
            *(job.lost_work, job.work_done, job.refusal is None),
        ]
        for job in outcome.jobs
    ]
    return {
        "total": sum(job.end for job in outcome.jobs if job.end is not None),
        "admitted": sum(job.refusal is None for job in outcome.jobs),
        "decisions": digest(times),
        "schedules": digest([[at, list(use)] for at, use in outcome.timeline]),
        "calls": outcome.calls,
    }


def _elastic() -> Iterator[Run]:
    files = json.loads((Path(__file__).parent / "elastic.json").read_text(encoding="utf-8"))
    for label, data in files.items():
        made = elastic_from_dict(data)
        for name in policies():
            make = partial(elastic_policy, name, {}, made, 300.0)
            yield f"elastic {label} {name}", partial(of_outcome, made, make)


def _live() -> Iterator[Run]:
    for kind, make in KINDS.items():
        for seed in range(5):
            yield f"live {kind} seed={seed}", partial(of_drill, make, seed)


def of_drill(make: Callable[[], oasis.LiveScheduler], seed: int) -> dict[str, Any]:
    """Eighty calls on a journal, which is closed and reopened half way."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        drill = Drill(make(), seed)
        drill.scheduler.open_journal(path)
        drill.run(40).scheduler.close()
        drill.scheduler = oasis.LiveScheduler.reopen(path)
        drill.run(40)
        totals = drill.scheduler.totals
        drill.scheduler.close()
    return {
        "total": totals.utility,
        "admitted": totals.submitted - totals.refused,
        "decisions": digest(drill.answers),
        "schedules": digest([drill.executed, drill.ps]),
        "calls": totals.submitted,
    }


def _on_a_cluster() -> Iterator[Run]:
    for label in ("testbed", "small"):
        instance = oasis.generate(**INSTANCES[label])
        for name in policies():
            yield f"cluster {label} {name}", partial(of_cluster, instance, name)


def of_cluster(instance: oasis.Instance, name: str) -> dict[str, Any]:
    """The jobs of an instance on a cluster in memory, whose second machine is down for a while."""
    cluster, last = cluster_with(name, instance), 3 * instance.horizon
    cluster.down = {slot: {1} for slot in range(3, 6)}
    cluster.run(last)
    held = [[slot, uid, *map(list, what.by_group)] for slot, uid, what in cluster.history]
    return {
        "total": sum(cluster.completed.values()),
        "admitted": len(cluster.jobs) - len(cluster.rejected),
        "decisions": digest([cluster.completed, cluster.rejected]),
        "schedules": digest(held),
        "calls": last,
    }


def _proven() -> Iterator[Run]:
    for label in ("small", "testbed"):
        instance = oasis.generate(**(INSTANCES[label] | {"jobs": 8}))
        for method in ("milp", "benders", "colgen"):
            yield f"proven {label} {method}", partial(of_optimum, instance, method)


def of_optimum(instance: oasis.Instance, method: str) -> dict[str, Any]:
    """The optimum of an instance, and bounds on it at fixed prices and at the best ones."""
    # column generation leaves a gap here: a limit in work ends it at one place on every machine
    result = solve(instance, method, time_limit=None, work_limit=2)
    prices = [
        np.full((instance.horizon, *table.shape), 1e-3)
        for table in (instance.cluster.worker_capacity, instance.cluster.ps_capacity)
    ]
    return {
        "total": result.objective,
        "admitted": len(result.schedules or ()),
        "decisions": [result.status, configuration_bound(instance).bound],
        "schedules": [oasis.dual_bound(instance, *prices)],
        "calls": None,
    }
