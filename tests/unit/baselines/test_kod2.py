"""KOD2 by scenarios: each branch of its algorithms."""

from baselines import KubernetesDefault
from baselines.counts import on_node
from baselines.fair_shares import MachineShares
from baselines.kod2 import JobState, Kod2, weight_of
from oasis.simulator import Allocation, Machine, PolicyJob, Room, Site, replay
from tests.unit.baselines.controllers import engine, job, workers, workload


def states(run, *jobs):
    known = {progress.job.id: progress.job for progress in run.settled.values()}
    known |= {progress.job.id: progress.job for progress in run.state.jobs.values()}
    return [run.policy.state_of(known[name]) for name in jobs]


# --- weights ------------------------------------------------------------------------------------


def test_more_workers_weigh_more_and_larger_demands_less():
    site = Site(("gpu", "memory"), (Machine("n0", (4.0, 64.0), cpu_cores=8.0),))

    def raw(least, gpus, memory, cores=0.0):
        one = PolicyJob("a", 0.0, 1.0, ((0, gpus), (1, memory)), (), least, 9, worker_cpu=cores)
        return weight_of(MachineShares(site, "worker"), one)

    assert raw(2, 1, 8) > raw(1, 1, 8) > raw(1, 1, 16)
    assert raw(1, 1, 8) > raw(1, 1, 8, cores=2.0)
    assert raw(1, 1, 16, cores=4.0) == 1 / (0.25 + 0.25 + 0.5)


# --- launching ----------------------------------------------------------------------------------


def test_a_job_that_ended_is_completed_and_the_next_one_starts():
    run = engine(Kod2(), job("a", 4, work=40.0), job("b", 4), until=10.0)
    assert workers(run) == {"b": {0: 4}}
    assert states(run, "a", "b") == [JobState.COMPLETED, JobState.RUNNING]


# --- starvation ---------------------------------------------------------------------------------


def test_a_job_that_starves_and_finds_no_room_says_so_and_stops_the_queue():
    jobs = [job("a", 3), job("b", 2, arrival=1.0), job("c", 1, arrival=50.0)]
    run = engine(Kod2(40.0), *jobs, until=50.0)
    assert workers(run) == {"a": {0: 3}, "b": {}, "c": {}}
    assert states(run, "b", "c") == [JobState.STARVING, JobState.WAITING]


# --- scale-in, scale-out and placement ----------------------------------------------------------


def test_where_machines_host_one_kind_the_servers_find_their_own():
    kinds = [frozenset({"worker"}), frozenset({"ps"})]
    machines = tuple(Machine(f"n{k}", (4.0,), kinds[k]) for k in range(2))
    there = Room(Site(("gpu",), machines), [(2,), (1,)])
    one = PolicyJob("a", 0.0, 1.0, ((0, 1),), ((0, 1),))
    assert on_node(there, one, 2, 2, 0) is None
    assert on_node(there, one, 2, 1, 0) == Allocation(((0, 2),), ((1, 1),))


# --- the rival ----------------------------------------------------------------------------------


def test_the_operator_without_gangs_deadlocks_where_kod2_does_not():
    jobs = [job("a", 3, work=30.0), job("b", 3, work=30.0)]
    stuck = replay(workload(*jobs, partial_gangs=True), KubernetesDefault())
    assert stuck.completions == []
    assert replay(workload(*jobs, partial_gangs=True), Kod2()).completions == [10.0, 20.0]
