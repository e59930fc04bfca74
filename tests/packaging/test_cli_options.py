"""One word, one meaning: every option of every command, and its help."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from experiments.cli.app import COMMANDS, oasis_command
from oasis.traces.plain import FORMATS
from tests.packaging.commands import EXAMPLE, Oasis, assert_refused

# Options that several commands have in words of their own, and the one meaning behind these.
ONE_MEANING = {
    "--bounds": "a file with U and L of OASiS's prices",
    "--dry-run": "change nothing, and say what would be done",
    "--gpus-per-server": "GPUs of each server",
    "--horizon": "number of slots",
    "--instance": "the instance that a result is of",
    "--machines": "the machines of the cluster",
    "--max-duration": "leave out jobs that ran longer",
    "--min-duration": "leave out jobs that ran shorter",
    "--min-gpus": "leave out jobs with fewer GPUs",
    "--min-utility-fraction": "a completion worth less than this fraction counts as worthless",
    "--output": "where what the command makes is written",
    "--policies": "policies to compare, with commas between",
    "--jobs": "number of jobs",
    "--policy": "the policy",
    "--preset": "settings that the jobs are drawn from",
    "--ps-servers": "number of machines for parameter servers",
    "--qos": "only jobs of this quality of service",
    "--runs": "how several runs of one job are read",
    "--seed": "seed of what is drawn at random in an instance",
    "--seeds": "number of seeds",
    "--servers": "number of servers",
    "--set": "one option of what runs: of a policy, or of an offline method",
    "--slot-seconds": "length of a slot",
    "--time-limit": "the time after which work ends",
    "--user": "only jobs of this user",
    "--worker-servers": "number of machines for workers",
}
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


def test_every_option_has_one_meaning() -> None:
    several = {name for name, found in meanings().items() if len(found) > 1}
    short = {"-o", "-n"}  # of --output and --namespace
    assert several - set(ONE_MEANING) - short == set()


def test_every_option_has_a_help() -> None:
    assert [(name, path) for name, path, _, text in options() if not text.strip()] == []


def test_what_an_option_means_for_each_format_is_said() -> None:
    """Users of Slurm have names, those of the Standard Workload Format numbers."""
    replay = {name: text for name, path, _, text in options() if path.endswith("replay")}
    assert "this user alone (plain, philly, slurm, helios" in replay["--user"]
    assert "this user's number alone (swf)" in replay["--user"]
    assert "alone (slurm)" in replay["--qos"]
    assert "such as BE or LS (openb)" in replay["--qos"]
    assert "all its runs), last or each (slurm)" in replay["--runs"]
    assert replay["--time-zone"].endswith(" such as Europe/Berlin.")  # the same for all of them


def test_what_is_listed_as_one_meaning_is_an_option() -> None:
    assert set(ONE_MEANING) <= set(meanings())


@pytest.mark.parametrize("words", [("figure",), ("figure", "--list")])
def test_figure_alone_lists_the_figures(run: Oasis, words: tuple[str, ...]) -> None:
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["name", "what", "it", "shows", "seeds"]
    assert "fig3" in out


def test_figure_without_a_name_but_with_options_is_refused(run: Oasis) -> None:
    assert_refused(run("figure", "--size", "0.1"), "NAME: expected one of fig3, ")


def test_limits_have_units(run: Oasis) -> None:
    for words in (("--time-limit", "1500ms"), ("--time-limit", "1.5")):
        code, out, _ = run("solve", EXAMPLE, *words, "--gap", "1", "--json")
        assert code == 3
        assert '"time_limit": 1.5' in out
        assert '"gap": 1.0' in out
