"""The tables of all policies on the same elastic jobs, at three loads, beside a bound."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from baselines.registry import CONTROLLERS
from experiments.evaluation.comparison import SLOT_SECONDS, measured
from experiments.evaluation.elastic_jobs import elastic_figures, elastic_policy
from experiments.evaluation.policies import RIVALS
from experiments.figures.dragon import BATCH, EXPOSED, MODELS, RESTART, speedup
from experiments.figures.figure import (
    Case,
    DirectFigure,
    Row,
    crossed,
    elastic,
    groups,
    headings,
    mark,
    means,
)
from experiments.plotting.canvas import SMALL, fill, label, name_rows
from oasis.model.errors import InputError, located_at
from oasis.model.utility import Deadline
from oasis.simulator import Outcome, PlainJob, Workload, replay
from oasis.traces.plain import read_plain
from offline.elastic_bound import ElasticBound, elastic_bound, mean_completion_bound

MACHINES, GPUS, LINK_GBPS = 8, 8, 10.0
JOBS = 40
ELASTICITY = 2  # most workers of a job, as a multiple of those that it asks for
LEAST_GPUS, MOST_GPUS = 2, 8  # distributed jobs
SHORTEST, LONGEST = 1800.0, 14400.0  # seconds that a job runs with what it asks for
CRITICAL, INSENSITIVE = 0.35, 0.10  # shares of the classes of section V
LOOK = 30.0  # seconds between two values of the evaluation function


def of_trace(path: str | os.PathLike[str], window: int, jobs: int = JOBS) -> list[PlainJob]:
    """Return `jobs` consecutive distributed jobs of a trace, those of window number `window`."""
    # Jobs with other counts of GPUs or other durations than those of this module are left out.
    with located_at("trace"), located_at(source=path):
        trace = read_plain(path)
    usable = [
        job
        for job in sorted(trace.jobs, key=lambda job: job.submitted)
        if LEAST_GPUS <= job.gpus <= MOST_GPUS and SHORTEST <= job.duration <= LONGEST
    ]
    if (window + 1) * jobs > len(usable):
        raise InputError(
            "trace",
            f"expected {(window + 1) * jobs} jobs of {LEAST_GPUS} to {MOST_GPUS} GPUs that "
            f"ran {SHORTEST:g} to {LONGEST:g} s, got {len(usable)}",
        )
    return usable[window * jobs : (window + 1) * jobs]


def drawn(seed: int, jobs: int = JOBS) -> list[PlainJob]:
    """Draw Poisson arrivals of jobs of 2, 4 or 8 GPUs, with log-uniform durations."""
    # The first number keeps this stream apart from that of models and utilities.
    rng = np.random.default_rng([16, seed])
    submitted = np.cumsum(rng.exponential(1.0, jobs))
    durations = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST), jobs))
    gpus = rng.choice((2, 4, 8), jobs, p=(0.5, 0.3, 0.2))
    names = [f"j{k}" for k in range(jobs)]
    return list(map(PlainJob, names, submitted.tolist(), durations.tolist(), gpus.tolist()))


SIGMOID, DEADLINE = "sigmoid", "deadline"  # what jobs are worth by the time of their completion


def at_load(recorded: Sequence[PlainJob], load: float, seed: int, worth: str = SIGMOID) -> Workload:
    """Make elastic jobs of `recorded`, with gaps that offer `load`; `worth`: kind of utility."""
    # The load is the GPU time asked for over the GPU time between the first and the last arrival.
    rng = np.random.default_rng([17, seed])
    first, last = recorded[0].submitted, recorded[-1].submitted
    gpu_seconds = sum(job.duration * job.gpus for job in recorded)
    stretch = gpu_seconds / (MACHINES * GPUS * load) / (last - first)
    jobs = [
        _job(rng, f"j{k}", (job.submitted - first) * stretch, job, worth)
        for k, job in enumerate(recorded)
    ]
    # On a link that is faster by this factor, a step takes the part of the time that is felt.
    link = {"link_gbps": LINK_GBPS / EXPOSED}
    machine = {"id": "node", "count": MACHINES, "capacity": {"gpu": GPUS}} | link
    # The middle of the range that the DRAGON paper prints for a restart.
    return elastic(jobs, machine, sum(RESTART) / 2, observation={"interval": LOOK})


def _job(
    rng: np.random.Generator, name: str, arrival: float, job: PlainJob, worth: str
) -> dict[str, Any]:
    model = MODELS[str(rng.choice(sorted(MODELS)))]
    most = ELASTICITY * job.gpus
    speeds = speedup(model, most)
    pace = float(rng.uniform(2.0, 6.0))
    return {
        "id": f"{name}-{model.name}",
        "arrival": arrival,
        "work": job.duration * speeds[job.gpus - 1],
        "workers": {"min": 1, "initial": job.gpus, "max": most},
        "parameter_servers": 1,
        "worker": {"gpu": 1},
        "gradient_mb": model.gradient_mb,
        "step_seconds": BATCH / model.throughput[0],
        "speedup": speeds,
        "curve": [[share, float(np.exp(-pace * share))] for share in (k / 16 for k in range(17))],
        "utility": _utility(rng, job.duration, worth),
    }


def _utility(rng: np.random.Generator, duration: float, worth: str) -> dict[str, Any]:
    """Draw a utility of kind `worth`: value 1 to 100, target 1 to 3 times the duration."""
    # The time over which it falls, from 73 % to 27 % of its value, is a tenth of its target for
    # critical jobs and half of it for sensitive ones; insensitive ones are worth half whenever they
    # end. With deadlines, critical and sensitive jobs are worth all of that up to the target and
    # then nothing, and insensitive ones have none.
    target = duration * float(rng.uniform(1.0, 3.0))
    kind = float(rng.random())
    fall = 0.05 if kind < CRITICAL else 0.25
    # 1 / (1 + 1/e) is 73 %: the exponent goes from -1 to 1 over twice this part of the target.
    decay = 0.0 if kind >= 1.0 - INSENSITIVE else 1.0 / (fall * target)
    value = float(rng.uniform(1.0, 100.0))
    if worth == SIGMOID:
        return {"kind": "sigmoid", "priority": value, "decay": decay, "target": target}
    if not decay:
        return {"kind": "constant", "value": value / 2}
    return {"kind": "deadline", "value": value, "deadline": target}


LOADS = (0.5, 1.0, 2.0)
POLICIES = (*RIVALS, *CONTROLLERS)
# ElasticFlow counts what changes cost into its deadlines: here twice a restart, and some more.
OPTIONS = {"elasticflow": {"margin_seconds": 120.0}}
# What is averaged over the seeds: times in seconds, restarts of a job.
MEASURED = ("of_bound", "utility", "mean", "p95", "waiting", "restarts", "use")

SHARES = ("of_bound", "use", "met")


def cases(seeds: int, trace: str | None = None, worth: str = SIGMOID) -> list[Case]:
    """Return a case for each load, seed and policy; a seed is a window of the trace, if given."""
    if trace is not None:
        of_trace(trace, seeds - 1)  # said before any run, and before anything is written
    fixed: dict[str, list[Any]] = {"trace": [trace], "worth": [worth]}
    return crossed(load=LOADS, seed=range(seeds), policy=POLICIES, **fixed)


@cache
def bounded_workload(
    trace: str | None, load: float, seed: int, worth: str = SIGMOID
) -> tuple[Workload, ElasticBound, float]:
    """Return jobs at a load, a bound on their utility, and one on their mean completion time."""
    recorded = drawn(seed) if trace is None else of_trace(trace, seed)
    workload = at_load(recorded, load, seed, worth)
    return workload, elastic_bound(workload, SLOT_SECONDS), mean_completion_bound(workload)


def run(case: Case) -> Row:
    """Simulate one case; return the figures of its jobs beside the bounds."""
    trace = case["trace"]
    workload, bound, least = bounded_workload(trace, case["load"], case["seed"], case["worth"])
    policy = elastic_policy(case["policy"], OPTIONS.get(case["policy"], {}), workload)
    outcome = replay(workload, policy)
    figures = measured(outcome, "finished", "mean_waiting", "use")
    figures |= elastic_figures(workload, outcome, bound)
    jobs = len(workload.jobs)
    met = {"met": deadlines_met(workload, outcome)} if case["worth"] == DEADLINE else {}
    return {
        **case,
        "trace": "drawn" if trace is None else Path(trace).name,
        "bound": bound.value,
        "of_bound": figures["of_bound"],
        "utility": figures["total_utility"],
        "finished": figures["finished"],
        "unfinished": outcome.unfinished,
        "mean": outcome.mean_completion,
        "mean_bound": least,
        "p95": outcome.completion_quantile(0.95),
        "waiting": round(figures["mean_waiting"], 6),  # what is left of rounding is nothing
        "restarts": figures["restarts"] / jobs,
        "use": figures["use"]["gpu"],
        **met,
    }


def deadlines_met(workload: Workload, outcome: Outcome) -> float:
    """Fraction of the jobs with deadlines that ended by their deadline."""
    due = {
        job.id: job.arrival + job.utility.deadline
        for job in workload.jobs
        if isinstance(job.utility, Deadline)
    }
    ends = {job.job_id: job.end for job in outcome.jobs}
    return sum((ends[name] or math.inf) <= time for name, time in due.items()) / len(due)


def table(runs: Sequence[Row]) -> list[Row]:
    """Return a row for each load and policy: means over the seeds, with intervals."""
    rows: list[Row] = []
    for (load, policy), part in groups(runs, "load", "policy").items():
        row: Row = {"load": load, "policy": policy, "seeds": len(part)}
        # Bounds are facts about the jobs, so they have a mean and no interval.
        for name in ("bound", "mean_bound"):
            row[name] = sum(run[name] for run in part) / len(part)
        for name in (*MEASURED, *(["met"] if "met" in part[0] else [])):
            row |= means(part, name, scale="fraction" if name in SHARES else "amount")
        row["unfinished"] = sum(run["unfinished"] for run in part) / len(part)
        rows.append(row)
    return rows


def draw(name: str, across: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw column `name` as a mark for each policy and load, with intervals; `across` labels x."""
    # Beside the mean completion time of the jobs that finished is the number of those that did not,
    # in brackets.
    for k, ((load,), part) in enumerate(groups(rows, "load").items()):
        places = [POLICIES.index(row["policy"]) + 0.2 * (k - 1) for row in part]
        text = f"load {load:g}"
        mark(ax, places, part, name, k, sideways=True, markerfacecolor=fill(k), label=text)
        for row, place in zip(part, places, strict=True):
            if name in OF_FINISHED and row["unfinished"] and row[name] is not None:
                text = f" ({row['unfinished']:.2g})"
                ax.annotate(text, (row.get(f"{name}_high") or row[name], place), **BESIDE)
    name_rows(ax, POLICIES)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    label(ax, across, "", TITLES[name], 3)


OF_FINISHED = ("mean", "p95")
BESIDE: dict[str, Any] = {"va": "center", "fontsize": SMALL}
TITLES = {
    "of_bound": "All policies: utility as part of the bound",
    "mean": "Mean completion time (and jobs that did not finish)",
    "met": "Jobs with deadlines that meet them",
}
SHOWN = headings(
    "load | policy | of_bound | utility | unfinished | mean = mean of the finished (s) | "
    "mean_bound = lower bound of the mean (s) | p95 = p95 of the finished (s) | "
    "waiting = waiting (s) | restarts = restarts of a job | use = GPUs in use"
)
OF_BOUND = partial(draw, "of_bound", "utility / bound")
MEAN = partial(draw, "mean", "mean completion of those that finished (s)")
FIGURES: tuple[DirectFigure, ...] = (
    DirectFigure(
        *("controllers", "All policies: the same elastic jobs at three loads", table, SHOWN),
        *((OF_BOUND, MEAN), cases, run),
        size=(6.4, 6.2),
        takes_trace=True,
    ),
    DirectFigure(
        *("deadlines", "All policies: elastic jobs with deadlines at three loads", table),
        SHOWN | {"met": "deadlines met"},
        (OF_BOUND, partial(draw, "met", "of deadlines")),
        *(partial(cases, worth=DEADLINE), run),
        size=(6.4, 6.2),
        seeds=5,
        takes_trace=True,
    ),
)
