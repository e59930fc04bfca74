"""Commands: their help, what is completed, what they say, and an instance for all of them."""

from __future__ import annotations

import json
import logging
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

import oasis
from experiments.cli import app as command_line
from experiments.cli import commands
from experiments.cli.app import COMMANDS, oasis_command, run_app
from experiments.cli.console import LOGGERS
from tests.unit.experiments.conftest import GIVEN
from tests.unit.experiments.test_values import VALUES


def test_every_module_of_commands_is_a_command():
    found = {each.name for each in pkgutil.iter_modules(commands.__path__)}
    assert {one["file"] for one in command_line.COMMANDS.values()} - {""} == found


def test_characters_that_the_font_lacks_are_one_line(call):
    instance = oasis.generate("testbed", jobs=2, worker_servers=2, ps_servers=2, seed=1)
    names = zip(instance.jobs, ("\u82b8\U0001f680", "a\tb"), strict=True)
    oasis.write(
        replace(instance, jobs=tuple(replace(job, id=name) for job, name in names)), "i.json"
    )
    lacking = "some characters are not in the font: "
    for line in ("run i.json --plot r.png -o r.json", "report r.json -o r.html"):
        code, _, errors = call(line)
        assert (code, errors.count(lacking), errors.count("Glyph")) == (0, 1, 0)
        assert set("\u82b8\U0001f680") < set(errors.partition(lacking)[2])


def every_command() -> Iterator[tuple[Any, Any]]:
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
def test_no_help_is_cut(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    count = 0
    for command, context in every_command():
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


def test_every_command_has_an_example_that_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for command, context in every_command():
        if isinstance(command, TyperGroup):
            continue
        found = re.findall(r"Example: (.*oasis .*)", command.help)
        command.get_help(context)
        assert found, context.command_path
        assert found[0].replace("`", "") in capsys.readouterr().out


def test_help_of_a_command_is_its_help(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    for words in (["import", "plain"], ["run"], []):
        assert run_app(["help", *words]) == 0
        shown = capsys.readouterr().out
        assert run_app([*words, "--help"]) == 0
        assert capsys.readouterr().out == shown


SLOW = ("numpy", "kubernetes", "pandas", "matplotlib", "baselines")


@pytest.mark.parametrize(
    ("words", "own", "others"),
    [
        (["--help"], [], ("experiments.cli.commands.", *SLOW)),
        (["schema", "instance"], ["about"], ("experiments.cli.commands.", "kubernetes")),
    ],
)
def test_a_command_loads_no_other(words, own, others):
    script = (
        f"import sys; from experiments.cli.app import run_app; run_app({words})\n"
        f"print(*[name for name in sys.modules if name.startswith({others})], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.split() == [f"experiments.cli.commands.{name}" for name in own]
    if not own:
        assert [name for name in COMMANDS if f"│ {name} " not in done.stdout] == []


@pytest.mark.parametrize(("line", "said"), VALUES["logged"].items())
def test_what_is_done_is_logged_on_standard_error_alone(line, said, call):
    oasis.write(oasis.generate("testbed", jobs=3, seed=1), "i.json")
    Path("two.toml").write_text((GIVEN / "two.toml").read_text())
    code, out, err = call(line, "--json", "--verbose")
    json.loads(out)
    assert code == 0
    assert [text for text in said if text not in err] == []
    assert all(logging.getLogger(name).level == logging.NOTSET for name in LOGGERS)
    if not line.startswith("sweep"):  # which says on standard error what it wrote
        code, _, err = call(line, "--json")
        assert (code, err) == (0, "")
