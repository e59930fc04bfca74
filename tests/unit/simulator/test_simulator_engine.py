"""The event loop on cases worked out by hand."""

import pickle

import pytest

from baselines import EASY
from oasis import Instance, PolicyError
from oasis.simulator import NOTHING, Allocation, Machine, Outage, PlainJob, Plan, PolicyJob, Site
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.engine import Engine
from oasis.simulator.run import replay
from oasis.simulator.speed import ScalingTable
from oasis.simulator.workload import Workload, rigid_workload_on

ON_A = Allocation(((0, 1),))
ON_B = Allocation(((1, 1),))
TWO = Allocation(((0, 2),))


class Script:
    """Answers by time; records what it was told."""

    name = "script"

    def __init__(self, plans, slotted=False):
        self.plans, self.slotted, self.parameters = plans, slotted, {}

    def reset(self, site):
        self.site, self.seen, self.asked = site, [], []

    def decide(self, view):
        names = [[job.id for job in jobs] for jobs in (view.finished, view.evicted, view.arrived)]
        self.seen.append((view.now, *names))
        self.asked.append(view.now)
        plan = self.plans.get(view.now, Plan())
        return plan(view) if callable(plan) else plan


def job(name="a", arrival=0.0, work=4.0, **changes):
    return PolicyJob(name, arrival, work, **({"worker": ((0, 1),), "max_workers": 4} | changes))


def workload(*jobs, machines=(2.0, 2.0), **site):
    made = tuple(Machine(f"m{k}", (float(size),)) for k, size in enumerate(machines))
    return Workload.of(Site(("gpu",), made, **site), jobs or (job(),))


def only(outcome):
    (times,) = outcome.jobs
    return times


def test_at_one_instant_completions_come_before_arrivals_and_the_policy_is_asked_once():
    policy = Script({0.0: Plan({0: ON_A, 1: ON_B})})
    replay(workload(job("a"), job("b"), job("c", 4.0), job("d", 4.0)), policy)
    assert policy.seen == [(0.0, [], [], ["a", "b"]), (4.0, ["a", "b"], [], ["c", "d"])]


def test_at_one_instant_a_job_completes_before_its_machine_is_lost():
    policy = Script({0.0: Plan({0: ON_A})})
    outcome = replay(workload(), policy, outages=[Outage(0, 4.0)])
    assert only(outcome).end == 4.0
    assert policy.seen == [(0.0, [], [], ["a"]), (4.0, ["a"], [], [])]


def test_jobs_of_one_instant_arrive_in_the_order_of_the_file():
    policy = Script({})
    replay(workload(job("late", 1.0), job("z", 0.0), job("y", 0.0)), policy)
    assert policy.seen == [(0.0, [], [], ["z", "y"]), (1.0, [], [], ["late"])]


def test_work_goes_on_at_the_new_speed_after_a_resize():
    policy = Script({0.0: Plan({0: ON_A}, wake_at=1.0), 1.0: Plan({0: TWO})})
    times = only(replay(workload(), policy))
    assert (times.start, times.end, times.running, times.waiting) == (0.0, 2.5, 2.5, 0.0)


def test_a_pause_keeps_the_progress_and_counts_as_waiting():
    plans = {
        0.0: Plan({0: ON_A}, wake_at=1.0),
        1.0: Plan({0: NOTHING}, wake_at=5.0),
        5.0: Plan({0: ON_B}),
    }
    times = only(replay(workload(), Script(plans)))
    assert (times.end, times.running, times.waiting) == (8.0, 4.0, 4.0)


@pytest.mark.parametrize(
    ("after", "costs", "end"),
    [
        (ON_B, ChangeCosts(start=2.0), 6.0),
        (ON_B, ChangeCosts(migrate=3.0), 7.0),
        (TWO, ChangeCosts(resize=0.5), 3.0),
        (ON_A, ChangeCosts(resize=9.0, migrate=9.0, resume=9.0), 4.0),
        (ON_B, ChangeCosts(resize=9.0, resume=9.0), 4.0),
    ],
)
def test_changes_cost_their_time(after, costs, end):
    policy = Script({0.0: Plan({0: ON_A}, wake_at=1.0), 1.0: Plan({0: after})})
    times = only(replay(workload(), policy, costs=costs))
    assert times.end == end
    assert times.running + times.overhead == end


def test_a_resumed_job_pays_for_resuming_not_for_starting():
    plans = {
        0.0: Plan({0: ON_A}, wake_at=1.0),
        1.0: Plan({0: NOTHING}, wake_at=2.0),
        2.0: Plan({0: ON_A}),
    }
    times = only(replay(workload(), Script(plans), costs=ChangeCosts(start=0.5, resume=3.0)))
    assert (times.overhead, times.end) == (3.5, 8.5)


def test_a_change_during_the_setup_does_not_shorten_it():
    policy = Script({0.0: Plan({0: ON_A}, wake_at=1.0), 1.0: Plan({0: TWO})})
    times = only(replay(workload(), policy, costs=ChangeCosts(start=5.0)))
    assert (times.overhead, times.end) == (5.0, 7.0)


def test_a_lost_server_evicts_and_its_return_is_announced():
    def resume(view):
        assert view.free() == [(0,), (2,)]
        assert view.lost == [0]
        return Plan({0: ON_B})

    policy = Script({0.0: Plan({0: ON_A}), 1.0: resume})
    outcome = replay(workload(), policy, outages=[Outage(0, 1.0, 2.0)])
    assert policy.seen[1:3] == [(1.0, [], ["a"], []), (2.0, [], [], [])]
    assert only(outcome).end == 4.0


@pytest.mark.parametrize("placement", ["pooled", "whole"])
def test_others_have_their_gpus_as_soon_as_these_are_free(placement):
    jobs = [
        PlainJob("a", 0.0, 100.0, 8),
        PlainJob("b", 10.0, 50.0, 4),
        PlainJob("c", 20.0, 10.0, 2),
    ]
    held = ((-5.0, 60.0, 6), (30.0, 60.0, 4))
    found = replay(rigid_workload_on(jobs, [8, 8], placement, held), EASY())
    assert [job.start for job in found.jobs] == [0.0, 60.0, 20.0]
    found = replay(rigid_workload_on(jobs[2:], [2, 2], placement, ((15.0, 99.0, 4),)), EASY())
    assert (found.jobs[0].start, found.until) == (99.0, 109.0)


def test_a_timer_is_replaced_by_the_next_answer():
    policy = Script({0.0: Plan(wake_at=3.0), 1.0: Plan(wake_at=2.0)})
    replay(workload(job(), job("b", 1.0)), policy)
    assert policy.asked == [0.0, 1.0, 2.0]


def test_slotted_policies_are_woken_in_every_slot_until_the_horizon():
    policy = Script({}, slotted=True)
    replay(workload(slotted=True, horizon=4.0), policy)
    assert policy.asked == [0.0, 1.0, 2.0, 3.0]


def test_in_slots_a_job_holds_its_machines_to_the_end_of_the_slot_in_which_it_finishes():
    policy = Script({0.0: Plan({0: TWO}, wake_at=0.3)})
    outcome = replay(workload(job(work=5.0), slotted=True, horizon=9.0), policy)
    assert only(outcome).end == 2.5
    assert policy.asked == [0.0, 1.0, 3.0]
    assert outcome.timeline == ((0.0, (2, 0)), (3.0, (0, 0)))


def test_what_does_not_finish_within_the_horizon_has_no_end():
    outcome = replay(workload(slotted=True, horizon=3.0), Script({0.0: Plan({0: ON_A})}))
    times = only(outcome)
    assert (times.end, times.running, times.completion) == (None, 3.0, None)
    assert outcome.mean_completion is None


def test_rejected_jobs_leave_and_release():
    plans = {0.0: Plan({0: TWO}, wake_at=1.0), 1.0: Plan({1: TWO}, {0: "too dear"})}
    outcome = replay(workload(job("a"), job("b")), Script(plans))
    assert [times.end for times in outcome.jobs] == [None, 3.0]
    assert outcome.jobs[0].refusal == "too dear"


def test_a_scaling_table_bends_the_speed_and_spreading_slows():
    speed = ScalingTable({"a": (1.0, 1.6)}, spread=0.5)
    policy = Script({0.0: Plan({0: TWO})})
    assert only(replay(workload(), policy, speed=speed)).end == 2.5
    policy = Script({0.0: Plan({0: Allocation(((0, 1), (1, 1)))})})
    assert only(replay(workload(), policy, speed=speed)).end == 5.0


def test_jobs_that_share_a_machine_slow_each_other_until_one_leaves():
    policy = Script({0.0: Plan({0: ON_A, 1: ON_A})})
    outcome = replay(
        workload(job("a", work=2.0), job("b")), policy, speed=ScalingTable({}, sharing=1.0)
    )
    assert [times.end for times in outcome.jobs] == [4.0, 6.0]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            Plan({0: Allocation(((0, 3),))}),
            r"\[job a, server m0, resource gpu\]: more than is free",
        ),
        (Plan({7: ON_A}), r"\[job 7\]: expected the index of an unfinished job"),
        (Plan({0: ON_A}, {0: "no"}), "both changed and rejected"),
        (Plan(wake_at=0.0), "wake_at: expected a finite time after 0, got 0.0"),
        (None, "expected a Plan, got None"),
    ],
)
def test_what_cannot_run_is_refused_whole(plan, message):
    engine = Engine(workload(), Script({0.0: plan}))
    with pytest.raises(PolicyError, match=message) as caught:
        engine.step()
    assert caught.value.policy == "script"
    assert engine.state.free == [(2,), (2,)]
    assert engine.state.jobs[0].history == []


def test_a_refused_plan_leaves_its_legal_parts_undone():
    plan = Plan({0: ON_A, 1: Allocation(((1, 3),))})
    engine = Engine(workload(job("a"), job("b")), Script({0.0: plan}))
    with pytest.raises(PolicyError, match=r"job b, server m1, resource gpu"):
        engine.step()
    assert engine.state.free == [(2,), (2,)]


def test_refusals_survive_pickling():
    error = PolicyError("p", "is down", job="a", server="m0")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_a_plan_may_exchange_jobs_on_a_full_server():
    plans = {0.0: Plan({0: TWO}, wake_at=1.0), 1.0: Plan({1: TWO, 0: NOTHING})}
    outcome = replay(workload(job("a"), job("b")), Script(plans))
    assert outcome.jobs[1].end == 3.0


def test_an_instance_without_jobs_runs():
    from oasis import Cluster, Server

    cluster = Cluster(("gpu",), (Server("w", {"gpu": 1}),), (Server("p", {"gpu": 1}),), 1.0)
    outcome = replay(Workload.from_instance(Instance(3, cluster, ())), Script({}))
    assert outcome.jobs == ()
    assert outcome.utilisation["worker"]["gpu"] == 0.0
