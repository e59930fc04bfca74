"""The plan of faults: the same seed draws the same, and every fault strikes once."""

from __future__ import annotations

import pytest

from tests.kubernetes.faults.plan import WRITES, Fault, FaultPlan

REQUESTS = [("GET", False), ("POST", False), ("GET", True), ("PATCH", False)] * 2000


def outcomes(plan: FaultPlan) -> list[Fault | None]:
    return [plan.next(method, watch=watch) for method, watch in REQUESTS]


def test_same_seed_gives_the_same_faults_to_the_same_requests():
    assert outcomes(FaultPlan.drawn(7, 200)) == outcomes(FaultPlan.drawn(7, 200))


def test_other_seed_gives_other_faults():
    assert outcomes(FaultPlan.drawn(7, 200)) != outcomes(FaultPlan.drawn(8, 200))


@pytest.mark.parametrize("seed", range(20))
def test_every_fault_strikes_once_and_only_what_can_meet_it(seed):
    plan = FaultPlan.drawn(seed, 100)
    planned = sorted(map(repr, [fault for _, fault in plan.requests + plan.watches]))
    struck = [
        (method, watch, fault)
        for (method, watch), fault in zip(REQUESTS, outcomes(plan), strict=True)
        if fault
    ]
    assert sorted(repr(fault) for _, _, fault in struck) == planned
    assert len(struck) == 100
    assert plan.left == 0
    for method, watch, fault in struck:
        assert watch == (fault.kind in {"cut", "gone"})
        assert method in WRITES or fault.kind != "lost"
        assert method in WRITES or fault.code != 409


def test_all_kinds_and_codes_are_drawn():
    faults = [fault for _, fault in FaultPlan.drawn(0, 300).requests]
    assert {fault.kind for fault in faults} == {"status", "delay", "hang", "reset", "lost"}
    assert {fault.code for fault in faults} == {0, 409, 429, 500, 503, 504}


def test_as_many_requests_pass_as_the_plan_says():
    plan = FaultPlan(requests=[(2, Fault("reset")), (1, Fault("lost"))])
    met = [plan.next(method, watch=False) for method in ("GET", "GET", "GET", "POST", "GET", "PUT")]
    assert [fault.kind if fault else "" for fault in met] == ["", "", "reset", "", "", "lost"]


def test_fault_of_a_watch_does_not_wait_for_requests():
    plan = FaultPlan.of(Fault("status", code=500), Fault("gone"))
    assert plan.next("GET", watch=True) == Fault("gone")
