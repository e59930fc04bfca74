"""Mistakes that many make on the command line, and the one line that says what was meant."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.core import TyperGroup

import oasis
from experiments.cli.app import COMMANDS, oasis_command, run_app
from experiments.cli.main import main

# -- values, options, commands ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("generate --seed four -o x", "--seed: expected an integer (see"),
        ("import plain a --elasticity x -o y", "--elasticity: expected a number (see"),
        ("whatif a.csv --seed -1", "--seed: expected at least 0 (see"),
        ("ratio a --time-limit -1", "--time-limit: expected seconds >= 0, or inf, got -1"),
        (
            "kubernetes report --since x",
            "--since: expected a time >= 0, or inf (such as 90, 90s, 5m, 1h or 500ms), got 'x'",
        ),
        ("compare a.json --policies fifo drf", "Got unexpected extra argument(s) (drf)"),
        ("generate --mix 0.2 0.3 0.5 -o x.json", "--mix: expected 3 numbers, got [0.2]"),
        ("run a.json --polcy fifo", "No such option: --polcy (Possible options: --plot, --policy,"),
        ("solve a.json --timelimit 5", "--time-limit"),
        ("compar a.json", "Did you mean 'compare'?"),
        ("library lst", "Did you mean 'list'?"),
        ("help compar", "Did you mean 'compare'?"),
        ("import slrum a.csv", "Did you mean 'slurm'?"),
        ("import a.csv", "No such command 'a.csv'. Expected one of plain, philly, slurm, swf,"),
    ],
)
def test_a_mistake_is_one_line_with_the_help_that_tells_more(line: str, message: str) -> None:
    words = line.split()
    with pytest.raises(oasis.OasisError) as caught:
        run_app(words)
    assert message in str(caught.value)
    assert re.search(r" \(see 'oasis[a-z -]* --help'\)$", str(caught.value))
    assert "\n" not in str(caught.value)


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
