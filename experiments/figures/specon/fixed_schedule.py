"""Fig. 5 of the SpeCon paper: 20 VAE jobs on a fixed schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes

from baselines import FIFO, SpeCon
from experiments.figures.direct import Case, DirectFigure
from experiments.figures.rows import Row, amount, fraction, groups, interval
from experiments.figures.specon.models import fixed_schedule
from experiments.figures.specon.published import FIG5
from experiments.plotting.canvas import LINES, axes, ink, legend_below
from oasis.scheduling import Policy
from oasis.simulator import replay

DEFAULT, SPECON, CLUSTER = "default", "specon", "specon (cluster)"
FLAT, CLUSTER_FLAT = "specon, flat tail", "specon (cluster), flat tail"
# The policy and the bend of the evaluation function. Both schedulers begin with the same placement
# in turn; the default one then moves nothing, whatever the evaluation function is.
CHOICES: Mapping[str, tuple[Callable[[], Policy], float]] = {
    DEFAULT: (lambda: FIFO(placement="round-robin"), 1.0),
    SPECON: (SpeCon, 1.0),
    CLUSTER: (lambda: SpeCon(counted="cluster"), 1.0),
    FLAT: (SpeCon, 2.0),
    CLUSTER_FLAT: (lambda: SpeCon(counted="cluster"), 2.0),
}
JOBS = range(1, 21)


def cases(seeds: int) -> list[Case]:
    """Each seed under each policy."""
    return [{"seed": seed, "policy": policy} for seed in range(seeds) for policy in CHOICES]


def run(case: Case) -> Row:
    """One run: mean completion time and makespan, and the completion time of each job."""
    policy, bend = CHOICES[case["policy"]]
    made = fixed_schedule(case["seed"], bend=bend)
    outcome = replay(made.workload, policy(), **made.options)
    ends = [job.end for job in outcome.jobs if job.end is not None]
    times = [end - job.arrival for end, job in zip(ends, outcome.jobs, strict=True)]
    return {
        **case,
        "mean": math.fsum(times) / len(times),
        "makespan": max(ends),
        "moves": sum(job.migrations for job in outcome.jobs),
        **{f"job{k}": time for k, time in zip(JOBS, times, strict=True)},
    }


def table(runs: Sequence[Row]) -> list[Row]:
    """A row for each policy: means over the seeds, beside what is published."""
    own = {str(policy): part for (policy,), part in groups(runs, "policy").items()}
    rows: list[Row] = []
    for policy, part in own.items():
        published = FIG5["default" if policy == DEFAULT else "specon"]
        row: Row = {"policy": policy, "seeds": len(part)}
        for name in ("mean", "makespan"):
            row |= amount([each[name] for each in part], name)
            row[f"{name}_published"] = published[name]
        gains = [
            [1.0 - each[f"job{k}"] / base[f"job{k}"] for k in JOBS]
            for each, base in zip(part, own[DEFAULT], strict=True)
        ]
        row |= fraction([sum(gain > 0 for gain in some) / len(some) for some in gains], "reduced")
        row["reduced_published"] = published["reduced"]
        row |= interval([max(some) for some in gains], "best")
        row["best_published"] = published["best"]
        row |= amount([float(each["moves"]) for each in part], "moves")
        for k in JOBS:
            row[f"job{k}"] = math.fsum(each[f"job{k}"] for each in part) / len(part)
        rows.append(row)
    return rows


def draw(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Completion time of each job, mean over the seeds; the published means are dotted."""
    ax = axes(ax)
    for k, row in enumerate(row for row in rows if row["policy"] in (DEFAULT, SPECON, CLUSTER)):
        label = (
            f"{row['policy']}: mean {row['mean']:.0f} s, published {row['mean_published']:.0f} s"
        )
        times = [row[f"job{job}"] for job in JOBS]
        ax.plot(JOBS, times, linestyle=LINES[k], marker="o", color=ink(), label=label)
    for level in sorted({row["mean_published"] for row in rows}):
        ax.axhline(level, color="0.6", linewidth=0.8, linestyle=":")
    ax.set_xticks(list(JOBS))
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("job")
    ax.set_ylabel("completion time (s)")
    ax.set_title(TITLE)
    legend_below(ax, 1)
    return ax


TITLE = "SpeCon, Fig. 5: completion times on a fixed schedule"
SHOWN = {
    "policy": "policy",
    "mean": "mean (s)",
    "mean_published": "published",
    "makespan": "makespan (s)",
    "makespan_published": "published ",
    "reduced": "jobs that gain",
    "reduced_published": "published  ",
    "best": "largest gain",
    "best_published": "published   ",
    "moves": "moves",
}
FIGURES = (DirectFigure("specon-5", TITLE, cases, run, table, SHOWN, (draw,)),)
