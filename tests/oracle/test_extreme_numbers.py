"""Units, prices and counts far apart: the answer must not depend on what they are measured in."""

import pytest

import oasis
from offline import solve
from tests import builders


def small_unit(unit, jobs=3, demand=1.0):
    made = [builders.job(f"j{k}", gpus=demand * unit) for k in range(jobs)]
    return builders.instance(*made, horizon=1, on=builders.cluster(unit))


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-10, 1e-30, 1e20])
@pytest.mark.parametrize("method", ["milp", "bruteforce"])
def test_optimum_does_not_depend_on_the_unit(unit, method):
    """An absolute tolerance let three jobs share a server that holds one."""
    assert solve(small_unit(unit), method=method).objective == 1.0
    assert solve(small_unit(unit, demand=1.0009), method=method).objective == 0.0


@pytest.mark.parametrize("unit", [1.0, 1e-10])
def test_server_that_is_full_holds_no_more(unit):
    instance = small_unit(unit)
    schedules = {job.id: oasis.Schedule(job.id, [[0, 0, 1]], []) for job in instance.jobs}
    with pytest.raises(oasis.VerificationError, match=r"\(4\)"):
        oasis.verify(instance, schedules)


def test_demand_for_a_resource_that_no_server_has_is_never_met():
    cluster = builders.cluster(worker={}, ps={"gpu": 1.0})
    instance = builders.instance(builders.job("j", gpus=1e-12), horizon=1, on=cluster)
    assert solve(instance, method="bruteforce").objective == 0.0
    with pytest.raises(oasis.VerificationError):
        oasis.verify(instance, {"j": oasis.Schedule("j", [[0, 0, 1]], [])})


def test_many_more_chunks_than_fit_cost_no_memory():
    instance = builders.instance(builders.job(workers=10**9, minibatch_time=0.25))
    decision = oasis.OASiS.from_instance(instance).quote(instance.jobs[0])
    assert decision.reason is not None
    assert decision.reason.startswith("no room")
