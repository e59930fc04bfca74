"""Numbers of the pages on traces and simulators, and their proofs (page_numbers).

Claims about the public traces are computed from the traces, where these lie.
"""

from __future__ import annotations

import csv
from collections import Counter
from functools import cache

import oasis
from baselines import EASY, FIFO, LAS, SJF, SRSF, SRTF
from oasis.scheduling import Allocation, Policy, PolicyJob, Site
from oasis.scheduling.site import Machine
from oasis.simulator import PlainJob, replay, rigid_workload
from oasis.simulator.speed import Communication, Load
from oasis.traces.job_table import without
from tests.packaging.claims_use import congested
from tests.packaging.page_numbers import trace
from tests.philly_shape import philly_jobs

# --- traces -------------------------------------------------------------------------------------


def gpus_without(held: int) -> int:
    """GPUs of four machines of eight while running jobs hold some."""
    site = oasis.Cluster(("gpu",), (oasis.Server("w", {"gpu": 8}, 4),), (), 3600.0)
    return int(sum(s.count * s.capacity["gpu"] for s in without(site, held).worker_servers))


def share_of_one_gpu() -> str:
    """Percent of Philly's jobs."""
    with trace("philly_sia.csv").open(encoding="utf-8", newline="") as stream:
        gpus = [float(row["num_gpus"]) for row in csv.DictReader(stream)]
    return f"{100 * gpus.count(1.0) / len(gpus):.0f}"


def openb_gpus() -> str:
    """GPUs of the whole cluster."""
    with trace("openb_node_list_gpu_node.csv").open(encoding="utf-8", newline="") as stream:
        return f"{sum(int(row['gpu']) for row in csv.DictReader(stream)):,}"


# --- the simulator ------------------------------------------------------------------------------


def network_seconds() -> float:
    """Time on the network in a step, on two machines with links of 1 Gb/s and 100 MB."""
    machines = tuple(Machine(name, (4.0,), link_gbps=1.0) for name in "ab")
    job = PolicyJob("j", 0.0, 1.0, ((0, 1),), gradient_mb=100.0, step_time=0.4)
    held = Allocation(((0, 1),), ((1, 1),))
    return Communication().step_delay(job, held, Load(Site(("gpu",), machines)))


def las_finishes(threshold: float | None = None) -> int:
    """Number of jobs of the shipped example that LAS finishes."""
    policy = LAS() if threshold is None else LAS(thresholds=(threshold,))
    return len(oasis.simulate(congested(), policy).outcome.completions)


def virtual_cluster(name: str = "0e4a51") -> tuple[PlainJob, ...]:
    """The jobs of a cluster of Philly's; on the first, policies are compared with references."""
    return philly_jobs(trace("philly_sia.csv"), name)


# --- beside other simulators --------------------------------------------------------------------

SLICES = (("6c71a0", 0, 500), ("6c71a0", 3000, 500), ("0e4a51", 300, 600), ("6214e9", 5000, 600))


@cache
def slice_of(number: int) -> tuple[PlainJob, ...]:
    cluster, first, count = SLICES[number]
    jobs = [job for job in virtual_cluster(cluster) if job.gpus <= 8]
    return tuple(jobs[first : first + count])


@cache
def mean(policy: Policy, placement: str = "pooled") -> float:
    """Mean completion time on the first slice."""
    found = replay(rigid_workload(slice_of(0), 8, 8, placement), policy).mean_completion
    assert found is not None
    return found


def ours(policy: Policy, placement: str = "pooled") -> str:
    return f"{mean(policy, placement):,.3f}"


STRICT_FIFO, PASSING_FIFO, SHORTEST, BACKFILLING = FIFO(), FIFO(line="fit"), SJF(), EASY()
REMAINING, SERVICE = SRTF(line="fit"), SRSF(line="fit")
RUNNING_FIRST = LAS(order="running-first", line="fit")
BY_ARRIVAL, FIVE_HOURS = LAS(line="fit"), LAS(line="fit", thresholds=(5.0,))
# what the other simulators gave; they are no part of this project
LUCID_SRTF, TIRESIAS_LAS, LUCID_LAS, ACCASIM_EASY = (
    119_230.558,
    131_882.916,
    223_718.594,
    247_723.666,
)


def within(policy: Policy, other: float, percent: float) -> bool:
    return 100 * abs(other / mean(policy) - 1) <= percent


def counted() -> Counter[int]:
    """GPUs of the jobs of all slices."""
    return Counter(job.gpus for k in range(4) for job in slice_of(k))
