"""Speed of training: scaling, links and shared cores, against formulas worked out by hand."""

import pytest

from oasis.simulator import Allocation, Machine, PolicyJob, Site
from oasis.simulator.speed import (
    Communication,
    CpuSharing,
    Linear,
    Load,
    ScalingTable,
    TrainingSpeed,
)

APART = Allocation(((0, 1),), ((1, 1),))


def machines(*links, cores=float("inf"), seconds=1.0):
    made = tuple(
        Machine(f"n{k}", (4.0, 8.0), link_gbps=link, cpu_cores=cores)
        for k, link in enumerate(links)
    )
    return Site(("gpu", "memory_gb"), made, seconds)


def job(name="a", work=10.0, ps=1, **changes):
    given = {
        "max_workers": 4,
        "fixed_ps": ps,
        "gradient_mb": 100.0,
        "step_time": 0.4,
    } | changes
    return PolicyJob(name, 0.0, work, ((0, 1),), ((1, 1),), **given)


@pytest.mark.parametrize(
    ("allocation", "ps", "links", "delay"),
    [
        (APART, 1, (1.0, 10.0), 1.6),  # the slower link decides
        (APART, 1, (10.0, 10.0), 0.16),
        (Allocation(((0, 2),), ((1, 1),)), 1, (1.0, 1.0), 3.2),  # two gradients through one link
        (Allocation(((0, 1), (1, 1)), ((1, 1),)), 1, (1.0, 1.0), 1.6),
        (Allocation(((0, 2),), ((0, 1), (1, 1))), 2, (1.0, 1.0), 1.6),  # halves of two gradients
        (Allocation(((0, 2),), ((0, 1),)), 1, (1.0, 1.0), 0.0),
        (Allocation(((0, 1), (1, 1))), 0, (1.0, 1.0), 0.8),  # a ring: 2 (n - 1) / n gradients
        (Allocation(((0, 2),)), 0, (1.0, 1.0), 0.0),
    ],
)
def test_traffic_of_a_step(allocation, ps, links, delay):
    found = Communication().step_delay(job(ps=ps), allocation, Load(machines(*links)))
    assert found == pytest.approx(delay)
    minutes = Load(machines(*links, seconds=60.0))
    assert Communication().step_delay(job(ps=ps), allocation, minutes) == pytest.approx(delay / 60)


def test_jobs_may_share_links():
    load = Load(machines(1.0, 1.0))
    load.add(job("a"), APART)
    load.add(PolicyJob("b", 0.0, 1.0, ((0, 1),), index=1), Allocation(((0, 1),)))
    assert Communication(share_links=True).step_delay(job(), APART, load) == pytest.approx(3.2)
    assert TrainingSpeed(communication=Communication(True), sharing=None).coupled
    assert not TrainingSpeed(sharing=None).coupled


def test_a_job_waits_for_its_slowest_task():
    load = Load(machines(1.0, 1.0, cores=4.0))
    busy = job(worker_cpu=3.0, ps_cpu=1.0)
    load.add(busy, Allocation(((0, 1), (1, 2)), ((0, 1),)))
    assert load.cpu == [4.0, 6.0]
    assert CpuSharing().factor(busy, Allocation(((0, 1), (1, 2)), ((0, 1),)), load) == 4 / 6
    idle = job("b")
    assert CpuSharing().factor(idle, Allocation(((1, 1),)), load) == 1.0
    load.remove(busy, Allocation(((0, 1), (1, 2)), ((0, 1),)))
    assert (load.cpu, load.tasks, load.tenants) == ([0.0, 0.0], [0, 0], [0, 0])


def test_the_parts_are_put_together():
    """s f / (1 + s f x / (n c)) with s = 1.6, f = 1/2, x = 3.2, n = 2, c = 0.4."""
    made = job(worker_cpu=4.0)
    load = Load(machines(1.0, 1.0, cores=4.0))
    held = Allocation(((0, 2),), ((1, 1),))
    load.add(made, held)
    speed = TrainingSpeed(ScalingTable({"a": (1.0, 1.6)}))
    assert speed.rate(made, held, load) == pytest.approx(0.8 / (1 + 0.8 * 3.2 / 0.8))
    assert TrainingSpeed(Linear(), None, None).rate(made, held, load) == 2.0


@pytest.mark.parametrize(
    "held", [Allocation(((0, 1),)), Allocation((), ((0, 1),)), Allocation(((0, 1),), ((0, 2),))]
)
def test_an_incomplete_gang_does_no_work(held):
    assert TrainingSpeed().rate(job(), held, Load(machines(1.0))) == 0.0
