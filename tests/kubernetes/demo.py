"""``make kubernetes-demo``: the shipped example on a real control plane, beside the simulator.

Each job becomes an ``OasisJob`` half a slot before the slot of its arrival. A controller schedules
them with the shipped rights; at the end the table says what each earned there, and what the
simulator says.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd

import oasis
from baselines import ALL
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.plane import control_plane
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.scene import EXAMPLE, Scene
from tests.kubernetes.stepped import completions, imported, policy_of


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="oasis", choices=sorted(("oasis", "recourse", *ALL)))
    parser.add_argument("--slot-seconds", type=float, default=2.0)
    parser.add_argument("--startup-seconds", type=float, help="allowed for; half a slot")
    options = parser.parse_args()
    instance, half = oasis.read(EXAMPLE), options.slot_seconds / 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    with control_plane("kubernetes demo") as plane:
        Cluster(plane, "demo").create_namespace()
        allowed = half if options.startup_seconds is None else options.startup_seconds
        scene = Scene(plane, "demo", Slots(options.slot_seconds, allowed))
        scene.add_nodes(instance.cluster, "demo")
        run_controller(scene, instance, policy_of(instance, options.policy))
        return report(scene, imported(scene, instance), options.policy)


def run_controller(scene: Scene, instance: oasis.Instance, policy: Callable[[], Any]) -> None:
    """Run a controller, while the jobs arrive, until the slots of the instance are over."""
    early = [job for job in instance.jobs_by_arrival() if not job.arrival]
    for job in early:
        scene.submit(scene.job(job, instance.slot_seconds))
    last = instance.horizon
    with scene.controller(policy, horizon=last, lease_seconds=15.0) as controller:
        reconciler: Any = until(lambda: controller.reconciler, "the controller is at work")
        scene.clock = replace(scene.clock, epoch=reconciler.clock.epoch)
        for job in instance.jobs_by_arrival()[len(early) :]:
            at = scene.clock.begin(job.arrival) - 0.5 * scene.clock.slot_seconds
            time.sleep(max(0.0, at - time.time()))
            scene.submit(scene.job(job, instance.slot_seconds))
        left = scene.clock.begin(last) - time.time()
        until(lambda: (reconciler.slot or 0) > last, "the last slot is closed", left + 60.0)


def report(scene: Scene, instance: oasis.Instance, policy: str) -> int:
    run = oasis.simulate(instance, oasis.make_policy(policy, instance))
    there, statuses = completions(scene, instance.horizon), scene.statuses()
    rows, differ = {}, 0
    for decision in run.decisions:
        name = decision.job_id.rpartition("/")[2]
        earned = 0.0 if there[name] is None else statuses[name]["utility"]
        simulated = 0.0 if decision.completion is None else decision.utility
        row = (there[name], decision.completion, earned, simulated)
        rows[name] = (statuses[name].get("phase"), *row)
        differ += (there[name] is None) != (decision.completion is None)
    heads = ("on the cluster", "completes", "simulated", "earned", "simulated")
    table = pd.DataFrame([*rows.values()], [*rows], heads, dtype=object)
    sums = table.iloc[:, 3:].sum().round(2)
    text = table.fillna("-").to_string(float_format="{:.2f}".format)
    sys.stdout.write(f"{policy} on the cluster and in the simulator\n{text}\n")
    sys.stdout.write(f"all: {sums.iloc[0]} on the cluster, {sums.iloc[1]} in the simulator\n")
    if differ:
        said = f"{differ} jobs completed on one side only: --slot-seconds sets longer slots\n"
        sys.stderr.write(said)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
