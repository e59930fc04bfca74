"""Small jobs, machines and instances for the tests: what a test does not say has a plain value."""

from __future__ import annotations

import copy
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from oasis import Cluster, Deadline, Instance, Job, Server
from oasis.__main__ import main
from oasis.scheduling import PolicyJob
from oasis.simulator import Workload, elastic_from_dict


def nightly(*values: Any) -> list[Any]:
    """Values of a parameter that are only for the long searches."""
    return [pytest.param(value, marks=pytest.mark.nightly) for value in values]


def seeds(day: int, nights: range) -> list[Any]:
    """So many seeds one by one, and blocks from each of `nights` to the next for the night."""
    blocks = (range(first, first + nights.step) for first in nights)
    return [*([seed] for seed in range(day)), *nightly(*blocks)]


ELASTIC = Path(__file__).parents[1] / "docs/examples/elastic.json"
GPU = ((0, 1),)  # the demand of a task that takes one unit of the first resource
GONE = object()


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
    top = {"format": "oasis-elastic-workload", "version": 1, "resources": resources}
    return {**top, "machines": list(machines), "jobs": list(jobs), **more}


def elastic_data(jobs: int = 12) -> dict[str, Any]:
    """Plain data of the first `jobs` of the elastic jobs that are shipped."""
    data: dict[str, Any] = json.loads(ELASTIC.read_text(encoding="utf-8"))
    return data | {"jobs": data["jobs"][:jobs]}


def elastic(jobs: int = 12, **changes: Any) -> Workload:
    """The workload of `elastic_data`; `changes` are fields of the file."""
    return elastic_from_dict(elastic_data(jobs) | changes)


def exit_code(*words: object) -> int:
    """Run the command line in this process; the code that it ends with."""
    given = patch.object(sys, "argv", ["oasis", *map(str, words)])
    with given, patch.object(sys, "path", [*sys.path]), pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def rows(test: str, name: str) -> dict[str, Any]:
    """Rows by what they show, of the file `name` beside the file of a test."""
    return tomllib.loads(Path(test).with_name(name).read_text(encoding="utf-8"))


def changed(data: Any, field: str, value: Any) -> Any:
    """A copy of plain data in which one field, as errors name it, is `value` or gone."""
    made = inner = copy.deepcopy(data)
    *outer, last = (int(key) if key.isdigit() else key for key in re.findall(r"\w+", field))
    for key in outer:
        inner = inner[key]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return made


def malformed(test: str, name: str) -> list[tuple[str, Any, str, bool]]:
    """Lines of ``field | value in JSON, or GONE | the error``, and whether a schema can say it."""
    found = []
    for line in Path(test).with_name(name).read_text(encoding="utf-8").splitlines():
        field, value, message, *more = line.split(" | ")
        found.append((field, GONE if value == "GONE" else json.loads(value), message, not more))
    return found


def policies(*, of_baselines: bool = False) -> list[str]:
    """Names of all policies, or of those that need no instance; a new one is there by itself."""
    from baselines import ALL  # what it loads, most tests do not need

    return [*ALL] if of_baselines else ["oasis", "recourse", *ALL]
