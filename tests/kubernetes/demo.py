"""``make kubernetes-demo``: the shipped example on a real control plane, beside the simulator.

Each job becomes an ``OasisJob`` half a slot before the slot of its arrival. The command
``oasis kubernetes run`` schedules them with the shipped rights; at the end the table says what each
earned there, and what the simulator says. It also says how long pods took to start, as the
controller measured it, and when each job completes at the latest: a slot after it does in a
simulation in which every start takes as long as that.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import urllib.request
from typing import Any

import oasis
from experiments.cli import console
from experiments.evaluation.policies import OASIS, POLICIES
from oasis.kubernetes.api.resources import NODES, OASIS_JOBS
from oasis.kubernetes.cluster.nodes import instance_of, places_of, site_of
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.objects.oasis_job import SlotClock, parse_job
from oasis.kubernetes.objects.quantities import DEFAULT_RESOURCES
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.plane import control_plane
from tests.kubernetes.controlplane.waiting import free_ports, until
from tests.kubernetes.live_instance import completed_within, delayed, late_jobs
from tests.kubernetes.scene import EXAMPLE, SYSTEM, Scene, drive

NAMESPACE = "demo"
PATIENCE = 60.0  # seconds for the controller to start


def main() -> int:
    """Run it; 0 if every decision was that of the simulator, and no job was later than it may."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default=OASIS, choices=sorted(POLICIES))
    parser.add_argument("--slot-seconds", type=float, default=2.0)
    parser.add_argument("--startup-seconds", type=float, help="allowed for; half a slot")
    options = parser.parse_args()
    instance = oasis.read(EXAMPLE)
    with control_plane("kubernetes demo") as plane:
        Cluster(plane, NAMESPACE).create_namespace()
        allowed = options.startup_seconds
        half = options.slot_seconds / 2
        clock = SlotClock(options.slot_seconds, half if allowed is None else allowed, 0.0)
        scene = Scene(plane, NAMESPACE, clock)
        scene.add_nodes(instance.cluster)
        start_up = run_controller(scene, instance, options.policy)
        on_cluster = imported(scene, instance)
        statuses = scene.statuses()
    return report(statuses, on_cluster, options.policy, clock, start_up)


def run_controller(scene: Scene, instance: oasis.Instance, policy: str) -> float:
    """`oasis kubernetes run` as a process of its own, while the jobs arrive."""
    # Returns the seconds that workers took to start, on average.
    clock, (port,) = scene.clock, free_ports(1)
    last = instance.horizon
    words = scene.command("--policy", policy, "--horizon", str(last))
    words += ["--stop-after", str(last + 1), "--metrics-port", str(port)]
    if policy == OASIS:
        words += ["--bounds", str(EXAMPLE)]
    early = [job for job in instance.jobs_by_arrival() if job.arrival == 0]
    for job in early:
        scene.submit(scene.job(job, instance.slot_seconds))
    checkpoint = Checkpoint(scene.admin, SYSTEM, NAMESPACE)
    with subprocess.Popen(words) as process:
        until(lambda: checkpoint.read() is not None, "the controller is at work", PATIENCE)
        epoch = checkpoint.read()["epoch"]
        scene.clock = SlotClock(clock.slot_seconds, clock.startup_seconds, epoch)
        drive(scene, instance, instance.horizon, first=len(early))
        measured = metrics_of(port)
        process.wait(timeout=60.0)
    if process.returncode:
        raise RuntimeError(f"oasis kubernetes run ended with {process.returncode}")
    started = measured["oasis_startup_seconds_count"]
    if not started:
        raise RuntimeError("oasis kubernetes run ended before any worker was at work")
    return measured["oasis_startup_seconds_sum"] / started


def metrics_of(port: int) -> dict[str, float]:
    """The metrics without labels that a controller serves, by name."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    plain = (line.split() for line in lines if not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in plain}


def imported(scene: Scene, instance: oasis.Instance, selector: str | None = None) -> oasis.Instance:
    """The instance as it is read back from the cluster, or from the nodes with some labels."""
    listed, _ = scene.admin.list_all(NODES, selector=selector)
    nodes = {node["metadata"]["name"]: node for node in listed}
    clock, resources = scene.clock, DEFAULT_RESOURCES
    site = site_of(places_of(nodes.values(), None), nodes, {}, resources, clock.work_seconds)
    arrivals = {job.id: job.arrival for job in instance.jobs}
    items = {i["metadata"]["name"]: i for i in scene.admin.list_all(OASIS_JOBS, scene.namespace)[0]}
    specs = [
        (parse_job(items[job.id], clock, resources), arrivals[job.id])
        for job in instance.jobs_by_arrival()
    ]
    return instance_of(specs, site, instance.horizon, {})


def report(
    statuses: dict[str, dict[str, Any]],
    instance: oasis.Instance,
    policy: str,
    clock: SlotClock,
    start_up: float,
) -> int:
    """The table; 0 if the decisions are those of the simulator, and no job is later than it may."""
    run = oasis.simulate(instance, POLICIES[policy].make(instance))
    slow = oasis.simulate(instance, POLICIES[policy].make(instance), costs=delayed(clock, start_up))
    latest = {d.job_id.rpartition("/")[2]: d.completion for d in slow.decisions}
    there = completed_within(statuses, instance.horizon)
    rows, differ, sums = [], 0, [0.0, 0.0]
    for decision in run.decisions:
        name, here = decision.job_id.rpartition("/")[2], decision.completion
        status, due = statuses[name], latest[name]
        earned = (
            status["utility"] if there[name] is not None else 0.0,
            decision.utility if here is not None else 0.0,
        )
        sums = [a + b for a, b in zip(sums, earned, strict=True)]
        differ += (there[name] is None) != (here is None)
        slots = (there[name], here, None if due is None else due + 1)
        shown = ("-" if slot is None else str(slot) for slot in slots)
        amounts = (console.number(value) for value in earned)
        rows.append((name, status.get("phase", "-"), *shown, *amounts))
    rows.append(("all", "", "", "", "", *(console.number(value) for value in sums)))
    columns = (
        ("job", False),
        ("on the cluster", False),
        ("completes", True),
        ("simulated", True),
        ("at the latest", True),
        ("earned", True),
        ("simulated", True),
    )
    console.print_rows(columns, rows, title=f"{policy} on the cluster and in the simulator")
    allowed = f"{clock.startup_seconds:g} s are allowed for"
    console.note(f"workers took {start_up:.2f} s of their first slot to start; {allowed}")
    if start_up > clock.startup_seconds:
        console.note(
            "this machine is too slow for slots as short as that: --slot-seconds sets longer ones"
        )
    if differ:
        console.note(f"{differ} jobs completed on one side only")
    late = late_jobs(there, latest, instance.horizon)
    for name, (found, due) in late.items():
        when = "did not complete" if found is None else f"completed in slot {found}"
        console.note(f"{name} {when}: expected slot {due + 1} at the latest")
    return 1 if differ or late else 0


if __name__ == "__main__":
    sys.exit(main())
