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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import oasis
from experiments.cli import console
from experiments.evaluation.live import cluster_policy
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
from tests.kubernetes.stepped import completions, lost_slots, run_all, scene_for, stepped_through

FIG8 = PUBLISHED["fig8"]
FIGURES = (FIG8, PUBLISHED["fig9"])
CLUSTER, SIMULATOR = "cluster", "simulator"
Ends = Mapping[str, tuple[int, float]]  # slot and utility of each job that completed


@dataclass(frozen=True)
class Live:
    """Cells of the cluster and of the simulator, worker-slots that were planned and not worked, and
    the seeds and policies whose completions are not those of the simulator."""

    cells: dict[str, list[Row]] = field(default_factory=lambda: {CLUSTER: [], SIMULATOR: []})
    lost: dict[tuple[int, str], float] = field(default_factory=dict)
    differ: list[tuple[int, str]] = field(default_factory=list)


def settings_for(seeds: int, first_seed: int = 0) -> FigureSettings:
    printed = {OASIS: {FLOOR: PRINTED_FLOOR}}
    return FIG8.settings(seeds=seeds, first_seed=first_seed, policies=PAPER, policy_options=printed)


def run_live(plane: ControlPlane, settings: FigureSettings) -> Live:
    live = Live()
    (jobs,) = settings.job_counts((TESTBED_JOBS,))
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        instance = as_objects_say(oasis.generate(TESTBED, jobs=jobs, seed=seed))
        home, begun = Cluster(plane, f"paper-{seed}"), []
        for entry in settings.compared():
            name = policy_label(entry["name"], entry.get(FLOOR))  # OASiS has two forms
            scene = scene_for(home, name, instance.cluster)
            stepped = stepped_through(scene, instance, policy_for(instance, entry))
            begun.append((entry, name, scene, stepped))
        run_all([stepped for *_, stepped in begun])
        for entry, name, scene, stepped in begun:
            live.lost[seed, name] = lost_slots(stepped.controller)
            statuses = scene.statuses()
            slots = completions(scene, instance.horizon)
            there = {k: (at, statuses[k]["utility"]) for k, at in slots.items() if at is not None}
            options = {k: v for k, v in entry.items() if k != "name"}
            run = oasis.simulate(instance, POLICIES[entry["name"]].make(instance, options))
            done = [d for d in run.decisions if d.completion is not None]
            here = {d.job_id: (d.completion, d.utility) for d in done}
            if {k: end for k, (end, _) in there.items()} != {d.job_id: d.completion for d in done}:
                live.differ.append((seed, name))
            admitted = sum("arrivalSlot" in status for status in statuses.values())
            cells = (CLUSTER, there, admitted), (SIMULATOR, here, run.admitted)
            for where, ends, count in cells:
                live.cells[where].append(cell_of(instance, entry, seed, ends, count))
        plane.nodes.clear()
    return live


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
    options, last = {k: v for k, v in entry.items() if k != "name"}, instance.horizon
    floor = options.pop(FLOOR) if entry["name"] == OASIS else None

    def bounds(cluster: oasis.Cluster) -> PriceBounds:
        scaled = replace(cluster, slot_seconds=instance.slot_seconds)  # slots of another length
        return PriceBounds.from_jobs(instance.jobs, scaled, last, min_utility_fraction=floor)

    own = None if floor is None else bounds
    return cluster_policy(entry["name"], options, lookahead=last, horizon=last, bounds=own)


def cell_of(
    instance: oasis.Instance, entry: Mapping[str, Any], seed: int, ends: Ends, admitted: int
) -> Row:
    """A run as the tables of the figures want it."""
    late: list[float | None] = []
    decay: list[float] = []
    for job in instance.jobs_by_arrival():
        assert isinstance(job.utility, Sigmoid)
        target = job.arrival + job.utility.target
        late.append(ends[job.id][0] - target if job.id in ends else None)
        decay.append(job.utility.decay)
    cell = {"instance.jobs": len(instance.jobs), "seed": seed, "policy.name": entry["name"]}
    cell |= {f"policy.{FLOOR}": entry.get(FLOOR), "admitted": admitted, "finished": len(ends)}
    cell["total_utility"] = math.fsum(utility for _, utility in ends.values())
    return cell | {"lateness": late, "decay": decay}


def draw(figure: PublishedFigure, rows: Sequence[Row], note: str, path: Path) -> None:
    """The figure from the cluster beside that from the simulator, on the same scales."""
    width, height = figure.size
    page = new_figure(2 * width, height)
    places = page.subplots(1, 2, sharex=True, sharey=True)
    (panel,) = figure.panels
    for place, where in zip(places, (CLUSTER, SIMULATOR), strict=True):
        panel([row for row in rows if row["where"] == where], place)
        place.set_title(f"{figure.title}: {where}")
    page.supxlabel(note, fontsize=SMALL, x=0.99, ha="right")
    save(page, path)


def write(live: Live, settings: FigureSettings, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    note = f"{settings.describe()}, slots as long as their pods take"
    for figure in FIGURES:
        cells = live.cells.items()
        rows = [{"where": where} | row for where, of in cells for row in figure.table(of, settings)]
        write_csv(directory / f"{figure.name}.csv", rows)
        draw(figure, rows, note, directory / f"{figure.name}.svg")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=Path("kubernetes-figures"))
    options = parser.parse_args()
    settings = settings_for(options.seeds, options.first_seed)
    with control_plane("kubernetes figures") as plane:
        live = run_live(plane, settings)
    write(live, settings, options.output)
    console.note(f"written: data and pictures, in {options.output}")
    for seed, name in live.differ:
        lost = live.lost[seed, name]
        console.note(f"seed {seed}, {name}: not as simulated, {lost:g} worker-slots were lost")
    return int(any(not live.lost[key] for key in live.differ))  # which no late pod explains


if __name__ == "__main__":
    sys.exit(main())
