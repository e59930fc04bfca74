"""The job as a policy sees it, its parameter servers and curve; the book of a policy's jobs."""

from types import SimpleNamespace

import pytest

from oasis.scheduling.book import NEVER_FITS, EmptyCluster, JobBook
from oasis.scheduling.job import Allocation, PolicyJob, TrainingCurve
from oasis.scheduling.policy import Plan
from oasis.scheduling.site import Machine, Site


def job(name="a", **changes):
    given = {"min_workers": 2, "max_workers": 4} | changes
    return PolicyJob(name, 0.0, 1.0, ((0, 1),), **given)


@pytest.mark.parametrize(
    ("rule", "workers", "needed", "most", "line"),
    [
        ({"ps_per_worker": 0.3}, 4, 2, 4, (0.3, 0)),
        ({"ps_per_worker": 0.3}, 0, 0, 0, (0.3, 0)),
        ({}, 4, 0, 4, (0.0, 0)),
        ({"fixed_ps": 2}, 4, 2, 2, (0.0, 2)),
        ({"fixed_ps": 2}, 0, 0, 0, (0.0, 2)),
        ({"fixed_ps": 0}, 4, 0, 0, (0.0, 0)),
    ],
)
def test_parameter_servers_by_bandwidth_or_fixed(rule, workers, needed, most, line):
    found = job(**rule)
    assert (found.ps_needed(workers), found.ps_most(workers)) == (needed, most)
    assert found.ps_line == line


@pytest.mark.parametrize(
    ("workers", "ps", "works"),
    [(1, 1, False), (2, 1, True), (4, 1, True), (5, 1, False), (2, 0, False), (2, 2, False)],
)
def test_a_gang_works_only_when_it_is_complete(workers, ps, works):
    held = Allocation(((0, workers),), ((1, ps),) if ps else ())
    assert job(fixed_ps=1).works_with(held) is works


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"initial_workers": 5}, "initial_workers: expected 2..4, got 5"),
        ({"fixed_ps": 1, "ps_per_worker": 0.5}, "fixed_ps: .* no ps_per_worker beside them, got 1"),
        ({"fixed_ps": -1}, "fixed_ps: expected at least 0 parameter servers"),
        ({"gradient_mb": 5.0}, "step_time: expected a time > 0"),
        ({"speedup": (1.0, 0.0)}, r"speedup: expected speeds > 0, got \(1.0, 0.0\)"),
    ],
)
def test_a_job_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        job(**changes)


def test_workers_that_are_known_from_the_start():
    assert job().fixed_workers is None
    assert job(initial_workers=3).fixed_workers == 3
    assert job(min_workers=4).fixed_workers == 4


@pytest.mark.parametrize(
    ("share", "value"), [(-1.0, 2.0), (0.0, 2.0), (0.25, 1.0), (0.5, 0.0), (0.75, 0.5), (2.0, 1.0)]
)
def test_a_curve_is_linear_between_its_points(share, value):
    assert TrainingCurve(((0.0, 2.0), (0.5, 0.0), (1.0, 1.0))).at(share) == value


@pytest.mark.parametrize(
    "points",
    [
        (),
        ((0.0, 1.0),),
        ((0.1, 1.0), (1.0, 0.0)),
        ((0.0, 1.0), (0.9, 0.0)),
        ((0.0, 1.0), (0.0, 0.5), (1.0, 0.0)),
        ((0.0, float("nan")), (1.0, 0.0)),
    ],
)
def test_a_curve_goes_from_0_to_1(points):
    with pytest.raises(ValueError, match="points"):
        TrainingCurve(points)


def test_an_exponential_curve_slows_down():
    curve = TrainingCurve.exponential(2.0, 0.5, pace=4.0)
    assert (curve.at(0.0), curve.at(1.0)) == (2.0, 0.5)
    assert curve.at(0.0) - curve.at(0.1) > curve.at(0.5) - curve.at(0.6) > 0
    with pytest.raises(ValueError, match="pace"):
        TrainingCurve.exponential(1.0, 0.0, pace=0.0)


def view(arrived=(), finished=()):
    return SimpleNamespace(arrived=arrived, finished=finished)


def test_the_book_enters_and_strikes_jobs_and_rejects_what_never_fits():
    site = Site(("gpu",), (Machine("n", (4.0,)),))
    book = JobBook(EmptyCluster(site).fewest)
    small = PolicyJob("s", 0.0, 1.0, ((0, 1),), min_workers=3, max_workers=9, index=0)
    large = PolicyJob("l", 0.0, 1.0, ((0, 1),), min_workers=5, max_workers=9, index=1)
    plan = Plan()
    assert book.update(view(arrived=[small, large]), plan) == [small]
    assert plan.rejected == {1: NEVER_FITS}
    assert (book.jobs, book.counts) == ({0: small}, {0: (3, 0)})
    assert book.update(view(finished=[small]), plan) == []
    assert (book.jobs, book.counts) == ({}, {})
