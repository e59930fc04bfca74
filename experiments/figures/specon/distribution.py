"""Figs. 8 to 11 of the SpeCon paper: where the 30 jobs of Fig. 7 run, and what is used there.

One draw, the first, as the paper shows one run. A worker's use of its cores is that of the jobs on
it, which share all of them: in the paper it ends at some 80 %, as Kubernetes reserves the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from matplotlib.axes import Axes

from baselines.specon import SpeCon
from experiments.figures.figure import Case, DirectFigure, Row, headings, label
from experiments.figures.specon.draws import as_published
from experiments.figures.specon.models import SCHEDULES
from experiments.figures.specon.schedules import CHOICES, DEFAULT, SPECON, policy_of, shape_of
from experiments.plotting.canvas import fill, ink
from oasis.simulator import replay
from oasis.simulator.state import JobProgress

SHOWN_POLICIES = (DEFAULT, SPECON)
WORKERS = SCHEDULES["7"].workers
MOVES = {"migrated": "M", "rebalanced": "R"}


def cases(_seeds: int) -> list[Case]:
    """Both schedulers on the first draw."""
    return [{"policy": policy} for policy in SHOWN_POLICIES]


def run(case: Case) -> Row:
    """One run, with every stay of a job on a worker as text: job, worker, begin, end, mark."""
    choice = CHOICES[case["policy"]]
    made = as_published("7", 0).workload(WORKERS, 0, **shape_of(choice))
    policy, settled = policy_of(choice), list[JobProgress]()
    replay(made, policy, on_settled=settled.append)
    log = policy.log if isinstance(policy, SpeCon) else []
    marks = {(move.job, move.time): MOVES.get(move.kind, "") for move in log}
    stays = [
        f"{progress.job.id} {held.workers[0][0] + 1} {begin!r} {end!r} "
        f"{marks.get((progress.job.id, begin), '')}".rstrip()
        for progress in sorted(settled, key=lambda progress: progress.job.index)
        for (begin, held), (end, _) in pairwise(progress.history)
        if held.workers
    ]
    return {**case, "stays": ";".join(stays)}


def table(runs: Sequence[Row]) -> list[Row]:
    """A row for each stay of a job on a worker."""
    rows: list[Row] = []
    for each in runs:
        for stay in each["stays"].split(";"):
            job, worker, begin, end, *mark = stay.split(" ")
            rows.append(
                {
                    "policy": each["policy"],
                    "worker": int(worker),
                    "job": job,
                    "begin": float(begin),
                    "end": float(end),
                    "moved": mark[0] if mark else None,
                }
            )
    return rows


def draw_jobs(policy: str, number: int, rows: Sequence[Row], ax: Axes) -> None:
    """A bar for each stay, those of a worker together; M and R are moves."""
    part = sorted(
        (row for row in rows if row["policy"] == policy),
        key=lambda row: (row["worker"], row["begin"], row["job"]),
    )
    for place, row in enumerate(part):
        shade = fill(row["worker"] % 2)
        ax.barh(place, row["end"] - row["begin"], left=row["begin"], color=shade, height=0.8)
        text = row["job"].removeprefix("job") + (f"-{row['moved']}" if row["moved"] else "")
        ax.text(row["end"], place, f" {text}", va="center", fontsize=5)
    ends = [sum(row["worker"] <= worker for row in part) for worker in range(WORKERS + 1)]
    for end in ends[1:-1]:
        ax.axhline(end - 0.5, color="0.5", linewidth=0.6)
    middles = [(begin + end - 1) / 2 for begin, end in pairwise(ends)]
    ax.set_yticks(middles, [str(worker) for worker in range(1, WORKERS + 1)])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(part) - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    label(ax, "time (s)", "worker, and its jobs", f"SpeCon, Fig. {number}: {policy}")


def draw_use(policy: str, number: int, rows: Sequence[Row], ax: Axes) -> None:
    """Draw the number of jobs that share the cores of each worker."""
    part = [row for row in rows if row["policy"] == policy]
    end = max(row["end"] for row in rows)
    for worker in range(1, WORKERS + 1):
        own = [row for row in part if row["worker"] == worker]
        changes = sorted({0.0, end, *(time for row in own for time in (row["begin"], row["end"]))})
        counts = [sum(row["begin"] <= time < row["end"] for row in own) for time in changes]
        base = 12.0 * (WORKERS - worker)
        ax.fill_between(
            changes, base, [base + count for count in counts], step="post", color=fill(worker % 2)
        )
        ax.axhline(base, color=ink(), linewidth=0.6)
        busy = sum(b - a for (a, b), count in zip(pairwise(changes), counts, strict=False) if count)
        ax.text(end, base + 10.0, f"worker {worker}: busy {busy / end:.0%}", ha="right", fontsize=7)
    ax.set_yticks([])
    ax.set_ylim(0.0, 12.0 * WORKERS)
    ax.set_xlim(0.0, end)
    what = "jobs that share the cores, by worker"
    label(ax, "time (s)", what, f"SpeCon, Fig. {number}: {policy}")


SHOWN = headings("policy | worker | job | begin = begin (s) | end = end (s) | moved")
JOBS = (partial(draw_jobs, DEFAULT, 8), partial(draw_jobs, SPECON, 9))
USE = (partial(draw_use, DEFAULT, 10), partial(draw_use, SPECON, 11))
FIGURES: tuple[DirectFigure, ...] = (
    DirectFigure(
        *("specon-9", "SpeCon, Figs. 8 and 9: where each job runs", table, SHOWN, JOBS, cases, run),
        size=(6.0, 6.4),
        seeds=1,
    ),
    DirectFigure(
        *("specon-11", "SpeCon, Figs. 10 and 11: use of the workers", table, SHOWN, USE),
        *(cases, run),
        size=(6.0, 4.6),
        seeds=1,
    ),
)
