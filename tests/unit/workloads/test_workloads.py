"""`generate`: ranges and arrivals of every preset, calibration, determinism, bad arguments."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from oasis.version import __version__
from oasis.workloads.generator import generate, read_counts, resolve, slot_weights
from oasis.workloads.presets import C4, MIX, P2_G3, PRESETS, PRIORITY, STEPS_PER_SECOND
from oasis.workloads.work import MAX_ROUNDS, redraw

RANGES = tomllib.loads(Path(__file__).with_name("published.toml").read_text())
PUBLISHED = {
    "paper": (100, 50, 50, 300),
    "calibrated": (100, 50, 50, 300),
    "testbed": (12, 7, 2, 10),
}
SIZES = PUBLISHED | {"testbed-observed": PUBLISHED["testbed"], "kinds": (40, 9, 6, 24)}


@pytest.fixture(scope="module", params=PUBLISHED)
def drawn(request):
    """A preset, and an instance of it with enough jobs to meet the ends of the ranges."""
    return request.param, generate(request.param, jobs=2000, seed=3)


def assert_fills(values, low, high):
    """`values` stay within [low, high] and come near both ends."""
    least, most = min(values), max(values)
    margin = 0.05 * (high - low)
    assert low <= least <= low + margin
    assert high - margin <= most <= high


def test_values_are_the_published_ones(drawn):
    preset, instance = drawn

    def of(name):
        return [attrgetter(name)(job) for job in instance.jobs]

    published = RANGES[preset]
    for name, (low, high) in published["fills"].items():
        assert_fills(of(name), low, high)
    for name, (low, high) in published.get("within", {}).items():
        assert low <= min(of(name)) <= max(of(name)) <= high, name
    for name, values in published.get("values", {}).items():
        assert set(of(name)) == set(values), name
    decays = of("utility.decay")
    assert_fills([d for d in decays if 0 < d <= 1], 0.01, 1)
    assert_fills([d for d in decays if d > 1], 4, 6)


@pytest.mark.parametrize("preset", PRESETS)
def test_sizes_default_to_the_preset(preset):
    instance = generate(preset)
    cluster = instance.cluster
    found = (len(instance.jobs), len(cluster.worker_ids), len(cluster.ps_ids), instance.horizon)
    assert found == SIZES[preset]
    assert instance.slot_seconds == (3600.0 if preset in ("paper", "calibrated") else 1200.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_testbed_as_observed_has_the_same_jobs_with_fewer_epochs(seed):
    shortest, observed = (
        generate(name, jobs=40, seed=seed) for name in ("testbed", "testbed-observed")
    )
    assert observed.cluster == shortest.cluster
    for long, short in zip(shortest.jobs, observed.jobs, strict=True):
        # half a job is rounded to the even number, as Python does
        assert short == replace(long, epochs=max(1, round(0.4 * long.epochs)))


def test_demands_fill_the_published_ranges(drawn):
    preset, instance = drawn
    testbed = preset == "testbed"
    worker = {"gpu": 1, "cpu": 5, "memory_gb": 10} if testbed else {}
    worker = {"gpu": 4, "cpu": 10, "memory_gb": 32, "storage_gb": 10} | worker
    low = {"gpu": 0, "cpu": 1, "memory_gb": 2, "storage_gb": 5}
    for name, high in worker.items():
        values = [job.worker[name] for job in instance.jobs]
        assert set(values) == set(range(low[name], high + 1)), name
        if name != "gpu":
            # the testbed turns away parameter servers that its machines cannot hold in time
            assert {job.ps[name] for job in instance.jobs} <= set(range(low[name], high + 1)), name
    assert all(job.ps["gpu"] == 0 for job in instance.jobs)


@pytest.mark.parametrize(("seed", "horizon"), [(0, 300), (1, 100), (2, 10), (3, 1)])
def test_every_calibrated_job_can_meet_its_target_alone(seed, horizon):
    instance = generate("calibrated", jobs=500, horizon=horizon, seed=seed)
    for job in instance.jobs:
        duration = job.shortest_duration(instance.slot_seconds)
        assert duration <= job.utility.target
        assert job.arrival + duration <= horizon


@pytest.mark.parametrize("seed", range(5))
def test_testbed_jobs_last_40_minutes_to_2_hours_and_can_finish_alone(seed):
    instance = generate("testbed", seed=seed)
    cluster = instance.cluster
    for job in instance.jobs:
        assert 2 <= job.shortest_duration(instance.slot_seconds) <= 6
        assert alone(job, cluster) <= min(6, instance.horizon - job.arrival)


def alone(job, cluster):
    """Slots `job` needs on the empty cluster, worker by worker (independent of the generator)."""

    def units(servers, demand):
        count = 0
        for server in servers:
            fit = 0
            while all((fit + 1) * v <= server.capacity[r] + 1e-9 for r, v in demand.items()):
                fit += 1
            count += fit
        return count

    workers = min(job.chunks, units(cluster.worker_servers, job.worker))
    ps = units(cluster.ps_servers, job.ps)
    while job.ps_needed(workers) > ps:
        workers -= 1
    return -(-job.work(cluster.slot_seconds) // workers)


def test_machines_of_three_kinds_and_the_measured_speeds_of_each_model():
    instance = generate("kinds", jobs=500, seed=2)
    labels = [server.labels["gpu"] for server in instance.cluster.worker_servers]
    assert labels == ["k80", "p100", "v100"] * 3
    speeds = {job.speeds for job in instance.jobs}
    assert len(speeds) == len(STEPS_PER_SECOND) == 7
    assert all(each.values["p100"] == 1.0 for each in speeds)
    # ResNet-50 on a V100 is seven times as fast as on a K80
    ratios = [each.values["v100"] / each.values["k80"] for each in speeds]
    assert any(ratio == pytest.approx(4.395 / 0.619) for ratio in ratios)
    assert any(each.values["v100"] < each.values["k80"] for each in speeds)
    for job in instance.jobs:
        assert [form.requires["gpu"] for form in job.in_forms] == [("k80",), ("p100",), ("v100",)]
    # more machines change neither arrivals nor models
    more = generate("kinds", jobs=500, seed=2, worker_servers=30)
    assert [job.speeds for job in more.jobs] == [job.speeds for job in instance.jobs]


def kinds(instance):
    return Counter(
        "insensitive" if d == 0 else "sensitive" if d <= 1 else "critical"
        for d in (job.utility.decay for job in instance.jobs)
    )


def test_mix_is_exact():
    assert kinds(generate()) == {"insensitive": 10, "sensitive": 55, "critical": 35}
    fig4 = generate(jobs=200, horizon=100, mix=(0.0, 0.5, 0.5))
    assert kinds(fig4) == {"sensitive": 100, "critical": 100}
    assert kinds(generate(jobs=3)) == {"sensitive": 2, "critical": 1}
    # of equal remainders the first is rounded up
    assert kinds(generate(jobs=3, mix=(0.5, 0.5, 0.0))) == {"insensitive": 2, "sensitive": 1}


def test_gpu_machines_host_the_workers_unless_as_printed():
    def shapes(servers):
        names = ("gpu", "cpu", "memory_gb")
        return {tuple(server.capacity[name] for name in names) for server in servers}

    sizes = {"jobs": 1, "worker_servers": 300, "ps_servers": 300}
    default = generate(**sizes).cluster
    assert shapes(default.worker_servers) == set(P2_G3)
    assert shapes(default.ps_servers) == set(C4)
    printed = generate(**sizes, machines="as_printed").cluster
    assert shapes(printed.worker_servers) == set(C4)
    assert shapes(printed.ps_servers) == set(P2_G3)
    for server in default.worker_servers + default.ps_servers:
        assert server.capacity["storage_gb"] == 1000
    assert_fills([s.capacity["bandwidth_gbps"] for s in default.worker_servers], 20, 50)


def test_metadata_say_how_to_draw_the_instance_again():
    instance = generate("testbed", jobs=4, seed=9, priority=(5, 6))
    metadata = dict(instance.metadata)
    assert metadata["generator"] == "oasis.generate"
    assert metadata["version"] == __version__
    parameters = dict(metadata["parameters"])
    for name in ("priority", "mix"):
        parameters[name] = tuple(parameters[name])
    assert generate(metadata["preset"], seed=metadata["seed"], **parameters) == instance


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"counts": "no such file"}, FileNotFoundError, "no such file"),
        ({"slot_seconds": 0.001, "jobs": 2}, ValueError, r"^slot_seconds: 0\.001 s is too short"),
        ({"preset": "testbed", "horizon": 1}, ValueError, r"^horizon: expected room"),
        ({"preset": "testbed", "machines": "as_printed"}, ValueError, "^machines"),
    ],
)
def test_what_cannot_be_drawn_is_named(given, error, says):
    with pytest.raises(error, match=says):
        generate(**given)


@pytest.mark.parametrize("preset", ["paper", "calibrated"])
def test_without_parameter_servers_workers_exchange_the_gradients(preset):
    """All-reduce: the same jobs, but for what belongs to parameter servers."""
    sizes = {"jobs": 50, "worker_servers": 5, "seed": 3}
    with_ps, without = (generate(preset, ps_servers=k, **sizes) for k in (1, 0))
    assert without.cluster.ps_ids == ()
    assert without.cluster.worker_servers == with_ps.cluster.worker_servers
    for one, other in zip(with_ps.jobs, without.jobs, strict=True):
        assert not other.needs_ps
        assert other.gradient_mb == other.bandwidth == other.ps_bandwidth == 0
        assert other.minibatch_time == one.minibatch_slots(with_ps.slot_seconds)
        assert other.work(3600.0) == one.work(3600.0)
        assert (other.arrival, other.utility, other.chunks) == (
            one.arrival,
            one.utility,
            one.chunks,
        )
        assert {**other.worker, "bandwidth_gbps": one.bandwidth} == dict(one.worker)


WRONG = tomllib.loads(Path(__file__).with_name("wrong_arguments.toml").read_text())["wrong"]
UNSAID = ("jobs", "worker_servers", "ps_servers", "horizon", "slot_seconds", "arrivals", "counts")
GIVEN = dict.fromkeys(UNSAID) | {
    "seed": 1,
    "machines": "gpu_workers",
    "priority": PRIORITY,
    "mix": MIX,
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["says"])
def test_a_bad_argument_is_named(wrong):
    with pytest.raises(ValueError, match=f"^{re.escape(wrong['says'])}"):
        resolve(wrong["preset"], **(GIVEN | wrong.get("changes", {})))


def test_only_jobs_without_a_good_candidate_are_drawn_for_again():
    """Each gets its first good one."""
    asked = []

    def draw(job):
        asked.append(np.unique(job).tolist())
        number = np.concatenate([np.arange(np.sum(job == k)) for k in asked[-1]])
        return {"round": np.full(len(job), len(asked)), "number": number}, (
            (job < len(asked)) & (number % 3 == 1)
        )

    found = redraw(3, draw)
    assert found is not None
    assert {name: column.tolist() for name, column in found.items()} == {
        "round": [1, 2, 3],
        "number": [1, 1, 1],
    }
    assert asked == [[0, 1, 2], [1, 2], [2]]


def test_a_job_that_never_gets_one_ends_the_search():
    asked = []

    def draw(job):
        asked.append(len(job))
        return {"value": job}, job == 0

    assert redraw(2, draw) is None
    assert len(asked) == MAX_ROUNDS


# -- shapes of the arrivals ------------------------------------------------------------------------


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
    few = [arrivals(jobs=1, horizon=5, arrivals="poisson", seed=s).sum() for s in range(20)]
    assert 0 < few.count(0) < 20, "a day may bring no job"


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
