"""The parts of the command line: flags from options, lists, assignments, files, codes."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

import oasis
from experiments.cli import exit_codes
from experiments.cli.command import as_command
from experiments.cli.main import main
from experiments.cli.options import (
    Flags,
    Limits,
    choose_options,
    comma_list,
    flag,
    known_policy,
    naming_flags,
    numbers,
)
from experiments.cli.results import (
    Delivery,
    deliver,
)
from experiments.evaluation.options import described, options_of
from experiments.evaluation.policies import POLICIES
from oasis.model.errors import located_at

# --- flags --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Options of a command."""

    max_jobs: int = described(3, "how many")
    share: float | None = described(None, "of what there is. [default: all]")
    plain: bool = described(True, "plain text", denial="--coloured: colours")


def called(*words: str) -> Any:
    """What a command with flags for `Sizes` is given."""
    found = []

    def command(*, file: str, options: Any) -> None:
        """Do it."""
        found.append((file, options))

    command.__annotations__["options"] = Annotated[Any, Flags(options_of(Sizes))]
    small = typer.Typer()
    small.command()(as_command(command))
    result = CliRunner().invoke(small, ["a", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0][1]


def test_a_command_gets_the_options_that_are_given() -> None:
    assert called() == {}
    words = ("--max-jobs", "3", "--coloured")
    assert called(*words) == {"max_jobs": 3, "plain": False}
    assert called("--share", "1") == {"share": 1.0}


def test_one_of_a_few_values_is_read_in_any_case() -> None:
    found = []

    def command(*, form: Annotated[Literal["text", "json"], "Of the log."] = "text") -> None:
        """Do it."""
        found.append(form)

    small = typer.Typer()
    small.command()(as_command(command))
    CliRunner().invoke(small, ["--form", "JSON"], catch_exceptions=False)
    assert found == ["json"]


def test_errors_of_parameters_become_errors_of_flags() -> None:
    for error, said in (
        (oasis.InputError("high", "expected less"), "--upper-end: expected less"),
        (oasis.InputError("mix[1]", "expected less", 2), "--mix: expected less, got 2"),
        (oasis.InputError("middle", "expected less"), "middle: expected less"),
        (oasis.InputError("", "low: expected less"), "low: expected less"),
        (ValueError("low: expected less"), "low: expected less"),
    ):
        with (
            pytest.raises(type(error), match=f"^{re.escape(said)}$"),
            naming_flags(("low", "mix"), high="--upper-end"),
        ):
            raise error
    of_a_file = oasis.InputError("horizon", "expected 3").within("")
    with (
        pytest.raises(oasis.InputError, match=r"^--bounds: past\.json: horizon: expected 3$"),
        naming_flags(("bounds", "horizon")),
        located_at("bounds"),
        located_at(source="past.json"),
    ):
        raise of_a_file
    assert flag("worker_servers") == "--worker-servers"


def test_lists_with_commas() -> None:
    assert comma_list(" a,b ", "--x") == ["a", "b"]
    assert numbers(int, "counts")("3, 4, 03") == (3, 4)
    for text, message in (
        ("a,,b", "--x: expected entries with commas between, got 'a,,b'"),
        ("", "--x: expected entries with commas between, got ''"),
        ("a,b,a", "--x: expected each entry once, got a again"),
    ):
        with pytest.raises(oasis.OasisError) as caught:
            comma_list(text, "--x")
        assert str(caught.value) == message
    for text in ("3,many", "3,0", "5"):
        with pytest.raises(oasis.OasisError, match=r"^expected counts with commas between, got"):
            numbers(int, "counts", most=4)(text)


@as_command
def draws(*, size: int, delivery: Delivery) -> tuple[int, Delivery]:
    """Has a picture."""
    return size, delivery


def test_a_command_with_a_picture_has_the_four_options_in_place_of_its_delivery(tmp_path):
    assert list(inspect.signature(draws).parameters) == [
        *("size", "context", "output", "plot", "style", "as_json", "verbose")
    ]
    options = {"context": None, "output": None, "plot": tmp_path / "a.svg", "style": "grayscale"}
    options |= {"as_json": True}
    assert draws(size=3, verbose=False, **options) == (3, Delivery(**options))
    with pytest.raises(ValueError, match=r"^--style: expected --plot beside it$"):
        draws(size=3, verbose=False, **options | {"plot": None})


# --- options of policies ------------------------------------------------------------------------


def test_what_is_given_of_each_policy() -> None:
    chosen = choose_options(
        ["oasis", "fifo", "drf", "las"],
        ["las.seed=3", "las.thresholds=1,2", "oasis.normalize=false"],
        oasis={"scale": 2.0},
        shared={"seed": 9, "line": "fit"},
    )
    assert chosen == {
        "oasis": {"scale": 2.0, "normalize": False},
        "fifo": {"seed": 9, "line": "fit"},
        "drf": {},
        "las": {"seed": 3, "line": "fit", "thresholds": [1.0, 2.0]},
    }
    with pytest.raises(oasis.OasisError, match=r"^--line: expected one of fifo, .*, got drf$"):
        choose_options(["drf"], None, shared={"line": "fit"})
    with pytest.raises(oasis.OasisError, match=r"^--line: expected strict or fit, got 'x'$"):
        choose_options(["fifo"], None, shared={"line": "x"})
    assert known_policy("las", "--policy") == "las"
    with pytest.raises(
        oasis.OasisError,
        match=r"got 'las'; las is a policy, but this command does",
    ):
        known_policy("las", "--policy", ("a", "b"))
    assert choose_options(list(POLICIES), None) == {name: {} for name in POLICIES}


# --- limits, files, codes -----------------------------------------------------------------------


def test_limits_and_criteria_are_what_was_given_and_a_minute_without_a_limit() -> None:
    assert Limits(None, None).given() == {"time_limit": 60.0}
    assert Limits(3.0, None).given() == {"time_limit": 3.0}
    assert Limits(None, 2.0).given() == {"work_limit": 2.0}
    assert Limits(3.0, None, gap=0.1).given() == {"time_limit": 3.0, "gap": 0.1}
    criteria = {"gap": 0.1, "no_improvement": 5.0}
    assert Limits(None, 2.0, **criteria).given() == {"work_limit": 2.0, **criteria}
    assert Limits(3.0, 2.0).given() == {"time_limit": 3.0, "work_limit": 2.0}


def test_what_cannot_be_written_is_said_after_the_result_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gone" / "a.json"
    with pytest.raises(oasis.OasisError, match="gone: No such directory"):
        deliver({"a": 1}, lambda: None, as_json=True, output=path)
    assert json.loads(capsys.readouterr().out) == {"a": 1}


@pytest.mark.parametrize("bug", [KeyError("gpu"), ValueError("horizon: expected 3"), TypeError()])
def test_a_bug_is_no_bad_input(
    bug: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        """Fail."""
        raise bug

    monkeypatch.setattr("experiments.cli.commands.about.example", command)
    for words, ends in (
        (["example"], "; run again with --verbose for the traceback\n"),
        (["example", "--verbose"], "\n"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (exit_codes.BUG, "")
        said = f": {bug}" if str(bug) else ""
        assert err.endswith(f"oasis: a bug: {type(bug).__name__}{said}{ends}")
        assert ("Traceback (most recent call last):" in err) == (len(words) > 1)
        assert (err.count("\n") == 1) == (len(words) == 1)
