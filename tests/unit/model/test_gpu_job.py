"""A job from its GPUs, hours and worth: the same as one that is written out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oasis
from experiments.cli.commands import about
from tests.builders import exit_code


@given(
    st.integers(1, 64),
    st.floats(0.01, 100.0),
    st.sampled_from([60.0, 300.0, 1200.0, 3600.0]),
)
def test_its_work_is_its_gpu_hours_rounded_up_to_whole_slots(gpus, hours, slot_seconds):
    job = oasis.gpu_job("a", gpus, hours, 5.0, slot_seconds=slot_seconds)
    slots = gpus * hours * 3600.0 / slot_seconds
    assert slots - 1e-6 <= job.work(slot_seconds) <= max(1.0, slots + 1)
    assert (job.min_workers, job.chunks, job.needs_ps) == (gpus, gpus, False)


def test_it_runs_on_a_cluster_and_earns_its_worth():
    cluster = oasis.Cluster(("gpu",), (oasis.Server("a", {"gpu": 4}),), (), 3600.0)
    jobs = (
        oasis.gpu_job("long", 4, 2, 50, slot_seconds=3600),
        oasis.gpu_job("late", 4, 2, 30, slot_seconds=3600, deadline_hours=2),
        oasis.gpu_job("narrow", 4, 1, 9, slot_seconds=3600, min_gpus=1),
    )
    instance = oasis.Instance(6, cluster, jobs)
    best = oasis.solve(instance)
    # Two hours from its arrival it must be done, so it goes before all others.
    assert best.objective == pytest.approx(50 + 30 + 9)
    assert best.schedules["late"].completion == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"gpus": 0}, "gpus: expected"),
        ({"gpus": 2.5}, "gpus: expected"),
        ({"hours": 0}, "hours: expected"),
        ({"hours": float("nan")}, "hours: expected"),
        ({"worth": -1}, "worth: expected"),
        ({"slot_seconds": 0}, "slot_seconds: expected"),
        ({"min_gpus": 5}, "min_gpus: expected"),
        ({"deadline_hours": 0.5}, "deadline_hours: expected"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_given(changes, expected):
    given = {"gpus": 4, "hours": 2, "worth": 50, "slot_seconds": 3600.0, **changes}
    with pytest.raises(oasis.InstanceError, match=f"^{expected}"):
        oasis.gpu_job("a", **given)


def test_a_package_that_is_missing_has_a_dash_and_its_extra(monkeypatch, capsys):
    monkeypatch.setattr(about, "installed", lambda _: None)
    assert exit_code("show-versions") == 0
    assert "- (extra solve)" in capsys.readouterr().out
