"""Fixtures of the tests that call the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import exit_code
from tests.packaging.commands import SMALL, Oasis, Result


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL), encoding="utf-8")
    return path


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Oasis:
    """Call the command in this process and return (exit code, stdout, stderr)."""

    def call(*arguments: object) -> Result:
        return exit_code(*arguments), *capfd.readouterr()

    return call
