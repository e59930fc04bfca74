"""``make kubernetes-figures``: the paper's own experiment on a real control plane.

OASiS with FIFO, DRF, RRH and Dorm, each as the controller of a cluster of its own with the servers
of section V-B (preset ``testbed``): Figs. 8 and 9 from what the clusters did, beside those from the
simulator on the same instances. A slot lasts until its pods are there (`tests.kubernetes.stepped`).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import oasis
from experiments.cli import console
from experiments.evaluation.live import Bounds, cluster_policy
from experiments.evaluation.policies import FLOOR, OASIS, POLICIES, PRINTED_FLOOR
from experiments.figures import FIGURES as PUBLISHED
from experiments.figures.figure import PublishedFigure, Row, write_csv
from experiments.figures.oasis import TESTBED, TESTBED_JOBS
from experiments.figures.settings import PAPER, FigureSettings, policy_label
from experiments.plotting import save
from experiments.plotting.canvas import SMALL, new_figure
from oasis.model.resources import BANDWIDTH
from oasis.model.utility import Sigmoid
from oasis.online.prices import PriceBounds
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.plane import ControlPlane, control_plane
from tests.kubernetes.live_instance import (
    completions,
    scene_for,
    stepped_through,
)
from tests.kubernetes.scene import Scene
from tests.kubernetes.stepped import lost_slots, run_all

FIG8 = PUBLISHED["fig8"]
FIGURES = (FIG8, PUBLISHED["fig9"])
CLUSTER, SIMULATOR = "cluster", "simulator"


@dataclass(frozen=True)
class Live:
    """Cells of the cluster and of the simulator, worker-slots that were planned and not worked, and
    the seeds and policies whose completions are not those of the simulator."""

    cells: Mapping[str, list[Row]]
    lost: Mapping[tuple[int, str], float]
    differ: tuple[tuple[int, str], ...]

    @property
    def unexplained(self) -> tuple[tuple[int, str], ...]:
        """Differences that no late pod explains."""
        return tuple(key for key in self.differ if not self.lost[key])


def settings_for(seeds: int, first_seed: int = 0) -> FigureSettings:
    """The paper's five policies on its testbed, OASiS as printed."""
    printed = {OASIS: {FLOOR: PRINTED_FLOOR}}
    return FIG8.settings(seeds=seeds, first_seed=first_seed, policies=PAPER, policy_options=printed)


def run_live(plane: ControlPlane, settings: FigureSettings) -> Live:
    """Run every policy on every instance, the policies of an instance side by side."""
    cells: dict[str, list[Row]] = {CLUSTER: [], SIMULATOR: []}
    lost: dict[tuple[int, str], float] = {}
    differ = []
    (jobs,) = settings.job_counts((TESTBED_JOBS,))
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        instance = as_objects_say(oasis.generate(TESTBED, jobs=jobs, seed=seed))
        home = Cluster(plane, f"paper-{seed}")
        scenes = {
            label(entry): scene_for(home, label(entry), instance.cluster)
            for entry in settings.compared()
        }
        stepped = {
            label(entry): stepped_through(
                scenes[label(entry)], instance, policy_for(instance, entry)
            )
            for entry in settings.compared()
        }
        run_all(list(stepped.values()))
        for entry in settings.compared():
            name, options = label(entry), {k: v for k, v in entry.items() if k != "name"}
            lost[seed, name] = lost_slots(stepped[name].controller)
            there = ended_on(scenes[name], instance.horizon)
            run = oasis.simulate(instance, POLICIES[entry["name"]].make(instance, options))
            here = {
                d.job_id: (d.completion, d.utility)
                for d in run.decisions
                if d.completion is not None
            }
            if {k: end for k, (end, _) in there.items()} != {
                k: end for k, (end, _) in here.items()
            }:
                differ.append((seed, name))
            for where, ends, admitted in (
                (CLUSTER, there, admitted_on(scenes[name])),
                (SIMULATOR, here, run.admitted),
            ):
                cells[where].append(cell_of(instance, entry, seed, ends, admitted))
        plane.nodes.clear()
    return Live(cells, lost, tuple(differ))


def as_objects_say(instance: oasis.Instance) -> oasis.Instance:
    """The jobs with bandwidths that an OasisJob can ask for: whole bits per second, rounded up."""
    # A difference in the tenth digit decides between placements of the same cost, and with these
    # about jobs that come later.

    def whole(demand: Mapping[str, float]) -> dict[str, float]:
        return {**demand, BANDWIDTH: math.ceil(demand[BANDWIDTH] * 1e9) / 1e9}

    jobs = tuple(replace(job, worker=whole(job.worker), ps=whole(job.ps)) for job in instance.jobs)
    return replace(instance, jobs=jobs)


def policy_for(instance: oasis.Instance, entry: Mapping[str, Any]) -> Callable[[], Any]:
    """A policy as the figure has it; OASiS gets U and L of the jobs of the instance."""
    options = {k: v for k, v in entry.items() if k != "name"}
    last = instance.horizon
    bounds = bounds_of(instance, options.pop(FLOOR)) if entry["name"] == OASIS else None
    return cluster_policy(entry["name"], options, lookahead=last, horizon=last, bounds=bounds)


def bounds_of(instance: oasis.Instance, floor: float) -> Bounds:
    """U and L of an instance for a cluster whose slots are of another length."""

    def of(cluster: oasis.Cluster) -> PriceBounds:
        scaled = replace(cluster, slot_seconds=instance.slot_seconds)
        jobs, last = instance.jobs, instance.horizon
        return PriceBounds.from_jobs(jobs, scaled, last, min_utility_fraction=floor)

    return of


def ended_on(scene: Scene, horizon: int) -> dict[str, tuple[int, float]]:
    """Slot and utility of each job that completed within the horizon, as its status says."""
    statuses = scene.statuses()
    return {
        name: (slot, statuses[name]["utility"])
        for name, slot in completions(scene, horizon).items()
        if slot is not None
    }


def admitted_on(scene: Scene) -> int:
    """Number of jobs that the policy accepted."""
    return sum("arrivalSlot" in status for status in scene.statuses().values())


def label(entry: Mapping[str, Any]) -> str:
    """Name of a policy in the figures, which has OASiS in two forms."""
    return policy_label(entry["name"], entry.get(FLOOR))


def cell_of(
    instance: oasis.Instance,
    entry: Mapping[str, Any],
    seed: int,
    ends: Mapping[str, tuple[int, float]],
    admitted: int,
) -> Row:
    """A run as the tables of the figures want it."""
    late: list[float | None] = []
    decay: list[float] = []
    for job in instance.jobs_by_arrival():
        assert isinstance(job.utility, Sigmoid)
        target = job.arrival + job.utility.target
        late.append(ends[job.id][0] - target if job.id in ends else None)
        decay.append(job.utility.decay)
    return {
        "instance.jobs": len(instance.jobs),
        "seed": seed,
        "policy.name": entry["name"],
        f"policy.{FLOOR}": entry.get(FLOOR),
        "total_utility": math.fsum(utility for _, utility in ends.values()),
        "admitted": admitted,
        "finished": len(ends),
        "lateness": late,
        "decay": decay,
    }


def rows_of(figure: PublishedFigure, live: Live, settings: FigureSettings) -> list[Row]:
    """The rows of a figure, first those of the cluster, then those of the simulator."""
    return [
        {"where": where, **row}
        for where, cells in live.cells.items()
        for row in figure.table(cells, settings)
    ]


def draw(figure: PublishedFigure, rows: Sequence[Row], note: str) -> Figure:
    """The figure from the cluster beside that from the simulator, on the same scales."""
    width, height = figure.size
    page = new_figure(2 * width, height)
    places = page.subplots(1, 2, sharex=True, sharey=True)
    (panel,) = figure.panels
    for place, where in zip(places, (CLUSTER, SIMULATOR), strict=True):
        panel([row for row in rows if row["where"] == where], place)
        place.set_title(f"{figure.title}: {where}")
    page.supxlabel(note, fontsize=SMALL, x=0.99, ha="right")
    return page


def write(live: Live, settings: FigureSettings, note: str, directory: Path) -> list[Path]:
    """Data and picture of each figure."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for figure in FIGURES:
        rows = rows_of(figure, live, settings)
        data, picture = (directory / f"{figure.name}{end}" for end in (".csv", ".svg"))
        write_csv(data, rows)
        save(draw(figure, rows, note), picture)
        files += [data, picture]
    return files


def table(live: Live, settings: FigureSettings) -> None:
    """Print what each policy earned, here and there."""
    found = {(row["where"], row["policy"]): row for row in rows_of(FIG8, live, settings)}
    rows = []
    for name in map(label, settings.compared()):
        there, here = found[CLUSTER, name], found[SIMULATOR, name]
        lost = math.fsum(amount for (_, policy), amount in live.lost.items() if policy == name)
        values = (there["utility"], here["utility"], there["finished"], here["finished"], lost)
        rows.append((name, *(console.number(float(value)) for value in values)))
    heads = ("utility", "simulated", "finished", "simulated", "worker-slots lost")
    columns = (("policy", False), *((head, True) for head in heads))
    console.print_rows(columns, rows, title="Section V-B on a cluster and in the simulator, means")


def main() -> int:
    """Run it; 0 if whatever was in time was decided as in the simulator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("kubernetes-figures"))
    options = parser.parse_args()
    settings = settings_for(options.seeds, options.first_seed)
    with control_plane("kubernetes figures") as plane:
        live = run_live(plane, settings)
    note = f"{settings.describe()}, slots as long as their pods take"
    files = write(live, settings, note, options.output)
    table(live, settings)
    console.note(f"written: {', '.join(map(str, files))}")
    for seed, name in live.differ:
        lost = live.lost[seed, name]
        console.note(f"seed {seed}, {name}: not as simulated, {lost:g} worker-slots were lost")
    return 1 if live.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
