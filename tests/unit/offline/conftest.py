"""What tests of the offline methods share."""

from __future__ import annotations

import subprocess

import pytest

from offline.processes import helper


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """Every process that a solve starts."""
    made: list[subprocess.Popen[str]] = []
    start = helper._started

    def noted() -> subprocess.Popen[str]:
        made.append(start())
        return made[-1]

    monkeypatch.setattr(helper, "_started", noted)
    return made
