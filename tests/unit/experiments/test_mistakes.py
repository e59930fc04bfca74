"""The help of every command, and what is completed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup

from experiments.cli.app import COMMANDS, oasis_command, run_app
from experiments.cli.main import main

# -- help ------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[Any, Any]]:
    """Every command with its context."""
    whole = oasis_command(*COMMANDS)
    left: list[tuple[Any, Any]] = [(whole, whole.make_context("oasis", [], resilient_parsing=True))]
    while left:
        command, context = left.pop(0)
        yield command, context
        for name, nested in getattr(command, "commands", {}).items():
            made = nested.make_context(name, [], parent=context, resilient_parsing=True)
            left.append((nested, made))


@pytest.mark.parametrize("width", [80, 100])
def test_no_help_is_cut(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    count = 0
    for command, context in commands():
        command.get_help(context)
        text = capsys.readouterr().out
        # Boxes stand between the parts of what is wrapped; `*` and backticks are of Markdown.
        letters = re.sub(r"[\s│*`]+", "", text)
        helps = [command.help or "", *(each.help or "" for each in command.get_params(context))]
        words = [re.sub(r"[*`]", "", word) for each in helps for word in each.split()]
        assert [word for word in words if word not in letters] == [], context.command_path
        assert "…" not in text, context.command_path
        assert max(map(len, text.split("\n"))) <= width
        count += 1
    assert count > 35


def test_every_command_has_an_example_that_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for command, context in commands():
        if isinstance(command, TyperGroup):
            continue
        found = re.findall(r"Example: (.*oasis .*)", command.help)
        command.get_help(context)
        assert found, context.command_path
        assert found[0].replace("`", "") in capsys.readouterr().out


def test_help_of_a_command_is_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["import", "plain"], ["run"], []):
        assert run_app(["help", *words]) == 0
        shown = capsys.readouterr().out
        assert run_app([*words, "--help"]) == 0
        assert capsys.readouterr().out == shown


def test_the_help_is_shown_without_what_the_commands_need() -> None:
    script = (
        "import sys; from experiments.cli.app import run_app; run_app(['--help'])\n"
        "slow = ('numpy', 'kubernetes', 'pandas', 'matplotlib', 'baselines')\n"
        "print([name for name in slow if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"
    assert [name for name in COMMANDS if f"│ {name} " not in done.stdout] == []


# -- completion ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ra", ["ratio"]),
        ("help im", ["import"]),
        ("import sl", ["slurm"]),
        ("run a.json --policy fi", ["fifo", "finish-time-fairness"]),
        ("compare a.json --policies fifo,dr", ["fifo,drf", "fifo,dragon"]),
        ("whatif a.csv --policies srsf,las,srs", []),
        ("replay a.csv --format s", ["slurm", "swf", "supercloud"]),
        ("generate --preset t", ["testbed", "testbed-observed"]),
        ("run a.json --granularity c", ["chunk"]),
        ("import slurm a --keep l", ["largest"]),
        ("solve a.json --method b", ["bruteforce", "benders"]),
        ("figure fig", ["fig3", "fig4", "fig5", "fig6", "fig8", "fig9"]),
        ("example con", ["congested"]),
        ("help pl", ["plot"]),
        ("help import pl", ["plain"]),
        ("help ratio pl", []),
    ],
)
def test_values_are_completed(
    line: str,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("_OASIS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"oasis {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    with pytest.raises(SystemExit, match=r"^0$"):
        main([])
    assert capsys.readouterr().out.split() == expected
