"""``make kubernetes-demo``: the shipped example on a real control plane, beside the simulator.

Each job becomes an ``OasisJob`` half a slot before the slot of its arrival. The command
``oasis kubernetes run`` schedules them with the shipped rights; at the end the table says what each
earned there, and what the simulator says.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import oasis
from experiments.cli import console
from experiments.evaluation.policies import OASIS, POLICIES
from oasis.kubernetes.control.checkpoint import Checkpoint
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.plane import control_plane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import EXAMPLE, SYSTEM, Scene
from tests.kubernetes.stepped import completions, imported


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default=OASIS, choices=sorted(POLICIES))
    parser.add_argument("--slot-seconds", type=float, default=2.0)
    parser.add_argument("--startup-seconds", type=float, help="allowed for; half a slot")
    options = parser.parse_args()
    instance, half = oasis.read(EXAMPLE), options.slot_seconds / 2
    with control_plane("kubernetes demo") as plane:
        Cluster(plane, "demo").create_namespace()
        allowed = half if options.startup_seconds is None else options.startup_seconds
        scene = Scene(plane, "demo", SlotClock(options.slot_seconds, allowed, 0.0))
        scene.add_nodes(instance.cluster)
        run_controller(scene, instance, options.policy)
        return report(scene, imported(scene, instance), options.policy)


def run_controller(scene: Scene, instance: oasis.Instance, policy: str) -> None:
    """`oasis kubernetes run` as a process of its own, while the jobs arrive."""
    clock, last = scene.clock, instance.horizon
    words = scene.command("--policy", policy, "--horizon", str(last))
    words += ["--stop-after", str(last + 1)]
    words += ["--bounds", str(EXAMPLE)] if policy == OASIS else []
    early, late = [], []
    for job in instance.jobs_by_arrival():
        (late if job.arrival else early).append(job)
    for job in early:
        scene.submit(scene.job(job, instance.slot_seconds))
    checkpoint = Checkpoint(scene.admin, SYSTEM, scene.namespace)
    with subprocess.Popen(words) as process:
        until(lambda: checkpoint.read() is not None, "the controller is at work")
        epoch = checkpoint.read()["epoch"]
        scene.clock = SlotClock(clock.slot_seconds, clock.startup_seconds, epoch)
        for job in late:
            at = scene.clock.begin(job.arrival) - 0.5 * clock.slot_seconds
            time.sleep(max(0.0, at - time.time()))
            scene.submit(scene.job(job, instance.slot_seconds))
        process.wait(timeout=scene.clock.begin(last) - time.time() + 60.0)
    if process.returncode:
        raise RuntimeError(f"oasis kubernetes run ended with {process.returncode}")


def report(scene: Scene, instance: oasis.Instance, policy: str) -> int:
    run = oasis.simulate(instance, POLICIES[policy].make(instance))
    there, statuses = completions(scene, instance.horizon), scene.statuses()
    rows, differ, sums = [], 0, [0.0, 0.0]
    for decision in run.decisions:
        name = decision.job_id.rpartition("/")[2]
        slots = there[name], decision.completion
        earned = statuses[name].get("utility", 0.0), decision.utility
        earned = [0.0 if k is None else found for k, found in zip(slots, earned, strict=True)]
        sums = [a + b for a, b in zip(sums, earned, strict=True)]
        differ += (slots[0] is None) != (slots[1] is None)
        shown = ("-" if slot is None else str(slot) for slot in slots)
        rows.append((name, statuses[name].get("phase", "-"), *shown, *map(console.number, earned)))
    rows.append(("all", "", "", "", *map(console.number, sums)))
    heads = ("completes", "simulated", "earned", "simulated")
    columns = (("job", False), ("on the cluster", False), *((head, True) for head in heads))
    console.print_rows(columns, rows, title=f"{policy} on the cluster and in the simulator")
    if differ:
        console.note(f"{differ} jobs completed on one side only: --slot-seconds sets longer slots")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
