"""Speed of training: scaling, links and shared cores, against formulas worked out by hand."""

import pytest

from oasis.simulator import Allocation, Machine, Plan, PolicyJob, Site
from oasis.simulator.run import replay
from oasis.simulator.speed import (
    Communication,
    CpuSharing,
    Linear,
    Load,
    ScalingTable,
    TrainingSpeed,
)
from oasis.simulator.workload import Workload

TOGETHER = Allocation(((0, 1),), ((0, 1),))
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


class Fixed:
    """Gives every job what it is told to at the beginning."""

    name, slotted, told_remaining, parameters = "fixed", False, False, {}

    def __init__(self, *allocations):
        self.allocations = allocations

    def reset(self, site):
        pass

    def decide(self, view):
        return Plan({job.index: self.allocations[job.index] for job in view.arrived})


def test_one_node_is_faster_than_two_by_what_link_and_gradient_say():
    """100 MB over 1 Gb/s take 0.8 s, and 0.8 s back, beside 0.4 s of computing: a fifth."""
    ends = [
        replay(Workload.of(machines(1.0, 1.0), [job()]), Fixed(how), speed=TrainingSpeed())
        .jobs[0]
        .end
        for how in (TOGETHER, APART)
    ]
    assert ends == pytest.approx([10.0, 10.0 * (0.4 + 1.6) / 0.4])


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


def test_cores_are_shared_in_proportion_until_a_job_leaves():
    """Two tasks that keep 6 cores busy each on 8 of them run at 8/12; alone, at full speed."""
    site = machines(1.0, cores=8.0)
    jobs = [
        PolicyJob(name, 0.0, work, ((0, 1),), worker_cpu=6.0)
        for name, work in (("a", 4.0), ("b", 6.0))
    ]
    one = Allocation(((0, 1),))
    outcome = replay(Workload.of(site, jobs), Fixed(one, one), speed=TrainingSpeed())
    assert [times.end for times in outcome.jobs] == pytest.approx([6.0, 8.0])


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
