"""No policy earns more on elastic jobs than its LP, and none has a mean time below its bound."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.evaluation.elastic_jobs import elastic_policy, utility_of
from experiments.evaluation.policies import POLICIES
from oasis.driver import loop
from oasis.model.groups import GROUPS
from oasis.scheduling import BasePolicy, BestFit, Plan, Room
from oasis.scheduling.job import NOTHING, admits
from oasis.simulator import Outage, elastic_from_dict, replay
from oasis.simulator.state import JobProgress
from offline.elastic_bound import ROUNDING, best_rates, elastic_bound, mean_completion_bound
from tests.builders import elastic_file
from tests.strategies import fewer

SLOT = 60.0
EXAMPLES = {"dorm": fewer(20), "recourse": fewer(10), "oasis": fewer(5)}
WORTH = (
    {"kind": "deadline", "value": 3.0, "deadline": 100.0},
    {"kind": "sigmoid", "priority": 5.0, "decay": 0.02, "target": 200.0},
    {"kind": "sigmoid", "priority": 50.0, "decay": 0.5, "target": 90.0},
    {"kind": "constant", "value": 1.0},
    {"kind": "piecewise", "delays": [0.0, 300.0], "values": [9.0, 0.0]},
    {"kind": "piecewise", "delays": [0.0, 100.0, 400.0], "values": [17.88, 17.43, 8.61]},
)


KINDS = ("a", "b")


@st.composite
def forms(draw, job):
    """What a job says of the machines it runs on, and how."""
    some = {"gpu": draw(st.sampled_from([["a"], ["b"], ["a", "b"], ["t"]]))}
    kind = draw(st.sampled_from(["speeds", "forms", "forms", "requires", "plain"]))
    said = {"switch": "restart"} if draw(st.booleans()) else {}
    if kind == "speeds":
        values = {"a": draw(st.sampled_from([0.1, 1.0])), "b": draw(st.sampled_from([0.5, 2.2]))}
        values |= draw(st.sampled_from([{}, {"t": 9.0}]))  # which no machine has
        return job | said | {"speeds": {"label": "gpu", "values": values}}
    if kind != "forms":
        return job | ({"requires": some} if kind == "requires" else {})
    made = []
    for _ in range(draw(st.integers(1, 3))):
        form = {"requires": {"gpu": [draw(st.sampled_from(KINDS))]}}
        if draw(st.booleans()):
            form["work"] = draw(st.sampled_from([0.5, 2.0])) * job["work"]
        if draw(st.booleans()):
            form |= {"workers": draw(st.integers(1, 2)), "worker": {"gpu": 2}}
        if draw(st.booleans()):
            form |= {"parameter_servers": 1, "ps_requires": some}
        if draw(st.booleans()):
            form |= {"gradient_mb": 50.0, "step_seconds": 0.25}
        made.append(form)
    return job | said | {"forms": made}


@st.composite
def elastic(draw, of_kinds=False):
    """Elastic jobs with all that can slow them down: locality, changes, parameter servers."""
    jobs = []
    for k in range(draw(st.integers(1, 5))):
        least = draw(st.integers(1, 2))
        most = least + draw(st.integers(0, 3))
        jobs.append(
            {
                "id": f"j{k}",
                "arrival": draw(st.sampled_from([0.0, 0.0, 30.0, 60.0, 107.4, 301.5])),
                "work": draw(st.sampled_from([1.0, 60.0, 119.0, 240.0, 600.0])),
                "workers": {"min": least, "initial": draw(st.integers(least, most)), "max": most},
                "parameter_servers": draw(st.integers(0, 1)),
                "worker": {"gpu": 1, "gb": draw(st.integers(0, 2))},
                "ps": {"gb": draw(st.integers(0, 1))},
                "gradient_mb": draw(st.sampled_from([0.0, 100.0])),
                "step_seconds": 0.5,
                "speedup": draw(st.sampled_from([[], [1.0, 1.6, 2.4, 3.5, 3.5]])),
                "curve": [[0.0, 1.0], [0.3, 0.1], [1.0, 0.0]],
                "utility": draw(st.sampled_from(WORTH)),
            }
        )
    change = draw(st.sampled_from([0.0, 7.0]))
    machine = {"id": "m", "count": draw(st.integers(1, 3)), "capacity": {"gpu": 2, "gb": 6}}
    machine |= {"link_gbps": 10.0}
    machines, costs = [machine], dict.fromkeys(("start", "resume", "resize", "migrate"), change)
    if of_kinds:
        jobs = [draw(forms(job)) for job in jobs]
        machines = [machine | {"id": kind, "labels": {"gpu": kind}} for kind in KINDS]
        costs["save"] = draw(st.sampled_from([0.0, 3.0]))
        costs |= draw(st.sampled_from([{}, {"checkpoint_interval": 20.0}]))
    partial = draw(st.booleans()) if of_kinds else True
    more = {"costs": costs, "partial_gangs": partial, "observation": {"interval": 10.0}}
    return elastic_from_dict(elastic_file(jobs, *machines, **more))


class Wandering(BasePolicy):
    """Whatever may be: jobs are paused, resized, moved and put into other forms at random."""

    knows_forms = True

    def __init__(self, seed):
        self.seed = seed

    def reset(self, site):
        super().reset(site)
        self.random, self.calls, self.begun = Random(self.seed), 0, {}

    def decide(self, view):
        plan, jobs, self.calls = Plan(), list(view.jobs()), self.calls + 1
        room = Room(self.site, view.capacity(), view.down())
        for job in self.random.sample(jobs, len(jobs)):
            held, form = view.allocation(job), self.random.randrange(len(job.in_forms))
            self.begun.setdefault(job.index, form)
            if not job.may_switch:
                form = self.begun[job.index]
            seen = job.in_forms[form]
            workers = self.random.randint(seen.min_workers, seen.max_workers)
            found = None
            if self.random.random() < 0.6:
                found = BestFit().place(room, seen, workers, seen.ps_needed(workers))
            found = NOTHING if found is None else found._replace(form=form)
            if found.workers and self.site.partial_gangs and self.random.random() < 0.3:
                room.release(seen, found._replace(workers=()))
                found = found._replace(ps=())
            if found != held:
                plan.changes[job.index] = found
        plan.wake_at = view.now + 13.0 if self.calls < 60 else None
        return plan


@pytest.mark.parametrize("name", ["wandering", *POLICIES])
def test_no_policy_breaks_the_books_nor_earns_more_than_the_bound(name, monkeypatch):
    """In slots of any length. Nor does a job wait for ever, unless the policy says so."""
    monkeypatch.setattr(loop, "MOST_IDLE_CALLS", 2000)
    held = []
    hold = JobProgress.hold

    def noted(progress, now, allocation):
        if progress.job.source is None:  # else it is on the books of a planner, in slots
            held.append((now, progress.job, progress.form, allocation))
        hold(progress, now, allocation)

    monkeypatch.setattr(JobProgress, "hold", noted)

    @given(
        made=st.booleans().flatmap(lambda of_kinds: elastic(of_kinds=of_kinds)),
        outage=st.sampled_from([None, (0, 40.0, 90.0)]),
        length=st.sampled_from([SLOT, 25.0]),
    )
    def check(made, outage, length):
        held.clear()
        outages = [] if outage is None else [Outage(*outage)]
        is_known = name in POLICIES
        policy = elastic_policy(name, {}, made, SLOT) if is_known else Wandering(len(made.jobs))
        outcome = replay(made, policy, outages=outages)
        audit(made, held, {job.job_id: job for job in outcome.jobs})
        if is_known and not getattr(policy, "may_deadlock", False):
            assert all(job.end is not None or job.refusal is not None for job in outcome.jobs)
        earned, bound = utility_of(made, outcome), elastic_bound(made, length)
        assert earned <= bound.value + 1e-6 * (1.0 + bound.value)
        if len(outcome.completions) == len(made.jobs):
            assert outcome.mean_completion >= mean_completion_bound(made)

    EXAMPLES.get(name, settings())(check)()


def audit(made, held, times):
    """Every job is where it may be, in a form that it may have, and all its work done.

    The work is counted at the best speed that its workers can have: it may take longer, not less.
    """
    jobs, site = {job.id: job for job in made.jobs}, made.site
    now, last, load = {}, {}, {}
    done, since = dict.fromkeys(jobs, 0.0), {}
    for time, form, index, allocation in held:
        job = jobs[form.id]
        assert form.work == job.in_forms[index].work
        before = now.get(form.id)
        if before is not None and before[1].workers:
            done[form.id] += (time - since[form.id]) * pace(made, *before)
        for asked, sign in ((before, -1), ((form, allocation), 1)):
            for group in GROUPS if asked is not None else ():
                for machine, count in group.placed(asked[1]):
                    assert admits(group.of(asked[0]), machine)
                    for resource, amount in group.of(asked[0]):
                        key = time, machine, resource
                        load[key] = load.get(key, 0) + sign * count * amount
        if allocation.workers or allocation.ps:
            assert job.may_switch or last.get(form.id, index) == index
            last[form.id] = index
        now[form.id], since[form.id] = (form, allocation), time
    full = {}
    for (_, machine, resource), change in sorted(
        load.items()
    ):  # at one instant only the sum counts
        full[machine, resource] = full.get((machine, resource), 0) + change
        assert 0 <= full[machine, resource] <= site.machines[machine].capacity[resource]
    assert not any(full.values()) or any(times[name].end is None for name in times)
    for name, job in times.items():
        if job.end is not None:
            assert done[name] >= 1.0 - 1e-6
            assert job.work_done - job.lost_work == pytest.approx(
                jobs[name].in_forms[last[name]].work
            )


def pace(made, form, allocation):
    """Share of the work of a form that is done in a second, at best."""
    rates = best_rates(made, form)
    return rates[allocation.worker_count] / form.work


def test_a_lonely_job_that_fills_its_slots_earns_all_of_it():
    """The bound is met, so that no smaller one would hold."""
    job = {
        "id": "a",
        "arrival": 0.0,
        "work": 60.0,
        "workers": 1,
        "worker": {"gpu": 1},
        "utility": {"kind": "piecewise", "delays": [0.0, 600.0], "values": [10.0, 0.0]},
    }
    made = elastic_from_dict(elastic_file([job], {"id": "m", "capacity": {"gpu": 1}}))
    outcome = replay(made, elastic_policy("fifo", {}, made))
    assert utility_of(made, outcome) == 9.0
    utility = made.jobs[0].utility
    assert elastic_bound(made, 60.0).value == utility(60.0 * (1 - ROUNDING))
