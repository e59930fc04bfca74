"""Fixed instances through every policy, bound and offline method: one line of digest each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np

import baselines
import oasis
from offline import configuration_bound, solve
from tests.recorded.outputs import repeatable

INSTANCES = (
    ("testbed", {"seed": 1, "jobs": 8}),
    ("testbed", {"seed": 2}),
    ("calibrated", {"seed": 3, "jobs": 10, "worker_servers": 4, "ps_servers": 4, "horizon": 10}),
    ("calibrated", {"seed": 4, "jobs": 30, "worker_servers": 8, "ps_servers": 8, "horizon": 40}),
    ("paper", {"seed": 5, "jobs": 6, "worker_servers": 3, "ps_servers": 3, "horizon": 200}),
)


def digest(document: object) -> str:
    """A short hash of plain data, measured times aside."""
    text = json.dumps(repeatable(document), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def lines() -> Iterator[str]:
    """One line for each result."""
    for preset, options in INSTANCES:
        instance = oasis.generate(preset, **options)
        name = f"{preset} {options}"
        yield f"{name} instance {digest([str(job) for job in instance.jobs])}"
        runs = {"oasis": oasis.simulate(instance, oasis.OASiS.from_instance(instance))}
        for policy in baselines.POLICIES:
            runs[policy] = oasis.simulate(instance, baselines.make(policy, 1))
        for policy, run in runs.items():
            decisions = [decision.to_dict() for decision in run.decisions]
            yield f"{name} {policy} {run.total_utility!r} {digest(decisions)}"
        certificate = oasis.certify(instance, runs["oasis"])
        yield f"{name} certificate {certificate}"
        cluster, horizon = instance.cluster, instance.horizon
        prices = [
            np.full((horizon, *table.shape), 1e-3)
            for table in (cluster.worker_capacity, cluster.ps_capacity)
        ]
        if horizon <= 40:
            yield f"{name} dual bound {oasis.dual_bound(instance, *prices)!r}"
            bound = configuration_bound(instance)
            yield f"{name} configuration bound {bound.bound:.9g} rounds {len(bound.rounds)}"
        for method in ("milp", "benders", "colgen"):
            result = solve(instance, method, work_limit=0.5, seed=2)
            yield f"{name} {method} {result.status} {result.objective!r} {digest(result.to_dict())}"


if __name__ == "__main__":
    for line in lines():
        print(line)  # noqa: T201
