"""What differs by rounding alone changes no decision of any policy."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import PlainJob, make_policy, replay, rigid_workload
from tests.builders import nightly, policies

ROUNDING = 1e-12  # relative: more than sums of floats lose, less than anybody means
SIZES: dict[str, dict[str, Any]] = {
    "testbed": {},
    "testbed-observed": {},
    "calibrated": {"jobs": 14, "worker_servers": 4, "ps_servers": 4, "horizon": 16},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "recourse": [{"rounds": 2, "commitment": name} for name in ("none", "start", "arrival")]
}
MADE = [(name, options) for name in policies() for options in VARIANTS.get(name, [{}])]
every_policy = pytest.mark.parametrize(("name", "options"), MADE)


def shaken(value, rng):
    """Plain data with every float in it moved by `ROUNDING` at most."""
    if isinstance(value, float):
        return value * (1.0 + rng.uniform(-ROUNDING, ROUNDING))
    if isinstance(value, dict):
        return {key: shaken(each, rng) for key, each in value.items()}
    return [shaken(each, rng) for each in value] if isinstance(value, list) else value


def shaken_instance(instance, path, seed):
    """The instance with other last digits of its capacities, demands and utilities."""
    oasis.write(instance, path)
    data, rng = json.loads(path.read_text()), np.random.default_rng(seed)
    # Recourse exchanges equal machines, and what is given as equal stays equal.
    moved: dict[str, Any] = {}
    for server in (*data["worker_servers"], *data["ps_servers"]):
        given = server["capacity"]
        server["capacity"] = moved.setdefault(json.dumps(given), shaken(given, rng))
    for job in data["jobs"]:
        job |= {name: shaken(job[name], rng) for name in ("worker", "ps", "utility")}
    path.write_text(json.dumps(data))
    return oasis.read(path)


def plans_of(run):
    return {name: (s.workers.tolist(), s.ps.tolist()) for name, s in run.schedules.items()}


def decisions_of(run):
    return [(d.job_id, d.admitted, d.completion) for d in run.decisions], plans_of(run)


def check_instances(name, options, path, sizes, seeds):
    for preset, size in sizes.items():
        for seed in seeds:
            instance = oasis.generate(preset, seed=seed, **size)
            moved = shaken_instance(instance, path, seed)
            one, other = (
                oasis.simulate(each, make_policy(name, each, **options))
                for each in (instance, moved)
            )
            assert decisions_of(one) == decisions_of(other), f"{preset}, seed {seed}"


@every_policy
@pytest.mark.parametrize("seeds", [range(1), *nightly(range(20))])
def test_rounding_changes_no_decision(name, options, seeds, tmp_path):
    # The searches of recourse take long: the other instances are for the night.
    is_brief = name == oasis.Recourse.name and len(seeds) == 1
    sizes = {"testbed-observed": {"jobs": 6}} if is_brief else SIZES
    check_instances(name, options, tmp_path / "moved.json", sizes, seeds)


def starts_of(outcome):
    return [job.job_id for job in sorted(outcome.jobs, key=lambda job: job.start or 0.0)]


@pytest.mark.parametrize("name", policies(of_baselines=True))
def test_jobs_of_equal_length_keep_their_order(name):
    """Each takes all machines, so that the order of starts is the order of the policy."""
    rng = np.random.default_rng(3)
    # Two lengths, one of them also as a sum that is not equal to it as a float.
    lengths = [437.0 * (0.1 + 0.2), 437.0 * 0.3, 911.0]
    jobs = [PlainJob(f"j{k}", 10.0 * k, lengths[int(rng.integers(3))], 8) for k in range(20)]
    moved = [replace(job, duration=shaken(job.duration, rng)) for job in jobs]
    one, other = (replay(rigid_workload(each, 1, 8), make_policy(name)) for each in (jobs, moved))
    assert starts_of(one) == starts_of(other)
