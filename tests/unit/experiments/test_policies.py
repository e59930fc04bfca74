"""Policies by name: the registry and its options, those of other modules, live ones, own prices."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import oasis
from experiments.evaluation.comparison import PLAIN, replay_each
from experiments.evaluation.live import planning_policy, quote_recourse
from experiments.evaluation.policies import (
    OASIS,
    POLICIES,
    OasisOptions,
    entry_of,
    having,
    import_policy,
    is_import_name,
    make_policy,
)
from experiments.options import GenerateOptions, options_of
from experiments.sweep.cells import sweep_config
from oasis.simulator import PlainJob, rigid_workload
from tests.unit.experiments.conftest import GIVEN
from tests.unit.experiments.unusual import UNUSUAL

INSTANCE = oasis.generate("testbed", jobs=3, seed=1)


def test_every_policy_has_options_that_differ_from_its_defaults_in_the_tests():
    assert set(UNUSUAL) == set(POLICIES)
    for name, options in UNUSUAL.items():
        # Prices of one's own exclude the other options of prices (as one of the tests below has).
        apart = {"prices", "trust"} if name == OASIS else set()
        assert set(options) == set(POLICIES[name].options) - apart, name
        for option, value in options.items():
            assert value != POLICIES[name].options[option].default
            assert POLICIES[name].options[option].help, (name, option)


@pytest.mark.parametrize(
    ("options", "function"),
    [(OasisOptions, oasis.OASiS.from_instance), (GenerateOptions, oasis.generate)],
)
def test_options_are_those_of_the_library(options, function):
    own = {name: option.default for name, option in options_of(options).items()}
    parameters = inspect.signature(function).parameters.values()
    assert own == {p.name: p.default for p in parameters if p.name != "instance"}


def test_policies_that_draw_are_those_with_a_seed():
    found = having("seed")
    assert found[:5] == ["recourse", "fifo", "rrh", "srtf", "las"]
    without = {OASIS, "drf", "dorm", "locality-aware", "dragon", "kod2", "priority-queue", "specon"}
    without |= {"optimus", "elasticflow"}
    assert set(found) == set(POLICIES) - without
    assert list(entry_of("drf").options) == ["by", "placement"]
    with pytest.raises(ValueError, match=r"^expected one of fifo, got 'oasis'$"):
        entry_of(OASIS, ("fifo",))


ROOT = Path(__file__).parents[3]
SOURCE = '''
from baselines import FIFO

class Mine(FIFO):
    """Like FIFO, under another name."""

    name = "mine"

NUMBER = 3
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module in the working directory, which Python does not look at by itself."""
    name = "policies_of_a_user"
    (tmp_path / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield name
    sys.modules.pop(name, None)


def test_a_policy_of_another_module_has_an_entry_like_the_others(module, tmp_path):
    """The working directory is looked at last, and forgotten."""
    before, name = list(sys.path), f"{module}:Mine"
    assert (is_import_name(name), is_import_name("fifo")) == (True, False)
    assert import_policy(name).__name__ == "Mine"
    assert sys.path == before
    (tmp_path / "baselines").mkdir()
    assert import_policy("baselines.queues:FIFO").__module__ == "baselines.queues"
    entry = entry_of(name)
    assert entry.summary == "Like FIFO, under another name."
    assert list(entry.options) == ["seed", "line", "placement"]
    assert having("seed", [name]) == [name]
    run = oasis.simulate(INSTANCE, make_policy(name, seed=3))
    assert run.policy == "mine"
    assert run.total_utility == oasis.simulate(INSTANCE, make_policy("fifo", seed=3)).total_utility
    policies = [{"name": name, "seed": [1, 2]}]
    assert sweep_config({"instances": [{"preset": "testbed"}], "policies": policies}).policies == [
        (name, {"seed": seed, "line": "strict", "placement": None}) for seed in (1, 2)
    ]


def test_a_package_of_others_adds_a_policy_by_an_entry_point(tmp_path):
    (tmp_path / "theirs.py").write_text(SOURCE, encoding="utf-8")
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    said = "[oasis.policies]\nLeast-Work = theirs:Mine\nfifo = theirs:Mine\n"
    (about / "entry_points.txt").write_text(said, encoding="utf-8")

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        return subprocess.run(
            [sys.executable, "-m", "oasis", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    example = "docs/examples/congested.json"
    done = command("compare", example, "--policies", "least-work,fifo", "--json")
    assert done.stderr == ""
    rows = json.loads(done.stdout)["policies"]
    assert list(rows) == ["Least-Work", "fifo"]  # ours keeps its name
    assert rows["Least-Work"]["total_utility"] == rows["fifo"]["total_utility"]
    assert rows["Least-Work"]["policy_files"][0]["of"] == "module theirs"
    assert "policy_files" not in rows["fifo"]
    assert "Least-Work" in command("policies").stdout
    unknown = command("compare", example, "--policies", "least-wrk")
    assert "did you mean 'Least-Work'?" in unknown.stderr


def test_a_run_at_own_prices_is_recorded_and_made_again(call, example):
    prices = (GIVEN / "prices.py").read_text()
    Path("prices.py").write_text(prices)
    assert call("run i.json --prices prices.py:Flat -o r.json")[0] == 0
    document = json.loads(Path("r.json").read_text())
    assert document["parameters"]["prices"] == "prices.py:Flat"
    assert document["policy_files"][0]["file"] == "prices.py"
    assert call("run --from r.json")[0] == 0
    assert call("verify i.json r.json")[0] == 0
    Path("prices.py").write_text(prices.replace("0.05", "0.06"))
    code, _, err = call("run --from r.json")
    assert code == 2
    assert "prices.py (module prices) has changed" in err


def test_payments_are_the_costs_of_admission(call, example):
    printed = call("run i.json --payments")[1].splitlines()
    instance = oasis.read(example)
    result = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    assert set(result.payments) == set(result.schedules)
    assert 0 < result.revenue < result.total_utility
    (total,) = [line.split() for line in printed if line.startswith("total  ")]
    assert total[1:3] == [f"{result.total_utility:.6g}", f"{result.revenue:.6g}"]


BUSY = oasis.generate("testbed", jobs=6, seed=23)
LATE = replace(BUSY.jobs[0], id="late", arrival=4)


def live(**options: object) -> oasis.LiveScheduler:
    policy = planning_policy("recourse", options, BUSY.horizon, keep_admitted=False)
    return oasis.LiveScheduler(policy, BUSY.cluster)


def test_a_quote_is_what_would_happen():
    quote = quote_recourse(BUSY, LATE, {})
    scheduler = live()
    for job in BUSY.jobs_by_arrival():
        if job.arrival <= LATE.arrival:
            scheduler.advance(job.arrival)
            scheduler.submit(job)
    scheduler.advance(LATE.arrival)
    decision = scheduler.submit(LATE)
    assert (quote.decision, quote.change) == (decision, scheduler.last_change)
    with pytest.raises(oasis.OasisError):
        quote_recourse(BUSY, BUSY.jobs_by_arrival()[0], {})


def test_options_reach_the_live_scheduler():
    scheduler = live(commitment="arrival", rounds=3)
    scheduler.advance(4)
    decision = scheduler.submit(LATE)
    assert decision.completion is not None
    assert scheduler.promised("late") >= decision.completion
    assert planning_policy("recourse", {}, BUSY.horizon).keep_admitted  # on a cluster
    with pytest.raises(oasis.InputError, match=r"^recourse.colour: no such option"):
        live(colour="red")


@pytest.mark.parametrize("held", [(), ((-9.0, 15.0, 1), (3.0, 40.0, 1))])
def test_every_policy_but_those_that_need_an_instance_replays_with_its_options(held):
    options = {name: {} for name in PLAIN} | {"las": {"line": "fit"}}
    settled: list[None] = []
    jobs = [PlainJob(f"j{k}", k, 30.0 - k, 1 + k % 2) for k in range(6)]
    workload = replace(rigid_workload(jobs, 1, 2), held=held)
    found = replay_each(workload, options, on_settled=lambda: settled.append(None)).policies
    assert list(found) == list(PLAIN)
    assert len(settled) == sum(row["finished"] for row in found.values()) == 6 * len(found)
    assert found["las"]["parameters"] == POLICIES["las"].resolve({"line": "fit"})
    assert found["fifo"]["makespan"] >= 30.0
    with pytest.raises(ValueError, match=r"^expected one of fifo, drf, .*, got 'oasis'$"):
        replay_each(workload, {"oasis": {}})
