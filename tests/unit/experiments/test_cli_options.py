"""One word, one meaning: every option of every command, and its help."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.cli.app import COMMANDS, oasis_command
from oasis.traces.plain import FORMATS

# Options that several commands have in words of their own, and the one meaning behind these.
ROWS = Path(__file__).with_name("one_meaning.txt").read_text(encoding="utf-8").splitlines()
ONE_MEANING = {row.split()[0] for row in ROWS}
OF_FORMATS = rf" \((?:(?:{'|'.join(FORMATS)})(?:, )?)+\)(?=\.?$)"  # which replay adds
HELP_OF_TYPER = ("--install-completion", "--show-completion", "--help")


def options() -> Iterator[tuple[str, str, str, str]]:
    """Each option of each command: name, command, what it takes, help without its default."""
    commands: list[tuple[str, Any]] = [("", oasis_command(*COMMANDS))]
    while commands:
        path, command = commands.pop(0)
        nested = getattr(command, "commands", {})
        commands += [(f"{path} {name}".strip(), each) for name, each in nested.items()]
        for each in command.params:
            for name in each.opts:
                if each.param_type_name == "option" and name not in HELP_OF_TYPER:
                    text = re.sub(r"\s*\[default: [^]]*\]", "", each.help or "")
                    yield name, path, str(each.metavar or each.nargs), text


def meanings() -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, _, takes, text in options():
        found[name].add((takes, re.sub(OF_FORMATS, "", text)))
    return found


def test_an_option_that_is_compared_with_json_stands_beside_it() -> None:
    every = list(options())
    with_json = {path for name, path, _, _ in every if name == "--json"}
    assert {path for _, path, _, text in every if "as --json does" in text} <= with_json


def test_every_option_has_one_meaning() -> None:
    several = {name for name, found in meanings().items() if len(found) > 1}
    short = {"-o", "-n"}  # of --output and --namespace
    assert several - ONE_MEANING - short == set()


def test_every_option_has_a_help() -> None:
    assert [(name, path) for name, path, _, text in options() if not text.strip()] == []


def test_what_is_listed_as_one_meaning_is_an_option() -> None:
    assert set(meanings()) >= ONE_MEANING
