"""The subcommands of ``oasis kubernetes`` on a real control plane."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

import oasis
from experiments.evaluation.live import cluster_policy
from oasis.kubernetes.objects.oasis_job import SlotClock
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.controlplane.waiting import until
from tests.kubernetes.scene import EXAMPLE, SYSTEM, Scene


def test_every_command_answers_on_a_cluster_at_work(cluster: Cluster, tmp_path: Path) -> None:
    instance = oasis.read(EXAMPLE)
    scene = Scene(cluster.plane, cluster.namespace, SlotClock(20.0, 10.0))
    scene.add_nodes(instance.cluster)
    jobs = {job.id: scene.job(job, instance.slot_seconds) for job in instance.jobs}
    for name in ("j0", "j3", "j4"):
        scene.submit(jobs[name])
    mine = ("--namespace", cluster.namespace)
    dry = "run --policy fifo --slot-seconds 20 --controller-name rehearsal --dry-run --json"
    planned = json.loads(scene.call(*dry.split(), *mine))
    assert {action["action"] for action in planned["actions"]} == {"create"}
    assert scene.our_pods() == {}, "nothing was made"

    with scene.controller(cluster_policy("recourse", {}, lookahead=20)):
        scene.wait({"j0": "Running"})
        until(scene.our_pods, "pods are there", 30.0)
        found = {
            job["job"]: job for job in json.loads(scene.call("status", *mine, "--json"))["jobs"]
        }
        assert found.keys() == {f"{cluster.namespace}/{name}" for name in ("j0", "j3", "j4")}
        assert "3 jobs" in scene.call("status", *mine)
        plan = json.loads(scene.call("plan", *mine, "--json", "--plot", str(tmp_path / "p.svg")))
        assert plan["jobs"]
        assert (tmp_path / "p.svg").read_text().lstrip().startswith("<?xml")

        made = tmp_path / "job.yaml"
        made.write_text(yaml.safe_dump(jobs["j10"]))
        its = ("--system-namespace", SYSTEM, "--controller-name", cluster.namespace)
        asked = ("quote", str(made), *its)
        quote = json.loads(scene.call(*asked, "--json"))
        assert quote["decision"]["admitted"]
        assert quote["decision"]["completion"] is not None
        assert "would be admitted" in scene.call(*asked)
        assert "j10" not in scene.phases(), "a quote makes nothing"

        said = json.loads(scene.call("explain", "j0", "-n", cluster.namespace, "--json"))
        assert {entry["type"] for entry in said["explanation"]} >= {"Admitted", "Placed"}
        assert "j0 is Running" in scene.call("explain", "j0", "-n", cluster.namespace)

        out = tmp_path / "now.json"
        slots = ("--slot-seconds", "20", "--startup-seconds", "10", "--horizon", "20")
        scene.call("import", "-o", str(out), *mine, *slots)
    imported = oasis.read(out)
    assert {job.id.rpartition("/")[2] for job in imported.jobs} == {"j0", "j3", "j4"}
    assert imported.cluster.worker_ids == instance.cluster.worker_ids
    was = {job.id: job.work(1200.0) for job in instance.jobs}
    for job in imported.jobs:
        assert job.work(imported.slot_seconds) == was[job.id.rpartition("/")[2]]
    assert oasis.simulate(imported, oasis.OASiS.from_instance(imported)).decisions


def test_a_report_says_what_was_earned_and_what_could_have_been(
    cluster: Cluster, tmp_path: Path
) -> None:
    instance = oasis.read(EXAMPLE)
    scene = Scene(cluster.plane, cluster.namespace, SlotClock(4.0, 2.0))
    scene.add_nodes(instance.cluster)
    base = scene.job(instance.jobs[0], instance.slot_seconds)
    worth = {"kind": "sigmoid", "priority": 40.0, "decayPerSecond": 0.01, "targetSeconds": 60.0}
    workers = {**base["spec"]["workers"], "minimum": 1, "maximum": 2}
    for name, seconds in (("short", 4.0), ("longer", 12.0), ("endless", 9e5)):
        spec = {**base["spec"], "utility": worth, "workers": workers}
        spec["work"] = {"workerSeconds": seconds}
        scene.submit({**base, "metadata": {**base["metadata"], "name": name}, "spec": spec})
    asked = ("--system-namespace", SYSTEM, "--controller-name", cluster.namespace)
    mine = ("--namespace", cluster.namespace, *asked, "--policies", "fifo", "--gap", "inf")
    kept = tmp_path / "report.json"
    with scene.controller(cluster_policy("fifo", {}, lookahead=20)):
        scene.wait({"short": "Completed", "longer": "Completed"})
        statuses = scene.statuses()
        found = json.loads(scene.call("report", *mine, "-o", str(kept), "--json", code=3))
    earned = sum(status.get("utility", 0.0) for status in statuses.values())
    assert earned > 0
    (row,) = found["cluster"]["namespaces"].values()
    assert (row["jobs"], row["completed"], row["live"]) == (3, 2, 1)
    assert row["utility"] == earned
    really = found["policies"]["this cluster"]
    assert really["total_utility"] == earned
    assert earned <= found["optimum"]["upper_bound"] * (1 + 1e-6)
    assert 0 < really["certified_share_lower"] <= really["certified_share_upper"] <= 1
    assert "this cluster" in json.loads(kept.read_text())["policies"]
