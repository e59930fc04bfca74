"""SpeCon by scenarios: each branch of its algorithms, and where text and print differ."""

import pytest

from baselines import FIFO
from baselines.specon import (
    Category,
    Container,
    InTurn,
    SpeCon,
)
from oasis.simulator import (
    ChangeCosts,
    Engine,
    Machine,
    Observation,
    Outage,
    PolicyJob,
    Room,
    Site,
    TrainingCurve,
    TrainingSpeed,
    Workload,
    replay,
)

PC, WC, CC = Category


def looked_at(*values, alpha=0.01):
    """A container after looks at these values, and whether it asked to be moved at each."""
    container = Container(PolicyJob("a", 0.0, 1.0, ()))
    return container, [container.look(v, alpha, 10.0 * k) for k, v in enumerate(values)]


# --- Algorithm 1: the container monitor ---------------------------------------------------------


def test_a_growth_of_exactly_alpha_changes_nothing():
    assert looked_at(1.0, 0.75, 0.625, 0.5, alpha=0.125)[0].category is PC
    assert looked_at(1.0, 0.5, 0.375, 0.3125, 0.1875, alpha=0.125)[0].category is WC


def test_one_look_shows_no_growth():
    assert looked_at(0.3)[0].category is PC
    assert looked_at(0.3, 0.3)[0].category is WC  # slower than nothing seen before


def test_a_container_that_lost_its_worker_progresses_again_unless_it_was_decided_on():
    container, _ = looked_at(1.0, 0.5, 0.495, 0.492)
    container.migrated = True
    container.begin_again()
    assert container.category is CC
    container.migrated = False
    container.begin_again()
    assert (container.category, container.value, container.converged_at) == (PC, None, None)


# --- the initial placement ----------------------------------------------------------------------


def test_nothing_goes_to_a_machine_that_is_down():
    room = Room(Site(("memory",), tuple(Machine(n, (1.0,)) for n in "ab")), [(0,), (1,)], {0})
    assert InTurn().place(room, PolicyJob("j", 0.0, 1.0, ()), 1, 0).workers == ((1, 1),)


# --- the whole policy ---------------------------------------------------------------------------

FAST = TrainingCurve.exponential(1.0, 0.1, 40.0)  # converged after a fifth of its work
STEADY = TrainingCurve(((0.0, 1.0), (1.0, 0.0)))


def container(name, work, curve=STEADY, arrival=0.0, cpu=1.0, **more):
    return PolicyJob(name, arrival, work, (), worker_cpu=cpu, curve=curve, **more)


def run(policy, *jobs, workers=2, until=float("inf"), observed=True, **options):
    machines = tuple(Machine(f"w{k}", (1.0,), cpu_cores=1.0) for k in range(workers))
    site = Site(("memory",), machines)
    look = Observation(10.0) if observed else None
    options = {"speed": TrainingSpeed(), "observation": look, **options}
    engine = Engine(Workload.of(site, jobs), policy, **options)
    while engine.step(until):
        pass
    return engine


def mixed():
    """The first converges early, on a worker with two others; the second worker is soon idle."""
    others = [container("short", 2.0), container("x", 50.0), container("short2", 2.0)]
    return [container("fast", 200.0, FAST), *others, container("y", 50.0), container("s3", 2.0)]


def test_who_shares_the_cpu_with_it_gains_by_the_move():
    ends = [
        {p.job.id: p.end for p in run(policy, *mixed()).settled.values()}
        for policy in (FIFO(placement="round-robin"), SpeCon(0.01, 10.0))
    ]
    assert ends[1]["x"] < ends[0]["x"]
    assert ends[1]["y"] < ends[0]["y"]


def test_saving_and_resuming_takes_the_time_that_the_workload_says():
    free, dear = (
        run(SpeCon(0.01, 10.0), *mixed(), costs=costs).settled[0]
        for costs in (None, ChangeCosts(save=2.0, migrate=2.5))
    )
    assert dear.changes == ("migrate",) * len(dear.changes)
    assert dear.changes
    assert dear.overhead == pytest.approx(free.overhead + 4.5 * len(dear.changes))


def test_without_evaluations_nothing_moves_and_the_policy_is_not_called_for_nothing():
    policy = SpeCon(0.01, 10.0)
    engine = run(policy, *mixed(), observed=False)
    assert policy.log == []
    assert len(engine.policy_seconds) <= 1 + len(mixed())


def test_with_a_threshold_of_zero_it_is_the_default_scheduler():
    jobs = [container(f"j{k}", 40.0 + 7 * k, FAST, arrival=5.0 * k) for k in range(9)]
    ends = [
        [progress.end for _, progress in sorted(run(policy, *jobs).settled.items())]
        for policy in (SpeCon(0.0, 10.0), FIFO(placement="round-robin"))
    ]
    assert ends[0] == ends[1]


def test_containers_of_a_lost_worker_go_to_the_others_and_nothing_comes_back_until_it_does():
    jobs = [container(n, 30.0) for n in "abcd"]
    engine = run(SpeCon(0.01, 10.0), *jobs, until=20.0, outages=[Outage(0, 5.0, 50.0)])
    homes = [dict(progress.allocation.workers) for progress in engine.state.jobs.values()]
    assert homes == [{1: 1}] * 4


def test_a_container_with_a_server_stays_where_machines_take_both():
    kinds = [frozenset(("worker", "ps")), frozenset(("worker",))]
    machines = tuple(Machine(f"w{k}", (1.0,), kinds[k], cpu_cores=1.0) for k in range(2))
    jobs = [container("fast", 200.0, FAST, fixed_ps=1), container("y", 2.0)]
    jobs += [container("x", 90.0, fixed_ps=1), container("z", 90.0, fixed_ps=1)]
    policy = SpeCon(0.01, 10.0)
    work = Workload.of(Site(("memory",), machines), jobs)
    replay(work, policy, speed=TrainingSpeed(), observation=Observation(10.0))
    assert [move.kind for move in policy.log][:1] == ["stayed"]
