"""Task groups: each finds what belongs to it, and an unknown one is named."""

from __future__ import annotations

import numpy as np
import pytest

from oasis.model.groups import GROUPS, TaskGroup
from tests import builders

JOB = builders.job(
    workers=4,
    worker={"gpu": 1.0, "bandwidth_gbps": 1.0},
    ps={"bandwidth_gbps": 2.0},
)
CLUSTER = builders.cluster(
    servers=2, worker={"gpu": 4.0, "bandwidth_gbps": 8.0}, ps={"bandwidth_gbps": 8.0}
)


def test_each_group_finds_what_is_its_own() -> None:
    assert [group.of(JOB) for group in GROUPS] == [JOB.worker, JOB.ps]
    assert [group.ids(CLUSTER) for group in GROUPS] == [("w#0", "w#1"), ("p",)]
    assert [group.servers(CLUSTER)[0].id for group in GROUPS] == ["w", "p"]
    assert [group.capacity(CLUSTER).shape for group in GROUPS] == [(2, 2), (1, 2)]
    assert [group.tasks for group in GROUPS] == ["workers", "parameter servers"]


def test_parameter_servers_follow_the_workers() -> None:
    counts = np.arange(1, 5)
    assert TaskGroup.WORKER.needed(JOB, counts).tolist() == [1, 2, 3, 4]
    assert TaskGroup.PS.needed(JOB, counts).tolist() == [1, 1, 2, 2]


def test_an_unknown_group_is_named() -> None:
    with pytest.raises(ValueError, match=r"^group: expected one of worker, ps, got 'gpu'$"):
        TaskGroup("gpu")
