"""Tiny instances of jobs in several forms on machines of several kinds, and their optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulp

from oasis import Form, Instance, Job, Speeds
from oasis.model.cluster import Server
from oasis.model.groups import GROUPS, TaskGroup
from tests.oracle.tiny import Pick, seeded, tiny_instance

KINDS = ("t4", "a100", "h100")


def of_kinds(seed: int, jobs: int = 3, horizon: int = 4) -> Instance:
    """At most this many jobs, most in two or three forms, on machines of two or three kinds.

    Hosts of parameter servers have labels, too; a machine may have none.
    """
    pick = seeded(seed)
    instance = tiny_instance(pick, jobs=jobs, horizon=horizon)
    cluster = instance.cluster
    workers = tuple(
        Server(f"w{k}", pick(cluster.worker_servers).capacity, labels={"gpu": kind})
        for k, kind in enumerate(KINDS[: pick([2, 3])])
    )
    bare = pick([(), (), (Server("bare", cluster.worker_servers[0].capacity),)])
    hosts = tuple(
        replace(server, labels=pick([{"zone": "a"}, {"zone": "b"}, {}]))
        for server in cluster.ps_servers
    )
    cluster = replace(cluster, worker_servers=(*workers, *bare), ps_servers=hosts)
    return replace(instance, cluster=cluster, jobs=tuple(_job(pick, j) for j in instance.jobs))


def _job(pick: Pick, job: Job) -> Job:
    least = pick([1, 1, *range(1, job.chunks + 1)])
    how = pick(["one form", "speeds", "forms", "forms"])
    requires = pick([{}, {"gpu": list(KINDS[:2])}, {"gpu": ["h100"]}])
    if how == "one form":
        return replace(job, min_workers=least, requires=requires)
    if how == "speeds":
        speeds = {kind: pick([0.5, 1.0, 2.0, 3.0]) for kind in KINDS[: pick([2, 3])]}
        return replace(job, min_workers=least, speeds=Speeds("gpu", speeds))
    ps = pick([{}, {}, {"zone": ["a"]}])
    forms = tuple(_form(pick, job) for _ in range(pick([2, 2, 3])))
    return replace(job, requires=requires, ps_requires=ps, forms=forms)


def _form(pick: Pick, job: Job) -> Form:
    chunks = pick([1, 2, 3])
    given: dict[str, Any] = {
        "chunks": chunks,
        "min_workers": pick([1, 1, chunks]),
        "minibatch_time": pick([0.3, 0.6, 1.0]),
        "requires": pick([None, {"gpu": [pick(KINDS)]}, {"gpu": list(KINDS[1:])}, {}]),
        "ps_requires": pick([None, None, {"zone": ["a", "b"]}]),
    }
    if pick([True, False]):  # all-reduce: no parameter servers
        given |= {"worker": {"gpu": pick([0.5, 1.0])}, "ps": {}, "gradient_mb": 0.0}
    return Form(**given)


# -- the definition, (1)-(13) over the forms of each job, at most one of which runs ----------------


def defined_optimum(instance: Instance) -> float:
    """The optimum by the definition: whoever reads it needs nothing but the paper."""
    problem = pulp.LpProblem("forms", pulp.LpMaximize)
    value: list[Any] = []
    tasks: dict[tuple[TaskGroup, int, int], list[tuple[Mapping[str, float], Any]]] = {}
    for i, job in enumerate(instance.jobs):
        runs: list[Any] = []
        for f, form in enumerate(job.in_forms):
            name = f"{i}_{f}"
            done = {
                t: problem.add_variable(f"u_{name}_{t}", 0, 1, pulp.LpInteger)
                for t in range(form.arrival, instance.horizon)
            }
            runs += done.values()
            value += [float(form.utility(t - form.arrival)) * var for t, var in done.items()]
            _form_rows(problem, instance, form, name, done, tasks)
        problem.addConstraint(pulp.lpSum(runs) <= 1)
    for (group, server, _), here in tasks.items():
        capacity = group.capacity(instance.cluster)[server].tolist()
        for resource, limit in zip(instance.cluster.resources, capacity, strict=True):
            used = pulp.lpSum(amounts.get(resource, 0.0) * var for amounts, var in here)
            problem.addConstraint(used <= limit)
    problem.setObjective(pulp.lpSum(value))
    problem.solve(pulp.HiGHS(msg=False, gapRel=0.0))
    return float(pulp.value(problem.objective) or 0.0)


def _form_rows(
    problem: pulp.LpProblem,
    instance: Instance,
    form: Job,
    name: str,
    done: Mapping[int, Any],
    tasks: dict[tuple[TaskGroup, int, int], list[tuple[Mapping[str, float], Any]]],
) -> None:
    work, counts = [], {}
    for t in done:
        for group in GROUPS:
            servers = [one for one in group.servers(instance.cluster) for _ in one.ids]
            here = [
                problem.add_variable(
                    f"{group}_{name}_{t}_{s}", 0, _most(form, server, group), pulp.LpInteger
                )
                for s, server in enumerate(servers)
            ]
            for s, variable in enumerate(here):
                tasks.setdefault((group, s, t), []).append((group.of(form), variable))
            counts[group] = pulp.lpSum(here)
        workers, ps = counts[GROUPS[0]], counts[GROUPS[1]]
        is_on = problem.add_variable(f"on_{name}_{t}", 0, 1, pulp.LpInteger)
        problem.addConstraint(workers <= form.chunks * is_on)
        problem.addConstraint(workers >= form.min_workers * is_on)
        problem.addConstraint(is_on <= pulp.lpSum(v for s, v in done.items() if s >= t))
        if form.needs_ps:
            problem.addConstraint(workers * form.bandwidth <= ps * form.ps_bandwidth + 1e-9)
        problem.addConstraint(ps <= workers)
        work.append(workers)
    needed = form.epochs * form.chunks * form.minibatches
    needed *= form.minibatch_slots(instance.slot_seconds)
    problem.addConstraint(pulp.lpSum(work) >= (needed - 1e-9) * pulp.lpSum(done.values()))


def _most(form: Job, server: Server, group: TaskGroup) -> int:
    required: Mapping[str, Sequence[str]] = group.required(form)
    return form.chunks if all(server.labels.get(k) in v for k, v in required.items()) else 0
