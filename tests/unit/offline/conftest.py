"""Fixtures of the tests of the offline methods."""

from __future__ import annotations

import subprocess

import pytest

from offline import processes as helper
from offline.benders import solve as benders
from offline.column_generation import solve as colgen


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods start a second process, whatever this machine has."""
    for method in (benders, colgen):
        monkeypatch.setattr(method, "has_second_core", lambda: True)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that a solve starts."""
    made: list[subprocess.Popen[bytes]] = []
    start = helper._start_process

    def noted() -> subprocess.Popen[bytes]:
        made.append(start())
        return made[-1]

    monkeypatch.setattr(helper, "_start_process", noted)
    return made
