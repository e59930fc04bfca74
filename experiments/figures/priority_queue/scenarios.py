"""One scenario for each of the autoscaler's five procedures, on two machines of four GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oasis.simulator import ElasticWorkload, elastic_from_dict

MACHINES, GPUS = 2, 4


def _job(
    name: str, arrival: float, work: float, workers: tuple[int, int, int], worth: float, gb: int = 1
) -> dict[str, Any]:
    least, asked, most = workers
    return {
        "id": name,
        "arrival": arrival,
        "work": work,
        "workers": {"min": least, "initial": asked, "max": most},
        "worker": {"gpu": 1, "memory_gb": gb},
        "utility": {"kind": "constant", "value": worth},
    }


# By procedure: the jobs, each with its arrival, work of one worker, fewest, asked and most workers,
# utility and memory of a worker.
SCENARIOS: Mapping[str, tuple[dict[str, Any], ...]] = {
    # The queue is served by utility; two of the same utility, the one that asks for more first.
    "weighting": (
        _job("running", 0.0, 800.0, (8, 8, 8), 9.0),
        _job("worth 1", 10.0, 400.0, (8, 8, 8), 1.0),
        _job("worth 3", 20.0, 400.0, (8, 8, 8), 3.0),
        _job("worth 3, more memory", 30.0, 400.0, (8, 8, 8), 3.0, 2),
    ),
    # All pods on one machine where one has room for all of them, else spread.
    "gang": (
        _job("one of 3", 0.0, 300.0, (3, 3, 3), 1.0),
        _job("another of 3", 0.0, 300.0, (3, 3, 3), 1.0),
        _job("two over both", 0.0, 200.0, (2, 2, 2), 1.0),
    ),
    # A job worth more takes the workers above the fewest from those that run, the least first.
    "scale-down": (
        _job("worth 2", 0.0, 800.0, (1, 4, 4), 2.0),
        _job("worth 1", 0.0, 800.0, (1, 4, 4), 1.0),
        _job("worth 5", 60.0, 180.0, (3, 3, 3), 5.0),
    ),
    # Running jobs take what is left, machine by machine.
    "scale-up": (
        _job("grows", 0.0, 900.0, (1, 1, 6), 2.0),
        _job("grows too", 0.0, 900.0, (1, 1, 6), 1.0),
        _job("comes later", 60.0, 200.0, (2, 2, 2), 0.5),
    ),
    # Best job first; otherwise the first that fits; then growth. As printed, whoever fits goes at
    # once with a job that was launched, and nobody grows then.
    "main step": (
        _job("running", 0.0, 600.0, (2, 4, 4), 2.0),
        _job("best", 50.0, 400.0, (4, 4, 4), 5.0),
        _job("small", 50.0, 100.0, (1, 1, 4), 1.0),
        _job("large", 50.0, 400.0, (4, 4, 4), 1.5),
    ),
}


def scenario(name: str) -> ElasticWorkload:
    """The jobs and machines of a scenario.

    Examples
    --------
    >>> [job.id for job in scenario("scale-down").workload.jobs]
    ['worth 2', 'worth 1', 'worth 5']
    """
    capacity = {"gpu": GPUS, "memory_gb": 16}
    return elastic_from_dict(
        {
            "format": "oasis-elastic-workload",
            "version": 1,
            "resources": ["gpu", "memory_gb"],
            "machines": [{"id": "node", "count": MACHINES, "capacity": capacity}],
            "jobs": list(SCENARIOS[name]),
        }
    )
