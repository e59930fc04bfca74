"""A real training process tells its progress, and its job ends when the work is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from baselines import FIFO
from tests.kubernetes.adapter import elastic, running_workers, scene_of, wait_ended
from tests.kubernetes.cluster import Cluster, report_rights
from tests.kubernetes.controlplane.waiting import until

ROOT = Path(__file__).parents[2]
SECONDS = 5000.0  # of work: an hour and more, if nobody told better


def test_a_process_that_reports_its_progress_ends_its_job(cluster: Cluster) -> None:
    scene = scene_of(cluster)
    rights = report_rights(cluster.namespace, "training")
    account = cluster.plane.service_account("training", cluster.namespace, rights)
    with scene.controller(FIFO):
        scene.submit(elastic(scene, "job", 2, 2, SECONDS))
        until(lambda: running_workers(scene) == {"job": 2}, "it runs", 40.0)
        (pods,) = scene.our_pods().values()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.kubernetes.training", account.kubeconfig()),
                *(cluster.namespace, min(pods), str(SECONDS)),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        placed, loss = done.stdout.splitlines()
        node = pods[min(pods)]["spec"]["nodeName"]
        assert placed.startswith(f"placed on {node} by plan ")
        assert float(loss.removeprefix("loss ")) < 0.01
        assert wait_ended(scene, 1) == {"job": "Completed"}
    assert scene.statuses()["job"]["progress"]["percent"] == 100
