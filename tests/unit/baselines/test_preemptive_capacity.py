"""Policies whose second room is made only when it is needed decide as those that always have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from baselines import LAS, SRSF, SRTF, Gittins, preemptive
from baselines.preemptive import PreemptiveCapacity
from oasis.scheduling import Placement, PolicyJob, Site, View
from oasis.simulator import PlainJob, replay, rigid_workload
from oasis.simulator.outcome import Outcome


class Eager(PreemptiveCapacity):
    """Has the second room from the beginning, so that every turn is played."""

    def __init__(
        self, site: Site, placement: Placement, view: View, running: Iterable[PolicyJob]
    ) -> None:
        super().__init__(site, placement, view, running)
        self._without_later()


def drawn(seed: int) -> tuple[list[PlainJob], str, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    came = np.sort(rng.integers(0, 3000, 60)).astype(float).tolist()
    lasts = np.ceil(np.exp(rng.normal(5.0, 1.3, 60))).tolist()
    wide = rng.choice([1, 2, 3, 4, 8], 60).tolist()
    rows = zip(came, lasts, wide, strict=True)
    placement, line = ("pooled", "whole")[seed % 2], ("strict", "fit")[seed // 2 % 2]
    return [PlainJob(f"j{k}", *row) for k, row in enumerate(rows)], placement, {"line": line}


def facts(outcome: Outcome) -> list[tuple[Any, ...]]:
    return [(job.start, job.end, job.waiting, job.restarts) for job in outcome.jobs]


@pytest.mark.parametrize("policy", [SRTF, SRSF, LAS, Gittins])
def test_the_second_room_may_be_made_late(policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    late, early = [], []
    for found in (late, early):
        if found is early:
            monkeypatch.setattr(preemptive, "PreemptiveCapacity", Eager)
        for seed in range(8):
            jobs, placement, options = drawn(seed)
            outcome = replay(rigid_workload(jobs, 2, 8, placement), policy(**options))
            found.append(facts(outcome))
    assert late == early
    assert any(restarts for run in late for *_, restarts in run), "nobody was displaced"
