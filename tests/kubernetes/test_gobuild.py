"""The cache of built Go programs: its key, and what happens without Go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kubernetes.controlplane import gobuild
from tests.kubernetes.controlplane.build import CONTROLPLANE, KUBERNETES, KWOK
from tests.kubernetes.controlplane.gobuild import (
    CACHE_VARIABLE,
    GoMissingError,
    GoProgram,
    cached,
    ensure,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(tmp_path):
    module = tmp_path / "module"
    module.mkdir()
    for name in ("go.mod", "go.sum", "main.go"):
        (module / name).write_text(f"// {name}\n")
    return GoProgram("tiny", module)


@pytest.fixture
def no_go(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(gobuild, "_INSTALLED_BY_DEFAULT", tmp_path / "none")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def test_without_go_and_without_a_built_one_there_is_one_line(program, no_go):
    assert cached(program) is None
    with pytest.raises(GoMissingError) as caught:
        ensure(program)
    assert "\n" not in str(caught.value)
    assert "go.dev/dl" in str(caught.value)


def test_linked_versions_are_those_of_the_module():
    required = (CONTROLPLANE.module / "go.mod").read_text()
    assert f"\tk8s.io/kubernetes {KUBERNETES}\n" in required
    assert f"\tsigs.k8s.io/kwok {KWOK}\n" in required


def test_default_run_collects_no_kubernetes_test():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/paper", "tests/kubernetes"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "tests/paper/" in done.stdout
    assert "tests/kubernetes/" not in done.stdout
