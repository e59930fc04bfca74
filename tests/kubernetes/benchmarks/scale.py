"""``python -m tests.kubernetes.benchmarks.scale``: what the adapter costs on a large cluster.

Nodes of eight GPUs, and gangs of ten workers that all arrive before the first slot; half of them
end after two slots. ``oasis kubernetes run`` is a process of its own, with the shipped rights. What
it wrote, and when, is read from the audit log of the API server. Not pods that are created, but the
patches that open their gates are what a boundary has to send in time. How long that takes depends
on who else is on the machine, so the processor time of the controller and of the control plane
between the first patch and the last one is noted too, and which share of all processors that was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.kubernetes.cluster import Cluster, room
from tests.kubernetes.controlplane.audit import Request
from tests.kubernetes.controlplane.nodes import MACHINES
from tests.kubernetes.controlplane.plane import Timing, control_plane
from tests.kubernetes.controlplane.waiting import free_ports, until
from tests.kubernetes.instance_objects import Slots
from tests.kubernetes.names import NODE_ROLE
from tests.kubernetes.scene import Scene

GANG = 10
# One process plays the kubelets of all nodes: on a machine that others use as well, it must not
# lose all of them because a thousand leases are to be renewed every few seconds. The scheduler is
# as it comes: it takes the time for its pods that it takes on any cluster.
TIMING = Timing(grace=1800, toleration=1800, lease=600, scheduler_requests=50)

# They do something about what the API server tells them. While a boundary is still being sent, that
# can wait: they may get only the processors that API server, etcd and controller leave.
FOLLOWERS = ("kube-scheduler", "kube-controller-manager", *MACHINES)


@dataclass(frozen=True)
class Scale:
    """Size of the cluster, length of a slot, and whether followers get processor time last."""

    nodes: int = 1000
    jobs: int = 500
    slot_seconds: float = 120.0
    followers_last: bool = True


Measured = dict[str, Any]


def many(make: Callable[[int], Any], count: int) -> None:
    """Make so many objects, some at a time."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(make, range(count)))


def submit(scene: Scene, k: int) -> None:
    """A job: every other one has work for two slots, the others for ten."""
    seconds = GANG * scene.clock.work_seconds * (2 if k % 2 else 10)
    scene.submit(scene.elastic(f"j{k}", GANG, GANG, seconds))


def measure(cluster: Cluster, scale: Scale) -> Measured:
    """Run it in a namespace of a control plane without nodes."""
    # `writes_per_pod` is the most writes of pods in a slot over the pods that changed in it, and
    # `lists_of_pods` counts lists without a watch. In the `patch_seconds` from the first to the
    # last opening of a gate the controller had `patch_controller_seconds` of the processors, the
    # control plane `patch_plane_seconds`, and both together `patch_share` of all that there are.
    # The policy thought for `policy_seconds`, of all `busy_seconds` of the controller.
    plane, slot = cluster.plane, scale.slot_seconds
    scene = Scene(plane, cluster.namespace, Slots(slot, 0.9 * slot))
    many(lambda k: plane.nodes.add(f"m{k}", room(8), {NODE_ROLE: "both"}), scale.nodes)
    plane.nodes.wait_ready(*(f"m{k}" for k in range(scale.nodes)), within=600.0)
    many(partial(submit, scene), scale.jobs)
    for follower in FOLLOWERS if scale.followers_last else ():
        go_last(plane.pids()[follower])
    start, (port,) = plane.audit_position(), free_ports(1)
    words = scene.command("--policy", "fifo", "--lease-seconds", "120", "--metrics-port", str(port))
    with subprocess.Popen(words) as process:
        pid, patience = process.pid, 5 * slot + 120.0
        sampler = Sampler({"controller": [pid], "plane": list(plane.pids().values())})
        sampler.start()
        try:
            half = scale.jobs // 2
            until(lambda: ended(scene) >= half, "half of the jobs have ended", patience)
            until(lambda: deleted(scene, start) >= half * GANG, "their pods are gone", patience)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                text = answer.read().decode()
            used = {"memory_mb": round(peak_megabytes(pid), 1), "busy_seconds": seconds_of(pid)}
        finally:
            sampler.stop()
            process.terminate()
    (thought,) = re.findall(r"^oasis_policy_seconds_sum (\S+)", text, re.MULTILINE)
    used["policy_seconds"] = round(float(thought), 3)
    counts = written(writes(scene, start), slot, sampler.samples)
    about = {"nodes": scale.nodes, "pods": scale.jobs * GANG, "completed": ended(scene)}
    about["followers_last"] = scale.followers_last
    return about | counts | used


def ended(scene: Scene) -> int:
    time.sleep(1.0)  # a list of all jobs is not for free
    return sum(phase == "Completed" for phase in scene.phases().values())


def deleted(scene: Scene, start: int) -> int:
    time.sleep(1.0)
    return sum(request.verb == "delete" for request in writes(scene, start))


def writes(scene: Scene, start: int) -> list[Request]:
    """What the controller did to pods, dry runs left out, which make nothing."""
    found = scene.plane.requests(scene.account, start)
    return [r for r in found if r.done and r.resource == "pods" and "dryRun=" not in r.uri]


def written(
    requests: Sequence[Request], slot: float, samples: Mapping[str, list[tuple[float, float]]]
) -> dict[str, Any]:
    begin, by_slot = min(request.at for request in requests), defaultdict(Counter[str])
    for request in requests:
        if request.verb in ("create", "patch", "delete"):
            by_slot[int((request.at - begin) // slot)][request.name] += 1
    pages = sum("continue=" in request.uri for request in requests)
    verbs = Counter(request.verb for request in requests)
    opened = [request.at for request in requests if request.verb == "patch"]
    first, last = min(opened), max(opened)
    had = {name: within(some, first, last) for name, some in samples.items()}
    return {
        "created": verbs["create"],
        "opened": verbs["patch"],
        "deleted": verbs["delete"],
        "writes_per_pod": max(each.total() / len(each) for each in by_slot.values()),
        "lists_of_pods": verbs["list"] - pages,
        "pages_of_pods": pages,
        "patch_seconds": round(last - first, 2),
        "patch_controller_seconds": round(had["controller"], 2),
        "patch_plane_seconds": round(had["plane"], 2),
        "patch_share": round(sum(had.values()) / (last - first) / (os.cpu_count() or 1), 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--slot-seconds", type=float, default=120.0)
    parser.add_argument(
        "--equal", action="store_true", help="let those who follow the API server compete with it"
    )
    parser.add_argument("--csv", type=Path, help="table to put the row of this size into")
    options = parser.parse_args()
    scale = Scale(options.nodes, options.jobs, options.slot_seconds, not options.equal)
    with control_plane("scale", TIMING) as plane:
        cluster = Cluster(plane, "scale")
        cluster.create_namespace()
        measured = measure(cluster, scale)
    print(json.dumps(measured, indent=2))  # noqa: T201
    if options.csv is not None:
        write_row(options.csv, measured)
    return 0


def write_row(path: Path, measured: Measured) -> None:
    """Put what was measured into the table, in the place of what the same run gave before."""
    run = ["nodes", "pods", "followers_last"]
    table = pd.DataFrame([measured])
    table = pd.concat([pd.read_csv(path), table]) if path.exists() else table
    table = table.drop_duplicates(run, keep="last").sort_values(run)
    table.to_csv(path, index=False, lineterminator="\n")


# -- processor time of a process over time, read from /proc while it runs --------------------------

PERIOD = 0.25
LAST = 19  # the nice value of those who wait for everybody else
TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def go_last(pid: int) -> None:
    """Give a process that leads a session only processor time that no other process wants."""
    # Linux compares nice values within a session, and between sessions those of their autogroups.
    os.setpriority(os.PRIO_PGRP, pid, LAST)
    group = Path(f"/proc/{pid}/autogroup")
    while group.exists():
        try:
            group.write_text(str(LAST))
        except BlockingIOError:  # who is not root may do it ten times a second
            time.sleep(0.1)
        else:
            break


def peak_megabytes(pid: int) -> float:
    """Most memory that a process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def within(samples: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Seconds of processor time from `begin` to `end`: from samples of (time, seconds so far)."""
    so_far = np.interp([begin, end], *zip(*samples, strict=True), left=np.nan, right=np.nan)
    return float(so_far[1] - so_far[0])


class Sampler(threading.Thread):
    """Notes the processor time of named groups of processes until it is stopped."""

    def __init__(self, groups: Mapping[str, Sequence[int]]) -> None:
        super().__init__(daemon=True)
        self._groups, self._stopping = groups, threading.Event()
        self.samples: dict[str, list[tuple[float, float]]] = {name: [] for name in groups}

    def run(self) -> None:
        while not self._stopping.wait(PERIOD):
            with suppress(FileNotFoundError, ProcessLookupError):  # one of them has ended
                sums = {n: sum(map(seconds_of, pids)) for n, pids in self._groups.items()}
                now = time.time()
                for name, total in sums.items():
                    self.samples[name].append((now, total))

    def stop(self) -> None:
        self._stopping.set()
        self.join()


if __name__ == "__main__":
    sys.exit(main())
