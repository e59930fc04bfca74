"""Labels and forms in a run: who chooses the form of a job, and that it stays in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

import oasis
from baselines import FIFO, LAS, make
from oasis.model.forms import Requirement
from oasis.model.groups import TaskGroup
from oasis.scheduling import BasePolicy, BestFit, Machine, Plan, PolicyJob, Room, Site, View
from oasis.scheduling.site import policy_job, site_of
from oasis.simulator import Engine, Workload, replay
from oasis.testing import instances_of_kinds
from tests.strategies import fewer

KINDS = ("a", "b", "c")
SITE = Site(("gpu",), tuple(Machine(kind, (4.0,), labels={"gpu": kind}) for kind in KINDS))


def one(name: str, kind: str, work: float = 8.0, workers: int = 4, site: Site = SITE) -> PolicyJob:
    """A job of one form that needs this many workers, on machines of this kind."""
    demand = site.limited(((0, 1),), TaskGroup.WORKER, Requirement({"gpu": [kind]}))
    return PolicyJob(name, 0.0, work, demand, min_workers=workers, max_workers=workers)


def job(name: str, *kinds: str, work: Sequence[float] = (8.0, 16.0, 24.0)) -> PolicyJob:
    """A job that runs on these kinds, each with the work that its place in the order says."""
    forms = tuple(one(name, kind, work[k]) for k, kind in enumerate(kinds))
    return replace(forms[0], forms=forms)


def at(arrival: float, given: PolicyJob) -> PolicyJob:
    forms = tuple(replace(form, arrival=arrival) for form in given.forms)
    return replace(given, arrival=arrival, forms=forms)


def ends(*jobs: PolicyJob, policy: Any = None, site: Site = SITE) -> list[float | None]:
    outcome = replay(Workload.of(site, jobs), policy or FIFO())
    return [found.end for found in outcome.jobs]


def test_the_first_form_that_finds_room_in_the_order_given():
    """Three jobs of one instant, each on the kind that those before it left."""
    assert ends(*(job(name, "a", "b", "c") for name in "xyz")) == [2.0, 4.0, 6.0]
    assert ends(job("x", "b", "a"), job("y", "a", "b")) == [2.0, 2.0]


def test_a_job_that_waits_is_shown_in_whatever_comes_free_first():
    """All is full until 3, when b comes free; a comes free at 5."""
    first = [one("x", "a", 20.0), one("y", "b", 12.0), one("z", "c", 80.0)]
    late = at(1.0, job("late", "a", "b"))
    assert ends(*first, late) == [5.0, 3.0, 20.0, 7.0]
    assert ends(*first, at(1.0, job("late", "b", "a"))) == [5.0, 3.0, 20.0, 5.0]


def test_one_with_more_workers_than_its_fewest_is_tried_in_the_next_form_at_once():
    """Its fewest fit beside the other on a, its four do not; on b they do."""
    forms = [replace(one("y", kind), min_workers=1, initial_workers=4) for kind in "ab"]
    wide = replace(forms[0], forms=tuple(forms))
    assert ends(one("x", "a", 100.0, workers=2), wide) == [50.0, 2.0]


def test_one_that_began_stays_in_its_form():
    """It is paused for the other on a, and does not go on on b."""

    class Pausing(BasePolicy):
        def decide(self, view: View) -> Plan:
            jobs, plan = list(view.jobs()), Plan()
            room = Room(self.site, view.capacity(), view.down())
            for job in sorted(jobs, key=lambda job: -job.index):
                found = BestFit().place(room, job, 4, 0)
                plan.changes[job.index] = found or view.allocation(job)._replace(workers=(), ps=())
            return plan

    other = replace(one("y", "a", 20.0), arrival=1.0)
    assert ends(job("x", "a", "b"), other, policy=Pausing()) == [7.0, 6.0]


def test_a_policy_sees_one_form_and_is_told_when_it_changes():
    log: list[Any] = []

    class Watching(FIFO):
        def decide(self, view: View) -> Plan:
            told = [
                [(job.id, sorted(job.worker.machines)) for job in jobs]
                for jobs in (view.finished, view.arrived)
            ]
            log.append((view.now, *told))
            assert all(not job.forms for job in view.jobs())
            return super().decide(view)

    ends(one("x", "a"), one("z", "b", 4.0), at(0.5, job("y", "a", "b")), policy=Watching())
    assert log == [
        (0.0, [], [("x", [0]), ("z", [1])]),
        (0.5, [], [("y", [0])]),
        (1.0, [("z", [1]), ("y", [0])], [("y", [1])]),
        (2.0, [("x", [0])], []),
        (5.0, [("y", [1])], []),
    ]


def test_a_job_that_no_machine_admits_is_rejected_for_the_label():
    outcome = replay(Workload.of(SITE, [one("x", "t4"), job("y", "h100", "t4")]), LAS())
    assert [found.refusal for found in outcome.jobs] == [
        "no machine admits it: label gpu of the worker servers; its workers require gpu is t4",
        "no machine admits it: label gpu of the worker servers; its workers require gpu is h100",
    ]
    assert ends(job("x", "t4", "c")) == [4.0]
    # Parameter servers that it does not have are not what it lacks, nor is one form of several.
    model = replace(
        oasis.generate("kinds", jobs=1).jobs[0], speeds=None, ps_requires={"gpu": ["t4"]}
    )
    site = site_of(oasis.generate("kinds", jobs=1).cluster)
    served, alone = oasis.Form(), oasis.Form(worker={"gpu": 1.0}, ps={}, gradient_mb=0.0)
    told = [policy_job(replace(model, forms=(form, served)), site) for form in (served, alone)]
    assert [found.unmet for found in told] == [
        "no machine admits it: label gpu of the parameter-server hosts; "
        "its parameter servers require gpu is t4",
        None,
    ]


class Choosing(BasePolicy):
    """Each job in the form that it says, as soon as that finds room."""

    knows_forms = True

    def __init__(self, **forms: int) -> None:
        self.forms = forms

    def decide(self, view: View) -> Plan:
        plan, room = Plan(), Room(self.site, view.free(), view.down())
        for job in view.waiting():
            form = self.forms[job.id]
            found = BestFit().place(room, job.in_forms[form], 4, 0)
            if found is not None:
                plan.changes[job.index] = found._replace(form=form)
        return plan


def test_who_knows_forms_says_which_one_runs():
    jobs = [job(name, "a", "b", "c") for name in "xy"]
    engine = Engine(Workload.of(SITE, jobs), Choosing(x=2, y=1))
    engine.run()
    found = [(one.form, one.job.work, one.end) for _, one in sorted(engine.settled.items())]
    assert found == [(2, 24.0, 6.0), (1, 16.0, 4.0)]


def test_a_form_is_kept_and_a_machine_that_does_not_admit_it_is_refused():
    class Moving(Choosing):
        def decide(self, view: View) -> Plan:
            plan = super().decide(view)
            for running in view.running():
                found = view.allocation(running)
                assert found.form == 1
                plan.changes[running.index] = found._replace(**self.change)
            return plan

    def refused(**change: Any) -> str:
        policy = Moving(x=1, y=0)
        policy.change = change
        with pytest.raises(oasis.PolicyError) as caught:
            ends(job("x", "a", "b"), at(1.0, job("y", "a", "b")), policy=policy)
        return caught.value.detail

    assert refused(form=0) == "form: expected 1, the form in which it began, got 0"
    assert refused(form=2) == "form: expected 0..1, got 2"
    assert refused(form=True) == "form: expected 0..1, got True"
    expected = "does not admit its workers, which require: gpu is b"
    assert refused(workers=((0, 4),)) == expected


def test_who_does_not_know_forms_says_none():
    class Wild(FIFO):
        def decide(self, view: View) -> Plan:
            plan = super().decide(view)
            plan.changes = {k: found._replace(form=1) for k, found in plan.changes.items()}
            return plan

    with pytest.raises(oasis.PolicyError, match=r"form: expected 0\.\.0, got 1"):
        ends(job("x", "a", "b"), policy=Wild())


@given(instance=instances_of_kinds())
def test_demands_are_limited_to_the_machines_that_the_model_admits(instance):
    site = site_of(instance.cluster)
    for given_job in instance.jobs:
        for form, seen in zip(
            given_job.in_forms, policy_job(given_job, site).in_forms, strict=True
        ):
            room = Room(site, [(1 << 60,) * 3] * len(site.machines))
            for group in TaskGroup:
                hosts = site.machines_for(group)
                mask = instance.cluster.admitted(form, group)
                expected = list(hosts) if mask is None else [hosts[k] for k in mask.nonzero()[0]]
                assert list(room.fitting(hosts, group.of(seen))) == expected


def apart(instance: oasis.Instance) -> oasis.Instance:
    """The same jobs, one in each slot, so that a service is asked as often as a simulation."""
    jobs = enumerate(instance.jobs_by_arrival())
    worth = oasis.Constant(1.0)
    apart = tuple(replace(job, arrival=k, utility=worth) for k, job in jobs)
    return replace(instance, horizon=40, jobs=apart)


def service(instance: oasis.Instance, name: str) -> oasis.LiveScheduler:
    if name == "oasis":
        bounds = oasis.PriceBounds.from_instance(instance)
        return oasis.LiveScheduler.oasis(instance.cluster, 40, bounds)
    if name == "recourse":
        return oasis.LiveScheduler.recourse(instance.cluster, 40)
    return oasis.LiveScheduler(make(name, 3), instance.cluster)


CASES = [(name, False) for name in ("oasis", "recourse", "gavel", "fifo")]


@pytest.mark.parametrize(
    ("name", "is_calm"), [*CASES, *((name, True) for name in ("fifo", "srtf", "drf"))]
)
def test_what_a_service_runs_is_in_one_form_on_machines_that_admit_it(name, is_calm, tmp_path):
    """What ran is put together and verified; where it is calm, it is what a simulation does."""

    @fewer(4)
    @given(given_instance=instances_of_kinds())
    def check(given_instance: oasis.Instance) -> None:
        instance = apart(given_instance)
        scheduler, ran, forms = service(instance, name), dict[str, list[Any]](), dict[str, int]()
        done: dict[str, tuple[int, int]] = {}
        lost = instance.cluster.worker_ids[0]
        for slot in range(instance.horizon):
            if slot in (2, 5) and not is_calm:
                (scheduler.lose if slot == 2 else scheduler.restore)(lost)
            for each in instance.jobs:
                if each.arrival == slot:
                    scheduler.submit(each)
            if slot == 3:  # whoever reads the snapshot goes on as the saved one would have
                scheduler.save(tmp_path / "snapshot")
                policy = None if name in ("oasis", "recourse") else make(name, 3)
                scheduler = oasis.LiveScheduler.load(tmp_path / "snapshot", policy)
            for job_id, schedule in scheduler.plan(1).items():
                assert forms.setdefault(job_id, schedule.form) == schedule.form
                ran.setdefault(job_id, []).append(schedule)
            for one in scheduler.advance(slot + 1).completed:
                done[one.job_id] = (one.slot, forms[one.job_id])
        parts = {job_id: ran[job_id] for job_id in done}
        whole = {
            job_id: oasis.Schedule(
                job_id,
                [row for part in each for row in part.workers.tolist()],
                [row for part in each for row in part.ps.tolist()],
                forms[job_id],
            )
            for job_id, each in parts.items()
        }
        oasis.verify(instance, whole)
        if is_calm:
            run = oasis.simulate(instance, make(name, 3))
            oasis.verify(instance, run)
            again = oasis.Run.from_dict(json.loads(json.dumps(run.to_dict())))
            assert again.decisions == run.decisions
            assert done == {
                d.job_id: (d.completion, d.schedule.form)
                for d in run.decisions
                if d.schedule is not None
            }

    check()
