"""Mistakes that many make on the command line, and the one line that says what was meant."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

import oasis
from experiments.cli.app import COMMANDS, oasis_command, run_app
from experiments.cli.main import main
from experiments.cli.usage import usage_message

EXTRA = "Got unexpected extra argument(s) (b)"


def refused(*words: str) -> str:
    with pytest.raises(oasis.OasisError) as caught:
        run_app(list(words))
    return str(caught.value)


# -- commas, options, commands ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("generate --preset testbed --seed four -o x", "--seed: expected an integer, got 'four'"),
        ("generate --preset testbed --seed=1.5 -o x", "--seed: expected an integer, got '1.5'"),
        ("import plain a --elasticity x -o y", "--elasticity: expected a number, got 'x'"),
        ("whatif a.csv --seed -1", "--seed: expected at least 0, got '-1'"),
        ("kubernetes run --slot-seconds ten", "--slot-seconds: expected a number, got 'ten'"),
        ("kubernetes run --lookahead 9 --lookahead=0", "--lookahead: expected at least 1, got '0'"),
        ("ratio a --time-limit -1", "--time-limit: expected seconds >= 0, or inf, got -1"),
        (
            "kubernetes report --since x",
            "--since: expected a time >= 0, or inf (such as 90, 90s, 5m, 1h or 500ms), got 'x'",
        ),
    ],
)
def test_a_value_of_another_kind_is_shown_with_what_was_expected(line: str, message: str) -> None:
    words = line.split()
    depth = 2 if words[0] in ("import", "kubernetes") else 1
    assert refused(*words) == f"{message} (see 'oasis {' '.join(words[:depth])} --help')"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "compare a.json --policies oasis fifo drf",
            "--policies: expected commas, not blanks: --policies oasis,fifo,drf, got --policies "
            "oasis fifo drf",
        ),
        (
            "replay --policies fifo, las a.csv",
            "--policies: expected commas, not blanks: --policies fifo,las, got --policies fifo, "
            "las",
        ),
        (
            "figure fig3 --job-counts=3 4 -o x",
            "--job-counts: expected commas, not blanks: --job-counts 3,4, got --job-counts=3 4",
        ),
        (
            "generate --mix 0.2 0.3 0.5 -o x.json",
            "--mix: expected commas, not blanks: --mix 0.2,0.3,0.5, got --mix 0.2 0.3 0.5",
        ),
    ],
)
def test_a_list_with_blanks_is_told_to_have_commas(line: str, message: str) -> None:
    words = line.split()
    place = f"oasis {words[0]}"
    assert usage_message(EXTRA, words, place, []) == message
    if "replay" not in line:  # there, what is extra is not the last entry
        assert refused(*words) == f"{message} (see '{place} --help')"


def test_another_extra_argument_is_said_as_it_is() -> None:
    assert usage_message(EXTRA, ["run", "a.json", "b"], "oasis run", []) == ""
    assert usage_message(EXTRA, ["compare", "--policies", "a", "x.json"], "oasis compare", []) == ""


@pytest.mark.parametrize(
    ("line", "suggested"),
    [
        ("run a.json --polcy fifo", "'--policy'"),
        ("run a.json --policies fifo", "'--policy'"),
        ("run a.json --all", "'--all-decisions'"),
        ("solve a.json --seed 1", "'--solver-seed'"),
        ("solve a.json --timelimit 5", "'--time-limit'"),
        ("replay a.csv --gpus 4", "'--gpus-per-server'"),
    ],
)
def test_an_option_is_suggested(line: str, suggested: str) -> None:
    message = refused(*line.split())
    assert re.match(rf"No such option: --\w+; did you mean .*{suggested}", message)


def test_an_option_without_its_value_exists() -> None:
    assert "--policy" in (message := refused("run", "a.json", "--policy"))
    assert "No such option" not in message


def test_a_command_is_suggested() -> None:
    assert "Did you mean 'compare'?" in refused("compar", "a.json")
    assert "Did you mean 'list'?" in refused("library", "lst")


# -- import without a format -----------------------------------------------------------------------

FILES = {
    "plain": "id,submitted,duration,gpus\na,0,60,1\n",
    "slurm": "JobIDRaw|Submit|ElapsedRaw|AllocTRES\n1|2024-01-01T00:00:00|60|gres/gpu=1\n",
    "swf": "; Version: 2.2\n1 0 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n",
    "philly": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:00:00,3600,2,7200,vc1\n",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time,deletion_time,"
    "scheduled_time\npod-0,8000,16384,1,1000,LS,0,60,0\n",
    "openb nodes": "sn,cpu_milli,memory_mib,gpu,model\nnode-0,64000,262144,2,P100\n",
}
KNOWN = (
    "FORMAT: expected one of plain, philly, slurm, swf, openb, helios, acme, pai, supercloud,"
    " tiresias, gavel, batsim before the file, got "
)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_import_without_a_format_says_what_the_file_looks_like(
    tmp_path: Path, kind: str, is_packed: bool
) -> None:
    path = tmp_path / "trace"
    text = FILES[kind].encode()
    path.write_bytes(gzip.compress(text) if is_packed else text)
    message = refused("import", str(path))
    files = {"openb": f"{path} NODES", "openb nodes": f"PODS {path}"}.get(kind, str(path))
    command = f"oasis import {kind.split(maxsplit=1)[0]} {files} -o mine.json"
    assert message.startswith(f"{KNOWN}{str(path)!r}, which looks like {kind}: {command}")


@pytest.mark.parametrize("text", [b"", b"\xff\xfe\x00", b"a,b\n1,2\n", b"{}", b"\x1f\x8bbroken"])
def test_a_file_that_is_not_recognised_is_not_guessed(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(text)
    message = refused("import", str(path))
    assert message.startswith(f"{KNOWN}{str(path)!r}; oasis import FORMAT {path} -o mine.json")


def test_a_format_that_is_none_is_suggested() -> None:
    assert "FORMAT: expected one of plain, " in refused("import", "absent.csv")
    assert "got 'Philly'; did you mean 'philly'?" in refused("import", "Philly", "a.csv")
    assert "got 'slrum'; did you mean 'slurm'?" in refused("import", "slrum", "a.csv")


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
    assert "Did you mean 'compare'?" in refused("help", "compar")


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
