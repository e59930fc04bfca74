"""SpeCon by scenarios: each branch of its algorithms, and where text and print differ."""

import pytest

from baselines import FIFO
from baselines.specon import (
    Category,
    Container,
    InTurn,
    SpeCon,
    choose_host,
    rebalance,
    worker_score,
)
from oasis.simulator import (
    ChangeCosts,
    Engine,
    FixedPs,
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
WEIGHTS = {PC: 2.0, WC: 1.5, CC: 1.0}


def looked_at(*values, alpha=0.01):
    """A container after looks at these values, and whether it asked to be moved at each."""
    container = Container(PolicyJob("a", 0.0, 1.0, ()))
    return container, [container.look(v, alpha, 10.0 * k) for k, v in enumerate(values)]


# --- Algorithm 1: the container monitor ---------------------------------------------------------


def test_a_slow_container_is_watched_then_converged_and_then_asks():
    values = (1.0, 0.5, 0.495, 0.492, 0.490, 0.489)
    found = [looked_at(*values[:count]) for count in range(3, 7)]
    assert [container.category for container, _ in found] == [WC, CC, CC, CC]
    assert [asked[-1] for _, asked in found] == [False, False, True, True]
    assert found[-1][0].converged_at == 30.0


def test_a_container_stays_while_it_is_slow_but_no_slower_than_before():
    assert looked_at(1.0, 0.5, 0.495, 0.489)[0].category is WC  # faster than before
    assert looked_at(1.0, 0.5, 0.495, 0.490)[0].category is not CC
    assert looked_at(1.0, 0.5, 0.5, 0.5, 0.5)[0].category is WC  # as fast as before: not at all


def test_a_container_that_speeds_up_progresses_again():
    slow = (1.0, 0.5, 0.495, 0.492)
    container, asked = looked_at(*slow, 0.4)
    assert (container.category, container.converged_at, any(asked)) == (PC, None, False)
    assert looked_at(*slow[:3], 0.4)[0].category is PC


def test_a_growth_of_exactly_alpha_changes_nothing():
    assert looked_at(1.0, 0.75, 0.625, 0.5, alpha=0.125)[0].category is PC
    assert looked_at(1.0, 0.5, 0.375, 0.3125, 0.1875, alpha=0.125)[0].category is WC


def test_one_look_shows_no_growth():
    assert looked_at(0.3)[0].category is PC
    assert looked_at(0.3, 0.3)[0].category is WC  # slower than nothing seen before


def test_evaluation_functions_may_rise_and_have_any_unit():
    rising = (100.0, 500.0, 504.0, 506.0)
    assert looked_at(*rising)[0].category is CC
    assert looked_at(*rising, alpha=0.005)[0].category is WC


def test_algorithm_1_as_printed_never_lets_a_container_converge():
    """Lines 10-12 repeat the watching branch, where the text has watching to converged."""

    def printed(category, slower):
        if slower and category == "PC":
            category = "WC"
        if slower and category == "WC":
            category = "WC"  # lines 11 and 12
        return category

    category = "PC"
    for _ in range(9):
        category = printed(category, slower=True)
    assert category == "WC"
    assert looked_at(1.0, 0.5, 0.495, 0.492)[0].category is CC


def test_a_container_goes_one_step_at_a_look():
    """Looked at one after the other, lines 7 and 10 would take it from PC to CC at once."""
    assert looked_at(1.0, 0.5, 0.495)[0].category is WC


def test_a_container_that_lost_its_worker_progresses_again_unless_it_was_decided_on():
    container, _ = looked_at(1.0, 0.5, 0.495, 0.492)
    container.migrated = True
    container.begin_again()
    assert container.category is CC
    container.migrated = False
    container.begin_again()
    assert (container.category, container.value, container.converged_at) == (PC, None, None)


# --- Algorithm 2: where a container goes --------------------------------------------------------


def on(*workers):
    """Containers of these categories on workers 0, 1 .., and the mapping that the manager has."""
    made, index = {}, 0
    for worker, categories in enumerate(workers):
        made[worker] = []
        for category in categories:
            job = PolicyJob(f"c{index}", 0.0, 1.0, (), index=index)
            there = Container(job)
            there.home, there.category, there.converged_at = worker, category, 0.0
            made[worker].append(there)
            index += 1
    return made


def chosen(workers, room=lambda *_: True, usage=lambda worker: 0.0):
    made = on(*workers)
    return choose_host(made[0][0], made, WEIGHTS, room, usage)


def test_the_score_weighs_the_categories():
    assert worker_score(on([PC, PC, WC, CC])[0], WEIGHTS) == 6.5
    assert worker_score([], WEIGHTS) == 0.0


def test_it_goes_to_the_lowest_score():
    assert chosen([[CC, PC, PC], [PC, PC], [PC, CC]]) == 2


def test_it_stays_when_its_own_worker_is_among_the_lowest():
    assert chosen([[CC, WC, WC], [PC, PC], [CC] * 4]) is None


def test_among_equal_scores_the_least_used_worker_is_taken():
    workers = [[CC, PC, PC], [PC, CC], [CC, CC, CC], [PC, PC]]
    assert chosen(workers, usage=lambda worker: -worker) == 2
    assert chosen(workers) == 1


def test_a_worker_without_room_is_no_candidate():
    workers = [[CC, PC, PC], [CC], [PC, PC], [PC, PC, CC]]
    assert chosen(workers, room=lambda _, worker: worker != 1) == 2
    assert chosen(workers, room=lambda _, worker: worker == 3) is None


# --- Algorithm 3: rebalancing -------------------------------------------------------------------


def evened(*workers, since=None, room=lambda *_: True):
    made, moves = on(*workers), []
    for containers in made.values():
        for each in containers:
            each.converged_at = (since or {}).get(each.job.id, 0.0)

    def move(container, worker):
        moves.append((container.job.id, worker))
        container.home = worker

    rebalance(made, 100.0, move, room)
    return moves


def test_an_idle_worker_takes_what_converged_last():
    assert evened([CC, CC], [], [CC], since={"c1": 50.0}) == [("c1", 1)]
    assert evened([CC, CC, CC, CC], [], [], since={"c1": 50.0, "c3": 60.0}) == [
        ("c3", 1),
        ("c1", 2),
    ]


def test_with_fewer_containers_than_workers_nobody_moves():
    assert evened([CC, CC], [], []) == []


def test_a_worker_with_fewer_than_the_factor_less_one_takes_one_from_the_others():
    # factor 4: the last worker has 2 < 3; the second has 3
    workers = [[CC] * 7, [CC] * 3, [CC] * 2]
    assert evened(*workers, since={"c11": 90.0, "c8": 50.0}) == [("c8", 2)]
    assert evened([CC] * 5, [CC] * 3, [CC] * 3) == []  # factor 3


def test_as_printed_one_container_would_go_to_every_worker_with_room():
    """Lines 23-25 find one container, which lines 26-31 move to each worker of T."""
    moves = evened([CC] * 14, [CC], [CC])
    assert [worker for _, worker in moves] == [1, 2]
    assert len({name for name, _ in moves}) == 2


def test_only_containers_that_have_converged_are_rebalanced():
    assert evened([PC, CC, WC], []) == [("c1", 1)]
    assert evened([PC, WC], []) == []


def test_nobody_is_rebalanced_twice_or_where_there_is_no_room():
    made, moves = on([CC, CC], []), []
    for each in made[0]:
        each.rebalanced = True
    rebalance(made, 1.0, lambda *move: moves.append(move), lambda *_: True)
    assert moves == []
    assert evened([CC, CC], [], room=lambda *_: False) == []


# --- the initial placement ----------------------------------------------------------------------


def test_containers_take_turns_and_pass_over_full_workers():
    room = Room(Site(("gpu",), tuple(Machine(n, (4.0,)) for n in "abc")), [(2,), (1,), (4,)])
    rule, two = InTurn(), PolicyJob("j", 0.0, 1.0, ((0, 1),), (), 2, 2)
    assert [rule.place(room, two, 2, 0) and room.free for _ in range(2)]
    assert room.free == [(0,), (1,), (2,)]


def test_a_job_larger_than_any_worker_is_spread_and_another_waits():
    room = Room(Site(("gpu",), tuple(Machine(n, (4.0,)) for n in "ab")), [(4,), (3,)])
    job = PolicyJob("j", 0.0, 1.0, ((0, 1),), (), 1, 9)
    assert InTurn().place(room, job, 5, 0).workers == ((0, 3), (1, 2))
    assert room.free == [(1,), (1,)]
    assert InTurn().place(room, job, 2, 0) is None


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
    while engine._agenda.next_time <= until and engine.step():
        pass
    return engine


def mixed():
    """The first converges early, on a worker with two others; the second worker is soon idle."""
    others = [container("short", 2.0), container("x", 50.0), container("short2", 2.0)]
    return [container("fast", 200.0, FAST), *others, container("y", 50.0), container("s3", 2.0)]


def test_a_converged_container_moves_once_to_the_better_worker():
    policy = SpeCon(0.01, 10.0, rebalancing="converged")
    run(policy, *mixed())
    assert [move.kind for move in policy.log if move.job == "fast"][:1] == ["migrated"]
    first = next(move for move in policy.log if move.job == "fast")
    assert (first.origin, first.target) == (0, 1)
    assert sum(move.kind != "rebalanced" for move in policy.log if move.job == "fast") == 1


def test_who_shares_the_cpu_with_it_gains_by_the_move():
    ends = [
        {p.job.id: p.end for p in run(policy, *mixed()).settled.values()}
        for policy in (FIFO(placement="round-robin"), SpeCon(0.01, 10.0))
    ]
    assert ends[1]["x"] < ends[0]["x"]
    assert ends[1]["y"] < ends[0]["y"]


def test_alone_or_beside_one_other_it_does_not_ask():
    policy = SpeCon(0.01, 10.0, rebalancing="converged")
    run(policy, container("fast", 200.0, FAST), container("s", 2.0), container("x", 200.0))
    assert policy.log == []


def test_line_15_may_count_in_the_whole_cluster():
    """Printed without its worker: two others anywhere that still make progress then suffice."""
    jobs = [container("fast", 200.0, FAST), container("s", 2.0), container("x", 200.0)]
    kinds = {}
    for counted in ("worker", "cluster"):
        policy = SpeCon(0.01, 10.0, counted=counted, rebalancing="converged")
        run(policy, *jobs, container("y", 100.0, cpu=0.1))
        kinds[counted] = [(move.kind, move.target) for move in policy.log]
    assert kinds == {"worker": [], "cluster": [("migrated", 1)]}


def test_the_move_is_used_up_when_it_stays():
    """All workers alike: it stays, and stays for good, though the others get better later."""
    policy = SpeCon(0.01, 10.0)
    jobs = [container("fast", 200.0, FAST), container("f2", 60.0)]
    jobs += [container(f"x{k}", 60.0) for k in range(4)]
    run(policy, *jobs, until=400.0)
    assert [(m.kind, m.origin, m.target) for m in policy.log if m.job == "fast"] == [
        ("stayed", 0, 0)
    ]


def test_when_all_have_converged_the_idle_worker_gets_the_one_that_did_so_last():
    policy = SpeCon(0.01, 10.0, rebalancing="converged")
    jobs = [container("a", 200.0, FAST), container("s", 20.0), container("b", 300.0, FAST)]
    run(policy, *jobs)
    assert [move[1:] for move in policy.log] == [("b", "rebalanced", 0, 1)]


def test_as_printed_rebalancing_does_not_wait_until_all_have_converged():
    """Beside one that still makes progress, "b" moves only without the condition."""
    jobs = [container("a", 200.0, FAST), container("s", 20.0), container("b", 300.0, FAST)]
    kinds = {}
    for rebalancing in ("converged", "always"):
        policy = SpeCon(0.01, 10.0, rebalancing=rebalancing)
        run(policy, *jobs, container("t", 20.0), container("y", 250.0), until=600.0)
        kinds[rebalancing] = [move.kind for move in policy.log if move.job == "b"]
    assert kinds == {"converged": [], "always": ["rebalanced"]}


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


def test_jobs_that_reserve_something_move_only_where_there_is_room():
    def reserving(name, work, curve=STEADY):
        return PolicyJob(name, 0.0, work, ((0, 1),), worker_cpu=1.0, curve=curve)

    jobs = [reserving("fast", 200.0, FAST), reserving("y", 150.0)]
    jobs += [reserving("x", 150.0), reserving("s", 2.0), reserving("z", 150.0)]
    for size, kinds in ((1.0, ["stayed"]), (4.0, ["migrated"])):
        machines = (Machine("a", (4.0,), cpu_cores=1.0), Machine("b", (size,), cpu_cores=1.0))
        policy = SpeCon(0.01, 10.0)
        work = Workload.of(Site(("slot",), machines), jobs)
        replay(work, policy, speed=TrainingSpeed(), observation=Observation(10.0))
        assert [move.kind for move in policy.log if move.job == "fast"][:1] == kinds


def test_a_parameter_server_moves_along():
    jobs = [container("fast", 200.0, FAST, ps_rule=FixedPs(1)), *mixed()[1:]]
    engine = run(SpeCon(0.01, 10.0), *jobs)
    held = [allocation for _, allocation in engine.settled[0].history if allocation.workers]
    assert all(allocation.workers == allocation.ps for allocation in held)
    assert len(held) > 1


def test_a_container_with_a_server_stays_where_machines_take_both():
    kinds = [frozenset(("worker", "ps")), frozenset(("worker",))]
    machines = tuple(Machine(f"w{k}", (1.0,), kinds[k], cpu_cores=1.0) for k in range(2))
    jobs = [container("fast", 200.0, FAST, ps_rule=FixedPs(1)), container("y", 2.0)]
    jobs += [container("x", 90.0, ps_rule=FixedPs(1)), container("z", 90.0, ps_rule=FixedPs(1))]
    policy = SpeCon(0.01, 10.0)
    work = Workload.of(Site(("memory",), machines), jobs)
    replay(work, policy, speed=TrainingSpeed(), observation=Observation(10.0))
    assert [move.kind for move in policy.log][:1] == ["stayed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -0.1}, "alpha: expected a number >= 0"),
        ({"interval": 0.0}, "interval: expected seconds > 0"),
        ({"weights": (2.0, 1.0)}, "weights: expected three numbers >= 0"),
        ({"counted": "node"}, "counted: expected worker or cluster, got 'node'"),
        ({"rebalancing": "never"}, "rebalancing: expected always or converged, got 'never'"),
        ({"weights": (2.0, 1.5, -1.0)}, "weights: expected three numbers >= 0"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SpeCon(**options)
