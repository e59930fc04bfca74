"""``--verbose``: lines on standard error that say what is being done, and nothing without it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import oasis
from experiments.cli.command import as_command
from experiments.cli.console import LOGGERS
from tests.builders import exit_code

GRID = """
[[instances]]
preset = "testbed"
jobs = 3
[[policies]]
name = ["fifo", "drf"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    oasis.write(oasis.generate("testbed", jobs=3, seed=1), tmp_path / "i.json")
    (tmp_path / "grid.toml").write_text(GRID)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run i.json", ["oasis decides on 3 jobs on 9 machines", "j1: rejected", "admitted 2"]),
        (
            "solve i.json",
            ["milp on 3 jobs until", "schedules verified", "incumbent", "bound", "phase: compact"],
        ),
        ("ratio i.json", ["phase: OASiS", "schedules verified", "no schedule exceeds"]),
        ("compare i.json --policies fifo,drf", ["fifo decides on", "drf decides on"]),
        ("sweep grid.toml", ["2 cells, 0 recorded before", "drf, seed 0: done"]),
    ],
)
def test_what_is_done_is_logged_on_standard_error_alone(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    said: list[str],
) -> None:
    monkeypatch.chdir(folder)
    assert exit_code(*command.split(), "--json", "--verbose") == 0
    out, err = capsys.readouterr()
    json.loads(out)
    for text in said:
        assert text in err
    assert all(logging.getLogger(name).level == logging.NOTSET for name in LOGGERS)
    if not command.startswith("sweep"):  # which says on standard error what it wrote
        assert exit_code(*command.split(), "--json") == 0
        assert capsys.readouterr().err == ""


def test_the_command_keeps_its_own_parameters_and_its_help() -> None:
    def command(name: str = "nobody") -> None:
        """Say a name."""
        logging.getLogger("oasis.test").info("about to say %s", name)
        typer.echo(name)

    small = typer.Typer()
    small.command()(as_command(command))
    found = CliRunner().invoke(small, ["--name", "you", "--verbose"])
    assert (found.stdout, found.stderr.endswith("s  oasis.test: about to say you\n")) == (
        "you\n",
        True,
    )
    assert "Say a name." in CliRunner().invoke(small, ["--help"]).output
