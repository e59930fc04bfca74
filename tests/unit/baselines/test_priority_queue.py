"""The autoscaler by scenarios: each branch of its procedures, and where readings differ."""

from dataclasses import replace

from baselines.fair_shares import MachineShares
from baselines.priority_queue import PriorityQueue
from oasis import Constant, Sigmoid
from oasis.simulator import Machine, Site
from tests.unit.baselines.controllers import engine, job


def worth(value, each):
    return replace(each, utility=Constant(float(value)))


# --- weighting ----------------------------------------------------------------------------------


def line(*jobs, **site):
    """The waiting jobs in the order of the queue, behind one that fills the machine."""
    full = worth(99, job("full", 4))
    run = engine(PriorityQueue(), full, *jobs, **site)
    return [each.id for each in sorted(run.policy._queue, key=run.policy.weighting)]


def test_the_utility_of_a_job_is_what_it_is_worth_without_delay():
    late = replace(job("late", 1), utility=Sigmoid(10.0, 1.0, 50.0))
    soon = replace(job("soon", 1), utility=Sigmoid(10.0, 1.0, 0.0))
    assert line(soon, late) == ["late", "soon"]


def test_cores_and_servers_count_in_the_request():
    site = Site(("memory",), (Machine("n0", (10.0,), cpu_cores=8.0),))
    assert MachineShares(site, "worker").of(((0, 2),), 4.0, 3) == [0.6, 1.5]
    assert line(job("a", 1), job("b", 1, ps=0), replace(job("c", 1, ps=2), ps=((0, 1),))) == [
        "c",
        "a",
        "b",
    ]
