"""The paper's own experiment on a control plane: Figs. 8 and 9 from there and the simulator."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.figures.figure import read_csv
from experiments.figures.settings import PAPER, PRINTED
from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.paper import CLUSTER, FIGURES, SIMULATOR, run_live, settings_for, write


@pytest.mark.nightly  # two minutes for each seed
def test_figures_from_the_cluster_are_those_from_the_simulator(
    shared_plane: ControlPlane, tmp_path: Path
) -> None:
    settings = settings_for(seeds=2, first_seed=0)
    live = run_live(shared_plane, settings)
    assert set(live.lost.values()) == {0.0}, "all pods were there in every slot"
    assert live.differ == ()
    earned = [cell["total_utility"] for cell in live.cells[CLUSTER]]
    simulated = [cell["total_utility"] for cell in live.cells[SIMULATOR]]
    assert earned == pytest.approx(simulated, rel=1e-9)
    assert sum(value > 0 for value in earned) > len(earned) // 2
    write(live, settings, "nightly", tmp_path)
    for figure in FIGURES:
        rows = read_csv(tmp_path / f"{figure.name}.csv")
        assert [row["policy"] for row in rows] == 2 * [PRINTED, *PAPER[1:]]
        assert [row["where"] for row in rows] == [CLUSTER] * 5 + [SIMULATOR] * 5
        assert (tmp_path / f"{figure.name}.svg").read_text().lstrip().startswith("<?xml")
