"""Policies of other modules, by ``module:Name``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import oasis
from experiments.evaluation.policies import (
    entry_of,
    having,
    import_policy,
    is_import_name,
    make_policy,
)
from experiments.sweep.cells import sweep_config

ROOT = Path(__file__).parents[3]
SOURCE = '''
from baselines import FIFO

class Mine(FIFO):
    """Like FIFO, under another name."""

    name = "mine"

NUMBER = 3
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working directory, which Python does not look at by itself."""
    name = "policies_of_a_user"
    (tmp_path / f"{name}.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield name
    sys.modules.pop(name, None)


def test_a_name_with_a_colon_is_one_of_another_module() -> None:
    assert is_import_name("mine:Mine")
    assert not is_import_name("fifo")


def test_the_working_directory_is_looked_at_last_and_forgotten(module: str, tmp_path: Path) -> None:
    before = list(sys.path)
    assert import_policy(f"{module}:Mine").__name__ == "Mine"
    assert sys.path == before
    (tmp_path / "baselines").mkdir()
    assert import_policy("baselines.queues:FIFO").__module__ == "baselines.queues"


def test_it_has_an_entry_like_those_of_the_registry(module: str) -> None:
    entry = entry_of(f"{module}:Mine")
    assert entry.summary == "Like FIFO, under another name."
    assert list(entry.options) == ["seed", "line", "placement"]
    assert having("seed", [f"{module}:Mine"]) == [f"{module}:Mine"]
    instance = oasis.generate("testbed", jobs=4, seed=1)
    run = oasis.simulate(instance, make_policy(f"{module}:Mine", seed=3))
    same = oasis.simulate(instance, make_policy("fifo", seed=3))
    assert run.policy == "mine"
    assert run.total_utility == same.total_utility


def test_sweeps_know_it(module: str) -> None:
    policies = [{"name": f"{module}:Mine", "seed": [1, 2]}]
    assert sweep_config({"instances": [{"preset": "testbed"}], "policies": policies}).policies == [
        (f"{module}:Mine", {"seed": 1, "line": "strict", "placement": None}),
        (f"{module}:Mine", {"seed": 2, "line": "strict", "placement": None}),
    ]


def test_a_package_of_others_adds_a_policy_by_an_entry_point(tmp_path: Path) -> None:
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
