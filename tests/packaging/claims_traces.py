"""Numbers of the pages on traces and simulators, and their proofs (page_numbers).

Claims about the public traces are computed from the traces, where these lie.
"""

from __future__ import annotations

import csv
from collections import Counter
from functools import cache

import oasis
from baselines import EASY, FIFO, LAS, SJF, SRSF, SRTF, registry
from baselines.counts import LEAST, MOST
from oasis.model.job import GBIT_PER_MB
from oasis.scheduling import Allocation, Policy, PolicyJob, Site
from oasis.scheduling.site import FINE, Machine
from oasis.simulator import PlainJob, replay, rigid_workload
from oasis.simulator.speed import Communication, Load
from oasis.traces import OpenbOptions, PhillyOptions, readers, times
from oasis.workloads import PRESETS
from tests.packaging.claims_use import congested, has
from tests.packaging.page_numbers import Claim, fixed, spelled, trace
from tests.philly_shape import philly_jobs

TRACES, SIMULATOR = "docs/traces.md", "docs/simulator.md"
OTHERS = "docs/other-simulators.md"
PAGES: tuple[str, ...] = (TRACES, SIMULATOR, OTHERS)

# --- traces -------------------------------------------------------------------------------------


def share_of_one_gpu() -> tuple[str]:
    """Percent of Philly's jobs."""
    with trace("philly_sia.csv").open(encoding="utf-8", newline="") as stream:
        gpus = [float(row["num_gpus"]) for row in csv.DictReader(stream)]
    return (f"{100 * gpus.count(1.0) / len(gpus):.0f}",)


def openb_gpus() -> tuple[str]:
    """GPUs of the whole cluster."""
    with trace("openb_node_list_gpu_node.csv").open(encoding="utf-8", newline="") as stream:
        return (f"{sum(int(row['gpu']) for row in csv.DictReader(stream)):,}",)


IMPORTS = [
    Claim(TRACES, "`gradient_mb` @ /", lambda: (GBIT_PER_MB,)),
    Claim(
        TRACES,
        "@ MB is about ResNet-50",
        lambda: (f"{PhillyOptions().gradient_mb:g}",),
        lambda: abs(PRESETS["testbed"].gradient_mb[1] / PhillyOptions().gradient_mb - 1) < 0.05,
    ),
    Claim(
        TRACES,
        "By default, `--min-gpus` is @ (openb: @),",
        lambda: (PhillyOptions().min_gpus, OpenbOptions().min_gpus),
    ),
    Claim(TRACES, "@ % of the jobs of Philly have one GPU", share_of_one_gpu),
    Claim(TRACES, "(@ GPUs in openb)", openb_gpus),
    *(
        Claim(TRACES, sentence, lambda: (times.FIRST_YEAR, times.LAST_YEAR))
        for sentence in ("a time from @ to @ in seconds", "A time outside the years @ to @ is")
    ),
    Claim(
        TRACES,
        "median is below one second or above thirty days",
        holds=lambda: (times.SHORTEST_MEDIAN, times.LONGEST_MEDIAN) == (1.0, 30 * 86400.0),
    ),
    Claim(
        TRACES,
        "status @ to @ in `swf`",
        lambda: (min(readers.PARTS), max(readers.PARTS)),
        lambda: not {0, 1} & set(readers.PARTS),
    ),
]

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


ENGINE = [
    Claim(
        SIMULATOR,
        "with links of @ Gb/s and @ MB of gradients each step takes @ s longer",
        lambda: ("1", "100", fixed(network_seconds(), 1)),
    ),
    Claim(SIMULATOR, "the last @ for elastic jobs", lambda: (spelled(len(registry.CONTROLLERS)),)),
    Claim(SIMULATOR, "in the paper from @ to @.", lambda: (LEAST, MOST)),
    Claim(SIMULATOR, "`oasis compare` uses seed @;", lambda: (FIFO().parameters["seed"],)),
    Claim(
        SIMULATOR,
        "LAS finishes no job with its default of @ GPU-hour:",
        lambda: (f"{LAS().thresholds[0]:g}",),
        lambda: las_finishes() == 0,
    ),
    Claim(
        SIMULATOR,
        "@ workers exceed it in one slot, and the job falls behind all new ones.",
        lambda: ("four",),
        lambda: 4 * congested().cluster.slot_seconds / 3600 > LAS().thresholds[0],
    ),
    Claim(SIMULATOR, "multiples of @^-@.", lambda: ("2", 40), lambda: FINE == 1 << 40),
    Claim(
        SIMULATOR,
        "(@ jobs, @ GPUs as @ x @)",
        lambda: (f"{len(virtual_cluster()):,}", "64", "8", "8"),
    ),
    Claim(
        SIMULATOR,
        "FIFO, SJF, SRTF, SRSF and LAS end every job when",
        holds=lambda: has("tests/oracle/test_scheduler_references.py", '.TRACE, "0e4a51"'),
    ),
]

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


def beside(name: str, policy: Policy, placement: str = "pooled") -> Claim:
    """A row in which both sides have the same mean."""
    sentence = f"| {name} | @ | @ |"
    return Claim(OTHERS, sentence, lambda: (ours(policy, placement),) * 2)


def apart(name: str, policy: Policy, other: float) -> Claim:
    """A row in which they differ."""
    return Claim(OTHERS, f"| {name} | @ | @ |", lambda: (ours(policy), f"{other:,.3f}"))


def within(policy: Policy, other: float, percent: float) -> bool:
    return 100 * abs(other / mean(policy) - 1) <= percent


SIDES = [
    Claim(
        OTHERS,
        "jobs of at most @ GPUs in order",
        lambda: (max(counted()),),
    ),
    Claim(
        OTHERS,
        "The others are",
        holds=lambda: all(
            has(OTHERS, rf"{cluster} --[\w-]+ {first} --[\w-]+\s+{count}`")
            for cluster, first, count in SLICES[1:]
        ),
    ),
    Claim(OTHERS, "on @ GPUs as @ x @.", lambda: ("64", "8", "8")),
    *(
        Claim(OTHERS, sentence, lambda: (f"{sum(len(slice_of(k)) for k in range(4)):,}",))
        for sentence in ("@ jobs together", "each of the @ jobs ends")
    ),
    beside("FIFO", STRICT_FIFO),
    beside("FIFO, whole", STRICT_FIFO, "whole"),
    beside("FIFO, others may pass", PASSING_FIFO),
    beside("SJF", SHORTEST),
    beside("SJF, whole", SHORTEST, "whole"),
    beside("SRTF, others may pass", REMAINING),
    beside("SRSF, others may pass", SERVICE),
    apart("LAS, running first, one GPU-hour", RUNNING_FIRST, TIRESIAS_LAS),
    apart("LAS, by arrival, five GPU-hours", FIVE_HOURS, LUCID_LAS),
    apart("EASY", BACKFILLING, ACCASIM_EASY),
    Claim(OTHERS, "| | | @ | Lucid |", lambda: (f"{LUCID_SRTF:,.3f}",)),
    Claim(
        OTHERS,
        "in the mean (Lucid), within @ % | | shortest remaining service",
        holds=lambda percent: within(REMAINING, LUCID_SRTF, percent),
    ),
    Claim(
        OTHERS,
        "in the mean (Lucid), within @ % | | EASY",
        holds=lambda percent: within(FIVE_HOURS, LUCID_LAS, percent),
    ),
    Claim(
        OTHERS,
        "the first slice takes @ s instead of @",
        lambda: (f"{mean(BY_ARRIVAL):,.1f}", f"{mean(RUNNING_FIRST):,.1f}"),
    ),
    Claim(
        OTHERS,
        "which costs @ s in the mean of the first slice",
        lambda: (fixed(mean(BACKFILLING) - mean(PASSING_FIFO), 0),),
        lambda: f"{mean(PASSING_FIFO):.3f}" == f"{ACCASIM_EASY:.3f}",
    ),
]


def counted() -> Counter[int]:
    """GPUs of the jobs of all slices."""
    return Counter(job.gpus for k in range(4) for job in slice_of(k))


CLAIMS: list[Claim] = [*IMPORTS, *ENGINE, *SIDES]

FORMULA = "a formula; tests/unit/traces read rows by it"
THEIRS = "of the other simulator, as it is distributed"
GAVEL = "its public simulator, run once with seeds 1 to 10"
# page -> words of the page with a number that cannot be wrong -> why it cannot
ALLOWED: dict[str, dict[str, str]] = {
    TRACES: {
        "[Microsoft] , 2017": "a year",
        "[Alibaba] , 2023": "a year",
        "[Alibaba] , 2020": "a year",
        "SenseTime, 2021": "a year",
        "[AcmeTrace] , 2024": "a year",
        "MIT, 2021": "a year",
        "max(1, g)": FORMULA,
        "`chunks` N_i | round(`elasticity` G), at least 1;": FORMULA,
        "x = 2 `gradient_mb`": FORMULA,
        "(`minibatch_seconds` + x))), at least 1 |": FORMULA,
        "- x) / s, at least 0,": FORMULA,
        "max(1, `target_factor` D / s)": FORMULA,
        "since 1970": "a definition",
        "With 0, jobs have no parameter servers": "none",
        "`7.200,5` or `1,800,000`": "examples of cells",
        "`3,600` is refused": "an example of a cell",
        "is a job: `838`, `838#2` |": "an example of a name",
    },
    SIMULATOR: {
        "virtual cluster 0e4a51": "a name",
    },
    OTHERS: {
        "Four slices of": "SLICES; the sum of their jobs is claimed",
        "in the mean, within 0.07 %": "over the four slices, run once",
        "loses 40 seconds": THEIRS,
        "on ten workloads of its own form: 60 jobs of one GPU on eight GPUs, 360": GAVEL,
        "to 7,200 steps in a round of six minutes, a load of 1.2": GAVEL,
        "allocation_resets=0": THEIRS,
        "comes at time 0": THEIRS,
        "six workloads all 60 jobs": GAVEL,
        "on four, 59 do": GAVEL,
        "rounded to seven digits": "time_shares.DIGITS; in theirs by hand",
        "a new job waits 32 minutes": THEIRS,
        "equal on 120 of 120 lightly loaded jobs and 194 of 220": "their public code, run once",
        "five GPU-hours": "the threshold of the row",
    },
}
