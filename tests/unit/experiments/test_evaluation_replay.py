"""Policies side by side on a plain trace, from Python."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.evaluation.comparison import PLAIN, replay_each
from oasis.simulator import PlainJob, rigid_workload
from oasis.simulator.workload import Held

WORKLOAD = rigid_workload([PlainJob(f"j{k}", k, 30.0 - k, 1 + k % 2) for k in range(6)], 1, 2)


@pytest.mark.parametrize("held", [(), ((-9.0, 15.0, 1), (3.0, 40.0, 1))])
def test_every_policy_but_those_that_need_an_instance_replays_with_its_options(held: Held) -> None:
    options = {name: {} for name in PLAIN} | {"las": {"line": "fit"}}
    settled: list[None] = []
    workload = replace(WORKLOAD, held=held)
    found = replay_each(workload, options, on_settled=lambda: settled.append(None)).policies
    assert list(found) == list(PLAIN)
    assert {"fifo", "kubernetes-default"} < set(PLAIN)
    assert len(settled) == sum(row["finished"] for row in found.values()) == 6 * len(found)
    assert found["las"]["parameters"] == {
        "seed": 0,
        "thresholds": [1.0],
        "order": "arrival",
        "line": "fit",
        "placement": None,
    }
    assert found["fifo"]["makespan"] >= 30.0


def test_what_cannot_replay_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^expected one of fifo, drf, .*, got 'oasis'$"):
        replay_each(WORKLOAD, {"oasis": {}})
