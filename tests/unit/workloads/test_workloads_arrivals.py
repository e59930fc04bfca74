"""Shapes of the arrivals: uniform, Poisson, hourly counts."""

import numpy as np
import pytest

from oasis.workloads.generator import generate, read_counts, slot_weights


def arrivals(**options):
    instance = generate(worker_servers=1, ps_servers=1, **options)
    return np.bincount([job.arrival for job in instance.jobs], minlength=instance.horizon)


def test_uniform_arrivals_are_even():
    counts = arrivals(preset="paper", jobs=6000, horizon=20)
    assert counts.sum() == 6000
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300)


def test_poisson_arrivals_vary_in_number_about_the_mean():
    options = {"preset": "paper", "jobs": 200, "horizon": 50, "arrivals": "poisson"}
    totals = [arrivals(seed=s, **options).sum() for s in range(30)]
    assert len(set(totals)) > 10
    assert abs(np.mean(totals) - 200) < 4 * np.sqrt(200 / 30)


def test_counts_shape_the_arrivals():
    hourly = [0, 3, 0, 1]
    counts = arrivals(preset="paper", jobs=4000, horizon=4, counts=hourly)
    assert counts.sum() == 4000
    assert counts[0] == counts[2] == 0
    assert abs(counts[1] - 3000) < 5 * np.sqrt(750)


def test_slots_share_the_counts_of_the_hours_they_cover():
    hourly = np.array([6.0, 0.0, 2.0])
    halves = slot_weights(hourly, 6, 1800.0, 5)
    np.testing.assert_allclose(halves, np.array([3, 3, 0, 0, 1, 1]) / 8)
    doubles = slot_weights(hourly, 3, 7200.0, 2)  # hours 0-1, 2-0, 1-2: the counts start over
    np.testing.assert_allclose(doubles, np.array([6, 8, 2]) / 16)


def test_no_arrival_after_the_last_slot_allowed():
    np.testing.assert_allclose(slot_weights(None, 4, 3600.0, 1), [0.5, 0.5, 0, 0])
    assert arrivals(preset="testbed", jobs=500, horizon=10)[-1] == 0


def test_a_file_and_an_array_of_counts_give_the_same_instance(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("hour,job_submits\n0,5\n1,0\n2,7\n")
    from_file, from_array = (generate(jobs=9, horizon=6, counts=c) for c in (path, [5, 0, 7]))
    assert from_file == from_array
    assert from_file.metadata == from_array.metadata
    recorded = from_file.metadata["parameters"]
    assert recorded["arrivals"] == "google"
    assert recorded["counts"]["hours"] == 3
    assert recorded["counts"]["submits"] == 12
    assert str(tmp_path) not in str(from_file.metadata)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the header"),
        ("hour,jobs\n0,1\n", "line 1: expected the header hour,job_submits"),
        ("hour,job_submits\n", "non-empty"),
        ("hour,job_submits\n0,1\n1,x\n", "line 3: expected an hour and a whole number"),
        ("hour,job_submits\n0,1\n\n", "line 3: expected an hour"),
        ("hour,job_submits\n0,1\n2,1\n", "line 3: expected hour 1, got 2"),
        ("hour,job_submits\n0,-1\n", "finite numbers >= 0"),
    ],
)
def test_a_bad_counts_file_is_explained(tmp_path, text, message):
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^counts: .*{message}"):
        read_counts(path)


@pytest.mark.parametrize("counts", [[], [[1, 2]], ["x"], [1, float("nan")], [-1.0], 3])
def test_bad_counts_are_explained(counts):
    with pytest.raises(ValueError, match=r"^counts: expected"):
        read_counts(counts)
