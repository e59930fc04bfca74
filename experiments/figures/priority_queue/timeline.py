"""`oasis figure priority-queue`: who holds how many workers where, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from matplotlib.axes import Axes

from baselines import PriorityQueue
from experiments.figures.direct import Case, DirectFigure
from experiments.figures.priority_queue.scenarios import MACHINES, SCENARIOS, scenario
from experiments.figures.rows import Row
from experiments.plotting.canvas import (
    HATCHES,
    TINY,
    axes,
    fill,
    ink,
)
from oasis.simulator import replay
from oasis.simulator.progress import Progress

READ, PRINTED = "as read", "as printed"


def cases(_seeds: int) -> list[Case]:
    """Each scenario in both readings; nothing is drawn."""
    return [
        {"scenario": name, "reading": reading} for name in SCENARIOS for reading in (READ, PRINTED)
    ]


def run(case: Case) -> Row:
    """One run: every span in which a job held the same workers, as text."""
    made, settled = scenario(case["scenario"]), list[Progress]()
    policy = PriorityQueue(printed=case["reading"] == PRINTED)
    replay(made.workload, policy, on_settled=settled.append, **made.options)
    spans = [
        (progress.job.id, begin, end, *(dict(held.workers).get(k, 0) for k in range(MACHINES)))
        for progress in sorted(settled, key=lambda progress: progress.job.index)
        for (begin, held), (end, _) in pairwise(progress.history)
        if held.workers
    ]
    return {**case, "spans": ";".join("|".join(map(str, span)) for span in spans)}


def table(runs: Sequence[Row]) -> list[Row]:
    """A row for each span of each job."""
    rows: list[Row] = []
    for each in runs:
        for span in each["spans"].split(";"):
            job, begin, end, *workers = span.split("|")
            row: Row = {"scenario": each["scenario"], "reading": each["reading"], "job": job}
            row |= {"begin": float(begin), "end": float(end)}
            rows.append(row | {f"node{k}": int(count) for k, count in enumerate(workers)})
    return rows


def draw(name: str, rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """A bar for each span, as high as the job has workers; their numbers on the two machines."""
    ax = axes(ax)
    jobs = [str(job["id"]) for job in SCENARIOS[name]]
    labels = []
    for part, reading in enumerate((READ, PRINTED)):
        labels += [f"{job}\n({reading})" if job == jobs[0] else job for job in jobs]
        for row in rows:
            if row["scenario"] != name or row["reading"] != reading:
                continue
            place = part * len(jobs) + jobs.index(row["job"])
            workers = [row[f"node{k}"] for k in range(MACHINES)]
            length = row["end"] - row["begin"]
            ax.barh(
                place,
                length,
                0.1 * sum(workers),
                left=row["begin"],
                color=fill(part + 1),
                hatch=HATCHES[0],
                edgecolor=ink(),
                linewidth=0.6,
            )
            if length >= 20.0:
                middle = (row["begin"] + row["end"]) / 2
                text = "+".join(str(count) for count in workers if count)
                ax.text(middle, place, text, ha="center", va="center", fontsize=TINY)
    ax.axhline(len(jobs) - 0.5, color=ink(), linewidth=0.8)
    ax.set_yticks(range(len(labels)), labels, fontsize=TINY)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlim(left=0.0)
    ax.set_xlabel("time (s)")
    ax.set_title(name)
    return ax


TITLE = "Autoscaler: its five procedures on scenarios"
SHOWN = {
    "scenario": "scenario",
    "reading": "reading",
    "job": "job",
    "begin": "begin (s)",
    "end": "end (s)",
    "node0": "workers on node 0",
    "node1": "on node 1",
}
FIGURES = (
    DirectFigure(
        "priority-queue",
        TITLE,
        cases,
        run,
        table,
        SHOWN,
        tuple(partial(draw, name) for name in SCENARIOS),
        (3.6, 4.0),
        seeds=1,
    ),
)
