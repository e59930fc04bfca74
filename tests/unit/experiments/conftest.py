"""A folder of one's own for the tests that call the command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from oasis.model.examples import example_text
from tests.builders import exit_code

Call = Callable[..., tuple[int, str, str]]
GIVEN = Path(__file__).parents[2] / "recorded/files"  # beside the recorded commands


@pytest.fixture
def call(tmp_path, monkeypatch, capfd) -> Call:
    """Run a line of words, and words that may be anything; its code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(line: str, *more: object) -> tuple[int, str, str]:
        capfd.readouterr()
        return exit_code(*shlex.split(line), *more), *capfd.readouterr()

    return run


@pytest.fixture
def trace(tmp_path):
    """Forty jobs of three owners, which really waited 900 s each."""
    rows = ["id,submitted,start,end,gpus,owner"]
    for k in range(40):
        came, lasts = 100 * k, 300 + 1500 * (k % 5 == 0)
        owner = ("ann", "bob", "a team with a long name")[k % 3]
        rows.append(f"job{k},{came},{came + 900},{came + 900 + lasts},{2 ** (k % 4)},{owner}")
    file = tmp_path / "jobs.csv"
    file.write_text("\n".join(rows) + "\n")
    return file


@pytest.fixture
def example(tmp_path):
    """The shipped example, as i.json."""
    file = tmp_path / "i.json"
    file.write_text(example_text("congested"))
    return file
