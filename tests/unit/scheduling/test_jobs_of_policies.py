"""Jobs as a policy sees them: counts, curves, and the work that it is not told unless it asks."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

import baselines
import oasis
from baselines import FIFO
from oasis import PolicyError
from oasis.driver.driver import Driver
from oasis.driver.entry import Facts
from oasis.scheduling import Allocation, Machine, Plan, PolicyJob, Site, View
from oasis.scheduling.book import NEVER_FITS, EmptyCluster, JobBook
from oasis.scheduling.job import TrainingCurve
from oasis.simulator import Observation, Outage, Workload, replay
from tests.builders import elastic, policy_job, rows
from tests.unit.kubernetes.fakes import site_for, specs_of

ROWS = rows(__file__, "jobs.toml")


def gang(**changes: Any) -> PolicyJob:
    return policy_job(**({"min_workers": 2, "max_workers": 4} | changes))


@pytest.mark.parametrize("row", ROWS["ps"])
def test_parameter_servers_by_bandwidth_or_fixed(row):
    found = gang(**row["rule"])
    assert [found.ps_needed(workers) for workers in (4, 0)] == [row["needed"], 0]
    assert [found.ps_most(workers) for workers in (4, 0)] == [row["most"], 0]
    assert found.ps_line == tuple(row["line"])


def test_a_gang_works_only_when_it_is_complete():
    for works in (True, False):
        for workers, ps in ROWS["works" if works else "stalls"]:
            held = Allocation(((0, workers),), ((1, ps),) if ps else ())
            assert gang(fixed_ps=1).works_with(held) is works


@pytest.mark.parametrize("row", ROWS["wrong"], ids=lambda row: row["says"])
def test_a_job_that_contradicts_itself_is_refused(row):
    with pytest.raises(ValueError, match=row["says"]):
        gang(**row["fields"])


def test_workers_that_are_known_from_the_start():
    known = [gang(**fields).fixed_workers for fields in ({}, {"initial_workers": 3})]
    assert [*known, gang(min_workers=4).fixed_workers] == [None, 3, 4]


def test_a_curve_is_linear_between_its_points_and_goes_from_0_to_1():
    curve = TrainingCurve(((0.0, 2.0), (0.5, 0.0), (1.0, 1.0)))
    assert [curve.at(share) for share, _ in ROWS["curve"]] == [value for _, value in ROWS["curve"]]
    for points in ROWS["no_curve"]:
        with pytest.raises(ValueError, match="points"):
            TrainingCurve(tuple(map(tuple, points)))


def test_an_exponential_curve_slows_down():
    curve = TrainingCurve.exponential(2.0, 0.5, pace=4.0)
    assert (curve.at(0.0), curve.at(1.0)) == (2.0, 0.5)
    assert curve.at(0.0) - curve.at(0.1) > curve.at(0.5) - curve.at(0.6) > 0
    with pytest.raises(ValueError, match="pace"):
        TrainingCurve.exponential(1.0, 0.0, pace=0.0)


def test_the_book_enters_and_strikes_jobs_and_rejects_what_never_fits():
    book = JobBook(EmptyCluster(Site(("gpu",), (Machine("n", (4.0,)),))).fewest)
    small, large = (gang(min_workers=3 + 2 * k, max_workers=9, index=k) for k in range(2))
    plan = Plan()
    told: Any = SimpleNamespace(arrived=[small, large], finished=())
    assert book.update(told, plan) == [small]
    assert plan.rejected == {1: NEVER_FITS}
    assert (book.jobs, book.counts) == ({0: small}, {0: (3, 0)})
    told = SimpleNamespace(arrived=(), finished=[small])
    assert book.update(told, plan) == []
    assert (book.jobs, book.counts) == ({}, {})


SAYS_WORK = ("work", "source", "curve")
CURVE = TrainingCurve(((0.0, 2.0), (1.0, 0.2)))


class Reads(FIFO):
    """FIFO that notes all that can be read of the jobs and of the view, each time it is asked."""

    name = "reads"

    def __init__(self, told: bool = False) -> None:
        super().__init__()
        self.told_remaining = told
        self.notes: list[Any] = []
        self.kept: dict[str, PolicyJob] = {}

    def decide(self, view: View) -> Plan:
        here = [*view.jobs(), *view.finished, *view.evicted, *view.arrived]
        here += [*view.waiting(), *view.running()]
        self.kept |= {job.id: job for job in here}
        self.notes.append((view.now, [readable(job) for job in here]))
        for job in view.jobs():
            asked = (view.attained(job), view.waiting_since(job), view.observed(job))
            self.notes.append((job.id, repr(asked), view.allocation(job)))
        return super().decide(view)


def readable(job: PolicyJob) -> dict[str, str]:
    """All public attributes of a job that can be read, and how it shows itself."""
    found = {"repr": repr(job), "html": job._repr_html_()}
    for name in dir(job):
        if not name.startswith("_"):
            try:
                value = getattr(job, name)
            except PolicyError:
                continue
            found[name] = "function" if callable(value) and name != "utility" else repr(value)
    return found


def workload(scale: float) -> Workload:
    site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    jobs = [
        PolicyJob(n, 0.0, scale * work, ((0, 1),), max_workers=4, curve=CURVE, owner="me")
        for n, work in (("a", 40.0), ("b", 60.0), ("c", 80.0))
    ]
    return Workload.of(site, jobs)


def test_whoever_is_not_told_sees_the_same_of_jobs_that_differ_in_work_alone():
    """Until the first of them ends; what is looked at of a curve changes with the work done."""
    first = []
    for scale in (1.0, 2.5):
        policy = Reads()
        replay(workload(scale), policy)
        first.append([note for note in policy.notes if note[0] in (0.0, "a", "b", "c")][:3])
    assert first[0] == first[1]
    assert "a" in str(first[0])


@pytest.mark.parametrize("name", SAYS_WORK)
@pytest.mark.parametrize("ask", [getattr, hasattr])
def test_what_says_the_work_is_refused_by_name(name, ask):
    policy = Reads()
    replay(workload(1.0), policy, outages=[Outage(0, 3.0, 5.0)])
    for job in policy.kept.values():
        with pytest.raises(PolicyError, match=rf"policy reads \[job {job.id}\]: asked for {name} "):
            ask(job, name)


def slots_of(job: PolicyJob) -> list[Any]:
    """Everything that the object holds, reached without its properties."""
    found = []
    for cls in type(job).__mro__:
        for name in cls.__dict__.get("__slots__", ()):
            try:
                found.append(cls.__dict__[name].__get__(job))
            except AttributeError:
                continue
    return found


def test_the_object_does_not_even_hold_it():
    job = workload(1.0).jobs[0]
    assert {40.0, CURVE} <= set(slots_of(job))
    seen = job.untold("mine")
    assert not {40.0, CURVE} & set(slots_of(seen))
    for copied in (copy.copy(seen), copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert readable(copied) == readable(seen)
        with pytest.raises(PolicyError):
            _ = copied.work


def test_whoever_declares_it_sees_the_job_as_it_is():
    made, policy = workload(1.0), Reads(told=True)
    replay(made, policy, observation=Observation(5.0))
    assert list(policy.kept.values()) == list(made.jobs)
    assert [job.work for job in policy.kept.values()] == [40.0, 60.0, 80.0]
    assert policy.kept["a"].curve is CURVE
    assert "work 40" in repr(policy.kept["a"])
    untold = replay(made, Reads(), observation=Observation(5.0))
    assert untold.jobs == replay(made, Reads(told=True), observation=Observation(5.0)).jobs


@pytest.mark.parametrize("told", [False, True])
def test_a_cluster_tells_nobody_else_either(told):
    instance = oasis.generate("testbed", jobs=3, seed=1)
    policy = Reads(told)
    driver = Driver(policy, site_for(instance, None))
    driver.boundary(0, Facts({uid: spec for uid, (spec, _) in specs_of(instance).items()}))
    assert len(policy.kept) == 3
    for job, entry in zip(policy.kept.values(), driver.jobs.values(), strict=True):
        assert entry.job.work == entry.work > 0
        if told:
            assert job.work == entry.work
        else:
            for name in SAYS_WORK:
                with pytest.raises(PolicyError):
                    getattr(job, name)
            assert not any(isinstance(value, oasis.Job) for value in slots_of(job))


def test_every_policy_of_the_registry_runs_on_what_it_declares():
    made = elastic(6)
    for name in baselines.ALL:
        outcome = replay(made, baselines.make(name))
        assert outcome.unfinished == 0, name
