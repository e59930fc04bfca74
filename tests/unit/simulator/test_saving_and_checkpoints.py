"""What changes cost: saving before machines come free, checkpoints, and how often it happened."""

import pytest

from oasis.simulator import (
    NOTHING,
    Allocation,
    Machine,
    Outage,
    Plan,
    PolicyJob,
    Site,
    TrainingCurve,
)
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.engine import Engine
from oasis.simulator.observation import Observation
from oasis.simulator.run import replay
from oasis.simulator.workload import Workload

ON_A, ON_B, TWO = Allocation(((0, 1),)), Allocation(((1, 1),)), Allocation(((0, 2),))


class Script:
    """Answers by time."""

    name, slotted, told_remaining, parameters = "script", False, False, {}

    def __init__(self, plans, watch=()):
        self.plans, self.watch = plans, watch

    def reset(self, site):
        self.seen = {}

    def decide(self, view):
        self.seen[view.now] = [list(view.observed(job) or ()) for job in view.jobs()]
        plan = self.plans.get(view.now, Plan())
        later = [time for time in (*self.plans, *self.watch) if time > view.now]
        plan.wake_at = min(later, default=None)
        return plan


def job(name="a", work=10.0, **changes):
    return PolicyJob(name, 0.0, work, ((0, 1),), **({"max_workers": 4} | changes))


def workload(*jobs, gpus=(2, 2)):
    made = tuple(Machine(f"m{k}", (float(size),)) for k, size in enumerate(gpus))
    return Workload.of(Site(("gpu",), made), jobs)


def test_machines_stay_busy_while_a_job_that_is_paused_saves():
    """a gives up both GPUs at 4 and saves until 7; b, of 6 s, cannot begin before."""
    plans = {0.0: Plan({0: TWO}), 4.0: Plan({0: NOTHING, 1: TWO})}
    work = workload(job("a", 20.0), job("b", 12.0), gpus=(2,))
    outcome = replay(work, Script(plans), costs=ChangeCosts(save=3.0))
    a, b = outcome.jobs
    assert (b.end, b.start, b.overhead, b.running, b.waiting) == (13.0, 4.0, 3.0, 6.0, 4.0)
    assert (a.end, a.running) == (None, 4.0)
    assert outcome.saving == ()  # b had been given them meanwhile


def test_saving_leaves_alone_what_is_free():
    """b needs one GPU and one was free all the time."""
    plans = {0.0: Plan({0: ON_A}), 4.0: Plan({0: NOTHING, 1: ON_A})}
    work = workload(job("a", 20.0), job("b", 6.0), gpus=(2,))
    outcome = replay(work, Script(plans), costs=ChangeCosts(save=3.0))
    assert outcome.jobs[1].end == 10.0
    assert outcome.saving == (3.0,)
    assert outcome.until == 10.0 + 8.0  # a needs 8 more on both GPUs, and nothing will happen
    assert outcome.use == {"gpu": (4 + 6 + 3) / (2 * 18)}


def test_a_job_that_moves_saves_first_and_starts_again_afterwards():
    plans = {0.0: Plan({0: ON_A}), 4.0: Plan({0: ON_B})}
    costs = ChangeCosts(start=1.0, migrate=2.0, save=3.0)
    outcome = replay(workload(job()), Script(plans), costs=costs)
    times = outcome.jobs[0]
    assert (times.end, times.overhead, times.running) == (16.0, 6.0, 10.0)
    assert (times.restarts, times.resizes, times.migrations) == (0, 0, 1)


def test_a_job_that_is_still_set_up_has_nothing_to_save():
    plans = {0.0: Plan({0: ON_A}), 1.0: Plan({0: ON_B})}
    times = replay(workload(job()), Script(plans), costs=ChangeCosts(start=2.0, save=5.0)).jobs[0]
    assert times.end == 12.0


def test_a_machine_that_is_lost_is_not_kept_busy_by_saving():
    plans = {0.0: Plan({0: ON_A}), 4.0: Plan({0: NOTHING}), 6.0: Plan({0: ON_A})}
    work = workload(job(), gpus=(1,))
    outages = [Outage(0, 5.0, 6.0)]
    outcome = replay(work, Script(plans), costs=ChangeCosts(save=9.0), outages=outages)
    assert outcome.jobs[0].end == 12.0
    assert outcome.saving == (1.0,)


@pytest.mark.parametrize(
    ("interval", "lost", "end"), [(None, 0.0, 12.0), (3.0, 1.0, 13.0), (100.0, 7.0, 19.0)]
)
def test_a_job_that_loses_its_server_goes_back_to_its_last_checkpoint(interval, lost, end):
    """It has worked for 7 s when it loses its server, and goes on 2 s later."""
    plans = {0.0: Plan({0: ON_A}), 9.0: Plan({0: ON_B})}
    costs = ChangeCosts(checkpoint_interval=interval)
    times = replay(workload(job()), Script(plans), costs=costs, outages=[Outage(0, 7.0)]).jobs[0]
    assert (times.lost_work, times.end, times.restarts) == (lost, end, 1)


def test_checkpoints_count_time_at_work_across_a_resize_which_writes_one_too():
    """2 s with one worker, then 4 s with two: checkpoints at 2 (the resize) and at 5."""
    plans = {0.0: Plan({0: ON_A}), 2.0: Plan({0: TWO}), 6.0: Plan({0: ON_B})}
    costs = ChangeCosts(checkpoint_interval=3.0)
    work = workload(job(work=20.0))
    times = replay(work, Script(plans), costs=costs, outages=[Outage(0, 6.0)]).jobs[0]
    assert (times.lost_work, times.end) == (2.0, 6.0 + 20.0 - 2 - 6)
    assert (times.restarts, times.resizes) == (1, 1)


@pytest.mark.parametrize(
    "wrong", [{"save": -1.0}, {"start": float("inf")}, {"checkpoint_interval": 0.0}]
)
def test_costs_that_are_no_times_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ChangeCosts(**wrong)


CURVE = TrainingCurve(((0.0, 1.0), (0.5, 0.2), (1.0, 0.0)))


def test_training_is_seen_through_its_curve_at_the_ticks_of_the_clock_while_it_works():
    """Set up until 2; a tenth of the work a second; paused from 7 to 12."""
    plans = {0.0: Plan({0: ON_A}), 7.0: Plan({0: NOTHING}), 12.0: Plan({0: ON_A})}
    policy = Script(plans, watch=(13.0,))
    work = workload(job(curve=CURVE), job("b"))
    replay(work, policy, costs=ChangeCosts(start=2.0), observation=Observation(3.0))
    expected = [(3.0, 1.0 - 1.6 * 0.1), (6.0, 1.0 - 1.6 * 0.4), (12.0, 0.2)]
    seen = policy.seen[13.0][0]
    assert [time for time, _ in seen] == [time for time, _ in expected]
    assert [value for _, value in seen] == pytest.approx([value for _, value in expected])
    assert policy.seen[13.0][1] == []  # a job without a curve shows nothing


def test_noise_comes_from_the_seed_and_does_not_depend_on_who_looks_or_when():
    def seen(seed, watch):
        policy = Script({0.0: Plan({0: ON_A})}, watch=watch)
        replay(workload(job(curve=CURVE)), policy, observation=Observation(2.0, 0.1, seed))
        return policy.seen[9.0][0]

    once, often = seen(1, (9.0,)), seen(1, (1.0, 2.0, 5.0, 8.0, 9.0))
    assert [time for time, _ in once] == [time for time, _ in often]
    assert [value for _, value in once] == pytest.approx([value for _, value in often])
    assert once != seen(2, (9.0,))
    assert [time for time, _ in once] == [0.0, 2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize(
    "wrong", [{"interval": 0.0}, {"interval": float("inf")}, {"interval": 1.0, "noise": -1.0}]
)
def test_an_observation_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        Observation(**wrong)


def test_who_waits_since_when_and_who_runs():
    seen = {}

    class Asking(Script):
        def decide(self, view):
            seen[view.now] = (
                [job.id for job in view.waiting()],
                [job.id for job in view.running()],
                [view.waiting_since(job) for job in view.jobs()],
            )
            return super().decide(view)

    plans = {1.0: Plan({0: ON_A}), 3.0: Plan({0: NOTHING, 1: ON_A}), 5.0: Plan({0: ON_B})}
    Engine(workload(job(), job("b")), Asking(plans)).run()
    assert seen[0.0] == (["a", "b"], [], [0.0, 0.0])
    assert seen[3.0] == (["b"], ["a"], [None, 0.0])
    assert seen[5.0] == (["a"], ["b"], [3.0, None])


def test_a_machine_that_hosts_both_roles_counts_once():
    made = Workload.of(
        Site(("gpu",), (Machine("m", (4.0,)),)), [job(work=4.0, ps=((0, 1),), ps_per_worker=1.0)]
    )
    outcome = replay(made, Script({0.0: Plan({0: Allocation(((0, 1),), ((0, 1),))})}))
    assert outcome.utilisation == {"worker": {"gpu": 0.25}, "ps": {"gpu": 0.25}}
    assert outcome.use == {"gpu": 0.5}


def test_what_a_lost_server_held_is_in_use_no_longer_though_the_policy_does_nothing():
    work = workload(job("a", 20.0), gpus=(2,))
    outcome = replay(work, Script({0.0: Plan({0: ON_A})}), outages=[Outage(0, 4.0)])
    assert outcome.timeline[-1] == (4.0, (0, 0))
    assert outcome.use == {"gpu": 4.0 / (2 * outcome.until)}
