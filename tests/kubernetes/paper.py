"""``make kubernetes-figures``: the paper's own experiment on a real control plane.

OASiS with FIFO, DRF, RRH and Dorm, each as the controller of a cluster of its own with the servers
of section V-B (preset ``testbed``): Figs. 8 and 9 from what the clusters did, beside those from the
simulator on the same instances. A slot lasts until its pods are there (`tests.kubernetes.stepped`).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

import oasis
from experiments.figures import FIGURES as PUBLISHED
from experiments.figures import FigureSettings, PublishedFigure
from experiments.plotting import save
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.plane import ControlPlane, control_plane
from tests.kubernetes.stepped import completions, decided

Row = dict[str, Any]
# The policies of the paper, in its order; it has no utility floor.
PAPER: dict[str, Row] = {"oasis": {"min_utility_fraction": 0.0}}
PAPER |= {name: {} for name in ("fifo", "drf", "rrh", "dorm")}
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
    return FIG8.settings(
        seeds=seeds, first_seed=first_seed, policies=tuple(PAPER), policy_options=PAPER
    )


def run_live(plane: ControlPlane, settings: FigureSettings) -> Live:
    live = Live()
    for seed in range(settings.first_seed, settings.first_seed + settings.seeds):
        instance = as_objects_say(oasis.generate("testbed-observed", jobs=12, seed=seed))
        ran = decided(Cluster(plane, f"paper-{seed}"), instance, PAPER)
        for name, (scene, live.lost[seed, name]) in ran.items():
            statuses = scene.statuses()
            slots = completions(scene, instance.horizon)
            there = {k: (at, statuses[k]["utility"]) for k, at in slots.items() if at is not None}
            run = oasis.simulate(instance, oasis.make_policy(name, instance, **PAPER[name]))
            done = [d for d in run.decisions if d.completion is not None]
            here = {d.job_id: (d.completion, d.utility) for d in done}
            if {k: end for k, (end, _) in there.items()} != {d.job_id: d.completion for d in done}:
                live.differ.append((seed, name))
            admitted = sum("arrivalSlot" in status for status in statuses.values())
            cells = (CLUSTER, there, admitted), (SIMULATOR, here, run.admitted)
            for where, ends, count in cells:
                live.cells[where].append(cell_of(instance, name, seed, ends, count))
        plane.nodes.clear()
    return live


def as_objects_say(instance: oasis.Instance) -> oasis.Instance:
    """The jobs with bandwidths that an OasisJob can ask for: whole bits per second, rounded up."""
    # A difference in the tenth digit decides between placements of the same cost, and with these
    # about jobs that come later.

    def whole(demand: Mapping[str, float]) -> dict[str, float]:
        return {**demand, "bandwidth_gbps": math.ceil(demand["bandwidth_gbps"] * 1e9) / 1e9}

    jobs = tuple(replace(job, worker=whole(job.worker), ps=whole(job.ps)) for job in instance.jobs)
    return replace(instance, jobs=jobs)


def cell_of(instance: oasis.Instance, name: str, seed: int, ends: Ends, admitted: int) -> Row:
    """A run as the tables of the figures want it."""
    late: list[float | None] = []
    decay: list[float] = []
    for job in instance.jobs_by_arrival():
        assert isinstance(job.utility, oasis.Sigmoid)
        target = job.arrival + job.utility.target
        late.append(ends[job.id][0] - target if job.id in ends else None)
        decay.append(job.utility.decay)
    cell = {"instance.jobs": len(instance.jobs), "seed": seed, "policy.name": name}
    cell |= {f"policy.{option}": value for option, value in PAPER[name].items()}
    cell |= {"admitted": admitted, "finished": len(ends)}
    cell["total_utility"] = math.fsum(utility for _, utility in ends.values())
    return cell | {"lateness": late, "decay": decay}


def draw(figure: PublishedFigure, rows: Sequence[Row], note: str, path: Path) -> None:
    """The figure from the cluster beside that from the simulator, on the same scales."""
    (panel,) = figure.panels

    def of(where: str) -> Any:
        return lambda rows, place: panel([row for row in rows if row["where"] == where], place)

    page = replace(figure, panels=(of(CLUSTER), of(SIMULATOR))).draw(rows, note)
    ends = [end for place in page.axes for end in place.get_ylim()]
    for place, where in zip(page.axes, (CLUSTER, SIMULATOR), strict=True):
        place.set_title(f"{figure.title}: {where}")
        place.set_ylim(min(ends), max(ends))
    save(page, path)


def write(live: Live, settings: FigureSettings, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    note = f"{settings.describe()}, slots as long as their pods take"
    for figure in FIGURES:
        cells = live.cells.items()
        rows = [{"where": where} | row for where, of in cells for row in figure.table(of, settings)]
        file = directory / f"{figure.name}.csv"
        pd.DataFrame(rows).to_csv(file, index=False, lineterminator="\n")
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
    sys.stderr.write(f"written: data and pictures, in {options.output}\n")
    for seed, name in live.differ:
        lost = live.lost[seed, name]
        said = f"seed {seed}, {name}: not as simulated, {lost:g} worker-slots were lost\n"
        sys.stderr.write(said)
    return int(any(not live.lost[key] for key in live.differ))  # which no late pod explains


if __name__ == "__main__":
    sys.exit(main())
