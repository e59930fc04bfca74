"""Both public traces with the default options: ``python -m tests.benchmarks.traces FILE.csv``.

The traces lie in ``OASIS_DATA``. The file is the table of the page (docs/traces); the tests make it
again wherever the traces lie.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import oasis
from experiments import competitive_ratio
from oasis.traces import OpenbOptions, PhillyOptions, read_instance
from tests.benchmarks.table import main

DATA = Path(os.environ.get("OASIS_DATA", Path(__file__).parents[2] / "../shared/data"))
FILES = ("philly_sia.csv", "openb_pod_list_default.csv", "openb_node_list_gpu_node.csv")
COLUMNS = ("with the default options", "Philly", "openb")
SEEDS = (1, 2, 3)
Options = PhillyOptions | OpenbOptions
Rows = list[tuple[str, str]]
SECONDS = 300.0  # more than any of these proofs takes on a slow machine


def philly(data: Path, seed: int = 0) -> tuple[oasis.Instance, Options]:
    """Philly's instance, and the options that make it."""
    options = PhillyOptions(seed=seed)
    return read_instance(data / FILES[0], options), options


def openb(data: Path, seed: int = 0) -> tuple[oasis.Instance, Options]:
    """The instance of openb, and the options that make it."""
    options = OpenbOptions(seed=seed)
    return read_instance(data / FILES[1], options, nodes=data / FILES[2]), options


TRACES = (philly, openb)


def described(instance: oasis.Instance, options: Options) -> Iterator[tuple[str, str]]:
    """Describe the instance, and the results of OASiS and of the offline solve."""
    cluster, slot = instance.cluster, instance.slot_seconds
    hours = f"{options.min_duration / 3600:g} to {options.max_duration / 3600:g} h"
    yield "jobs", str(len(instance.jobs))
    yield "GPUs of a job", f"{options.min_gpus} to {options.max_gpus}"
    yield "duration", hours
    yield "arrivals in the busiest", f"{options.arrival_slots * options.slot_seconds / 3600:g} h"
    yield "from", str(instance.metadata["window_start"])
    yield "slots", f"{instance.horizon} of {slot:g} s"
    yield (
        "machines for workers, for parameter servers",
        (f"{len(cluster.worker_ids)}, {len(cluster.ps_ids)}"),
    )
    gpus = sum(server.capacity["gpu"] * server.count for server in cluster.worker_servers)
    yield "GPUs of the former", f"{gpus:g}"
    yield "`elasticity`", f"{options.elasticity:g}"
    wanted = sum(job.work(slot) * job.worker["gpu"] for job in instance.jobs)
    yield "GPU-slots wanted, there", f"{wanted:.0f}, {gpus * instance.horizon:.0f}"
    run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    late = sum(
        decision.completion is not None
        and decision.completion > job.arrival + job.shortest_duration(slot) - 1
        for decision, job in zip(run.decisions, instance.jobs_by_arrival(), strict=True)
    )
    yield "OASiS rejects, finishes later than alone", f"{len(instance.jobs) - run.admitted}, {late}"


def ratio(instance: oasis.Instance) -> tuple[str, str, str]:
    """Utility of OASiS, the optimum, and the ratio of the two."""
    found = competitive_ratio(instance, time_limit=SECONDS)
    if not found.proven:
        raise RuntimeError(f"no proof in {SECONDS:g} s")
    return (f"{found.online_utility:.1f}", f"{found.offline_objective:.1f}", f"{found.ratio:.3f}")


def column(read: Callable[..., tuple[oasis.Instance, Options]], data: Path) -> Rows:
    """Title and content of each row of the table of a trace, without the other seeds."""
    instance, options = read(data)
    found = [*described(instance, options)]
    found += zip(("OASiS", "optimum", "competitive ratio, proven"), ratio(instance), strict=True)
    return found


def seeds(read: Callable[..., tuple[oasis.Instance, Options]], data: Path) -> Rows:
    """The row of the other seeds."""
    ratios = [ratio(read(data, seed)[0])[2] for seed in SEEDS]
    return [(f"ratio with `seed` {', '.join(map(str, SEEDS))}", ", ".join(ratios))]


def rows() -> Iterator[tuple[str, ...]]:
    both = [[*column(read, DATA), *seeds(read, DATA)] for read in TRACES]
    return ((name, one, other) for (name, one), (_, other) in zip(*both, strict=True))


if __name__ == "__main__":
    main(COLUMNS, rows, __doc__)
