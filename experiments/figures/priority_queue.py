"""The scenarios of the priority-queue autoscaler, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes

from baselines.counts import on_node
from baselines.gangs import Changes, drop_worker
from baselines.priority_queue import PriorityQueue
from experiments.figures.figure import (
    Case,
    DirectFigure,
    Row,
    crossed,
    elastic,
    headings,
    stays,
)
from experiments.plotting.canvas import TINY, fill, hatch, ink, label, name_rows
from oasis.scheduling import PolicyJob
from oasis.simulator import Workload

MACHINES, GPUS = 2, 4


def _job(
    name: str, arrival: float, work: float, workers: tuple[int, int, int], worth: float, gb: int = 1
) -> dict[str, Any]:
    least, requested, most = workers
    return {
        "id": name,
        "arrival": arrival,
        "work": work,
        "workers": {"min": least, "initial": requested, "max": most},
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
    # once with a job that was launched, and no job grows then.
    "main step": (
        _job("running", 0.0, 600.0, (2, 4, 4), 2.0),
        _job("best", 50.0, 400.0, (4, 4, 4), 5.0),
        _job("small", 50.0, 100.0, (1, 1, 4), 1.0),
        _job("large", 50.0, 400.0, (4, 4, 4), 1.5),
    ),
}


def scenario(name: str) -> Workload:
    """Build the workload of a scenario by its name."""
    machine = {"id": "node", "count": MACHINES, "capacity": {"gpu": GPUS, "memory_gb": 16}}
    return elastic(SCENARIOS[name], machine)


class AsPrinted(PriorityQueue):
    """The autoscaler with loops and main step as printed, as far as they can be run."""

    def schedule(self) -> None:
        """Run lines 1-26 of the printed Scheduling Algorithm once."""
        # A job that is worth more than all that run is launched if it fits (lines 7-10), but
        # scale-down is run for it all the same (line 11); if that succeeds, the first waiting job
        # that then fits is launched (lines 17-21), and no job grows (line 22).
        best = self._best_if_worth_most()
        if best is not None and self._launch(best) is not None:
            self._queue.remove(best)
        walk = best is None or self.scale_down_for(best)
        if walk and self._queue.launch_all(self.weighting, self._launch, set(), most=1):
            return
        self.scale_up()

    def scale_down_for(self, best: PolicyJob) -> bool:
        """Cut workers by the printed loops until `best` fits somewhere; return whether it does."""
        before = self._room.free.copy()
        changes: Changes = {}
        last: int | None = None
        # The printed loop also takes workers from machines where a job has none; only those where
        # it has some can be meant.
        for job in list(self._running):
            now = start = self._running.allocations[job.index]
            # Lines 7 and 18: looked at before a worker is taken, and one per machine at most.
            for last, _ in start.workers:
                if self._fits(best, last):
                    self._resize(changes)
                    return True
                if not job.spare_workers(now.worker_count):
                    break
                now = changes[job.index] = drop_worker(self._room, job, now, last)
        # Line 22: once more on the last machine of all.
        if last is not None and self._fits(best, last):
            self._resize(changes)
            return True
        self._room.free = before
        return False

    def _fits(self, best: PolicyJob, machine: int) -> bool:
        allocation = on_node(self._room, best, *self._book.counts[best.index], machine)
        if allocation is not None:
            self._room.release(best, allocation)
        return allocation is not None


READ, PRINTED = "as read", "as printed"


def cases(_seeds: int) -> list[Case]:
    """Return a case for each scenario and reading; seeds change nothing."""
    return crossed(scenario=SCENARIOS, reading=(READ, PRINTED))


def run(case: Case) -> Row:
    """Run a case; return, as text, the spans in which jobs had constant workers."""
    policy = AsPrinted() if case["reading"] == PRINTED else PriorityQueue()
    spans = [
        (job, begin, end, *(dict(allocation.workers).get(k, 0) for k in range(MACHINES)))
        for job, begin, end, allocation in stays(scenario(case["scenario"]), policy)
    ]
    return {**case, "spans": ";".join("|".join(map(str, span)) for span in spans)}


def table(runs: Sequence[Row]) -> list[Row]:
    """Rows of spans: job, begin, end, and workers on each machine."""
    rows: list[Row] = []
    for run in runs:
        for span in run["spans"].split(";"):
            job, begin, end, *workers = span.split("|")
            row: Row = {"scenario": run["scenario"], "reading": run["reading"], "job": job}
            row |= {"begin": float(begin), "end": float(end)}
            rows.append(row | {f"node{k}": int(count) for k, count in enumerate(workers)})
    return rows


def draw(name: str, rows: Sequence[Row], ax: Axes) -> None:
    """Draw a bar for each span of scenario `name`, as high as the job has workers."""
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
            look: Any = {"color": fill(part + 1), "hatch": hatch(0), "edgecolor": ink()}
            ax.barh(place, length, 0.1 * sum(workers), row["begin"], **look, linewidth=0.6)
            # A shorter bar has no room for the text.
            if length >= 20.0:
                middle = (row["begin"] + row["end"]) / 2
                text = "+".join(str(count) for count in workers if count)
                ax.text(middle, place, text, ha="center", va="center", fontsize=TINY)
    ax.axhline(len(jobs) - 0.5, color=ink(), linewidth=0.8)
    name_rows(ax, labels, fontsize=TINY)
    ax.set_xlim(left=0.0)
    label(ax, "time (s)", "", name)


SHOWN = headings(
    "scenario | reading | job | begin = begin (s) | end = end (s) | node0 = workers on node 0 | "
    "node1 = on node 1"
)
FIGURES: tuple[DirectFigure, ...] = (
    DirectFigure(
        *("priority-queue", "Autoscaler: its five procedures on scenarios", table, SHOWN),
        *(tuple(partial(draw, name) for name in SCENARIOS), cases, run),
        size=(3.6, 4.0),
        seeds=1,
    ),
)
