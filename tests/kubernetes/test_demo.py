"""What is decided on a cluster is what `oasis.simulate` decides.

The policies of an instance run at the same time, each with its own nodes and namespace, and each on
a clock that waits for its pods (`tests.kubernetes.stepped`).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import oasis
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.paper import CLUSTER, FIGURES, PAPER, SIMULATOR, run_live, settings_for, write
from tests.kubernetes.scene import EXAMPLE
from tests.kubernetes.stepped import completions, decided, imported


def test_the_example_is_decided_as_in_the_simulator(cluster: Cluster) -> None:
    shipped = oasis.read(EXAMPLE)
    last, differ = shipped.horizon, {}
    policies = {name: {} for name in ("oasis", "recourse", "srtf", "fifo")}
    for name, (scene, lost) in decided(cluster, shipped, policies).items():
        assert lost == 0.0, "all pods were there in every slot"
        instance = imported(scene, shipped)
        decisions = oasis.simulate(instance, oasis.make_policy(name, instance)).decisions
        here = {d.job_id.rpartition("/")[2]: d.completion for d in decisions}
        there = completions(scene, last)
        assert there.keys() == here.keys()
        assert any(slot is not None for slot in here.values())
        if there != here:
            differ[name] = {k: (there[k], here[k]) for k in here if there[k] != here[k]}
    assert differ == {}, "completed in (slot on the cluster, slot in the simulator)"


@pytest.mark.nightly  # two minutes for each seed
def test_figures_from_the_cluster_are_those_from_the_simulator(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The paper's own experiment: Figs. 8 and 9 from there and the simulator."""
    settings = settings_for(seeds=2)
    live = run_live(cluster.plane, settings)
    assert set(live.lost.values()) == {0.0}, "all pods were there in every slot"
    assert live.differ == []
    earned = [cell["total_utility"] for cell in live.cells[CLUSTER]]
    simulated = [cell["total_utility"] for cell in live.cells[SIMULATOR]]
    assert earned == pytest.approx(simulated, rel=1e-9)
    assert sum(value > 0 for value in earned) > len(earned) // 2
    write(live, settings, tmp_path)
    for figure in FIGURES:
        rows = pd.read_csv(tmp_path / f"{figure.name}.csv")
        assert [*rows["policy"]] == 2 * ["oasis-printed", *list(PAPER)[1:]]
        assert [*rows["where"]] == [CLUSTER] * 5 + [SIMULATOR] * 5
        assert (tmp_path / f"{figure.name}.svg").read_text().lstrip().startswith("<?xml")
