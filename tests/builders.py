"""Small jobs, machines and instances for the tests: what a test does not say has a plain value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from oasis import Cluster, Deadline, Instance, Job, Server
from oasis.model.examples import example_text
from oasis.scheduling import PolicyJob
from oasis.simulator import Workload, elastic_from_dict
from oasis.simulator.elastic import FORMAT, VERSION


def nightly(*values: Any) -> list[Any]:
    """Values of a parameter that are only for the long searches."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


def seeds(day: int, nights: range) -> list[Any]:
    """So many seeds one by one, and blocks from each of `nights` to the next for the night."""
    blocks = (range(first, first + nights.step) for first in nights)
    return [*([seed] for seed in range(day)), *nightly(*blocks)]


GPU = ((0, 1),)  # the demand of a task that takes one unit of the first resource


def job(
    name: str = "a",
    arrival: int = 0,
    slots: int = 1,
    value: float = 1.0,
    latest: float = 99.0,
    workers: int = 1,
    *,
    gpus: float = 1.0,
    **changes: Any,
) -> Job:
    """A job that needs `workers` workers of `gpus` GPUs for `slots` slots, or fewer for longer.

    It is worth `value` up to delay `latest`, and has no parameter servers. `changes` are fields of
    `Job` that are otherwise.
    """
    fields: dict[str, Any] = {
        "epochs": slots,
        "chunks": workers,
        "minibatches": 1,
        "minibatch_time": 1.0,
        "gradient_mb": 0.0,
        "worker": {"gpu": gpus},
        "ps": {},
        "utility": Deadline(value, latest),
    }
    return Job(name, arrival, **(fields | changes))


def cluster(
    gpus: float = 4.0,
    servers: int = 1,
    *,
    worker: Mapping[str, float] | None = None,
    ps: Mapping[str, float] | None = None,
    slot_seconds: float = 1.0,
) -> Cluster:
    """Equal worker servers and one host of parameter servers.

    Their resources are those of `worker`, the capacity of a worker server; GPUs alone, unless it is
    given.
    """
    capacity = {"gpu": gpus} if worker is None else dict(worker)
    hosts = {"gpu": 1.0} if ps is None else ps
    resources = tuple(dict.fromkeys((*capacity, *hosts)))
    return Cluster(
        resources, (Server("w", capacity, servers),), (Server("p", hosts),), slot_seconds
    )


def instance(*jobs: Job, horizon: int = 10, on: Cluster | None = None) -> Instance:
    """These jobs on `on`, which is one server with four GPUs unless it is given."""
    return Instance(horizon, cluster() if on is None else on, jobs)


def policy_job(name: str = "a", work: float = 60.0, **changes: Any) -> PolicyJob:
    """A job as policies see it, whose worker takes one unit of the first resource."""
    fields: dict[str, Any] = {"arrival": 0.0, "worker": GPU} | changes
    return PolicyJob(name, fields.pop("arrival"), work, **fields)


def gang(name: str = "a", index: int = 0, arrival: float = 0.0) -> PolicyJob:
    """Two to four workers, of a GPU and two CPUs each, and a parameter server for every two."""
    return policy_job(
        name,
        arrival=arrival,
        worker=((0, 1), (1, 2)),
        ps=((1, 1),),
        min_workers=2,
        max_workers=4,
        ps_per_worker=0.5,
        index=index,
    )


def elastic_file(jobs: Iterable[Any], *machines: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Plain data of a file of elastic jobs on these machines, whose resources are those there."""
    resources = list(dict.fromkeys(name for machine in machines for name in machine["capacity"]))
    top = {"format": FORMAT, "version": VERSION, "resources": resources}
    return {**top, "machines": list(machines), "jobs": list(jobs), **more}


def elastic_data(jobs: int = 12) -> dict[str, Any]:
    """Plain data of the first `jobs` of the elastic jobs that are shipped."""
    data: dict[str, Any] = json.loads(example_text("elastic"))
    return data | {"jobs": data["jobs"][:jobs]}


def elastic(jobs: int = 12, **changes: Any) -> Workload:
    """The workload of `elastic_data`; `changes` are fields of the file."""
    return elastic_from_dict(elastic_data(jobs) | changes)


def exit_code(*words: object) -> int:
    """Run the command line in this process; the code that it ends with."""
    from experiments.cli.main import main  # what it loads, most tests do not need

    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def policies(*, of_baselines: bool = False) -> list[str]:
    """Names of all policies, or of those that need no instance; a new one is there by itself."""
    from baselines import ALL
    from experiments.evaluation.policies import POLICIES

    return list(ALL if of_baselines else POLICIES)
