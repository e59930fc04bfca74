"""Parts of the command line: flags from options, errors, tables at any width, Ctrl-C."""

from __future__ import annotations

import logging
import re
import signal
import threading
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from typer.testing import CliRunner

import oasis
from experiments.cli import console, exit_codes
from experiments.cli import options as cli_options
from experiments.cli.command import as_command
from experiments.cli.interrupt import STOPPING, CtrlC
from experiments.evaluation.policies import POLICIES
from experiments.options import described, options_of
from oasis.model.errors import located_at

# --- flags --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Options of a command."""

    max_jobs: int = described(3, "how many")
    share: float | None = described(None, "of what there is. [default: all]")
    plain: bool = described(True, "plain text", denial="--coloured: colours")


def called(*words: str) -> Any:
    """What a command with flags for `Sizes` is given, and one of two words."""
    found = []

    def command(*, file: str, options: Any, form: Annotated[Literal["text", "json"], ""] = "text"):
        """Do it."""
        logging.getLogger("oasis.test").info("about to do it with %s", file)
        found.append((options, form))

    command.__annotations__["options"] = Annotated[Any, cli_options.Flags(options_of(Sizes))]
    small = typer.Typer()
    small.command()(as_command(command))
    result = CliRunner().invoke(small, ["a", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert ("s  oasis.test: about to do it with a\n" in result.stderr) == ("--verbose" in words)
    return found[0]


def test_a_command_gets_the_options_that_are_given():
    assert called() == ({}, "text")
    assert called("--max-jobs", "3", "--coloured", "--form", "JSON") == (
        {"max_jobs": 3, "plain": False},
        "json",
    )
    assert called("--share", "1", "--verbose") == ({"share": 1.0}, "text")


def test_errors_of_parameters_become_errors_of_flags():
    for error, said in (
        (oasis.InputError("high", "expected less"), "--upper-end: expected less"),
        (oasis.InputError("mix[1]", "expected less", 2), "--mix: expected less, got 2"),
        (oasis.InputError("middle", "expected less"), "middle: expected less"),
        (oasis.InputError("", "low: expected less"), "low: expected less"),
        (ValueError("low: expected less"), "low: expected less"),
    ):
        with (
            pytest.raises(type(error), match=f"^{re.escape(said)}$"),
            cli_options.naming_flags(("low", "mix"), high="--upper-end"),
        ):
            raise error
    of_a_file = oasis.InputError("horizon", "expected 3").within("")
    with (
        pytest.raises(oasis.InputError, match=r"^--bounds: past\.json: horizon: expected 3$"),
        cli_options.naming_flags(("bounds", "horizon")),
        located_at("bounds"),
        located_at(source="past.json"),
    ):
        raise of_a_file
    assert cli_options.flag("worker_servers") == "--worker-servers"


def test_what_is_given_of_each_policy():
    chosen = cli_options.choose_options(
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
    assert cli_options.known_policy("las", "--policy") == "las"
    with pytest.raises(
        oasis.OasisError,
        match=r"got 'las'; las is a policy, but this command does",
    ):
        cli_options.known_policy("las", "--policy", ("a", "b"))
    assert cli_options.choose_options(list(POLICIES), None) == {name: {} for name in POLICIES}


def test_limits_and_criteria_are_what_was_given_and_a_minute_without_a_limit():
    assert cli_options.Limits(None, None).given() == {"time_limit": 60.0}
    assert cli_options.Limits(3.0, None).given() == {"time_limit": 3.0}
    assert cli_options.Limits(None, 2.0).given() == {"work_limit": 2.0}
    assert cli_options.Limits(3.0, None, gap=0.1).given() == {"time_limit": 3.0, "gap": 0.1}
    criteria = {"gap": 0.1, "no_improvement": 5.0}
    assert cli_options.Limits(None, 2.0, **criteria).given() == {"work_limit": 2.0, **criteria}
    assert cli_options.Limits(3.0, 2.0).given() == {"time_limit": 3.0, "work_limit": 2.0}


@pytest.mark.parametrize("bug", [KeyError("gpu"), ValueError("horizon: expected 3"), TypeError()])
def test_a_bug_is_no_bad_input(bug, call, monkeypatch):
    def command() -> None:
        """Fail."""
        raise bug

    monkeypatch.setattr("experiments.cli.commands.about.example", command)
    said = f"oasis: a bug: {type(bug).__name__}{f': {bug}' if str(bug) else ''}"
    hint = "; run again with --verbose for the traceback\n"
    assert call("example") == (exit_codes.BUG, "", f"{said}{hint}")
    code, out, err = call("example --verbose")
    assert (code, out) == (exit_codes.BUG, "")
    assert "Traceback (most recent call last):" in err
    assert err.endswith(f"{said}\n")


def test_the_first_ctrl_c_is_heard_and_raises_only_where_it_may(capfd):
    press = partial(signal.raise_signal, signal.SIGINT)
    with CtrlC() as ctrl_c:
        ctrl_c.check()
        press()
        assert ctrl_c.heard
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.check()
    assert capfd.readouterr().err == STOPPING.decode()
    with CtrlC() as ctrl_c, pytest.raises(KeyboardInterrupt), ctrl_c.raising():
        press()
    with CtrlC() as ctrl_c:
        with ctrl_c.raising():
            pass
        press()  # behind it no more
        assert ctrl_c.heard


def test_the_former_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with CtrlC():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
    with pytest.raises(ZeroDivisionError), CtrlC():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) == before


def test_outside_the_main_thread_nothing_is_handled():
    found: list[Any] = []

    def body() -> None:
        with CtrlC() as ctrl_c:
            found.append((signal.getsignal(signal.SIGINT), ctrl_c.heard))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert found == [(signal.getsignal(signal.SIGINT), False)]


WIDTHS = (20, 40, 60, 80, 132)
WORDS = st.sampled_from(
    [
        *("a", "fifo", "finish-time-fairness", "0.619", "ms", "±", "bandwidth_gbps", "負荷分散"),
        *("größe", "[bold]", "(0 to 24.2)*", "tab\there", "esc\x1b[2J", "line\u2028sep"),
    ]
)
CELLS = st.lists(WORDS, max_size=4).map(" ".join)
HEADINGS = st.sampled_from(["policy", "mean_completion", "of bound", "admitted", "", "p95", "決定"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    count = draw(st.integers(1, 8))
    columns = [(draw(HEADINGS), draw(st.booleans())) for _ in range(count)]
    rows = draw(st.lists(st.lists(CELLS, min_size=count, max_size=count), max_size=4))
    return columns, rows


@given(table=tables(), width=st.sampled_from(WIDTHS))
@settings(max_examples=200, deadline=None)
def test_every_number_is_whole_or_its_column_is_named_as_not_shown(table, width):
    columns, rows = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        written: list[str] = []
        patch.setattr("experiments.cli.console._write", written.append)
        console.print_rows(columns, rows, title="the title of a table with_a_name/of/a/file.json")
    out = "".join(written)
    shown, _, left_out = " ".join(out.split()).partition("not shown for want of width: ")
    count = len(columns) - len(left_out.split(", ") if left_out else [])
    letters = "".join(shown.split())
    assert all(name in left_out for name, _ in columns[count:])
    assert "with_a_name/of/a/file.json" in out
    for k in range(len(columns)):
        for row in rows if k < count else ():
            cell = console.printable(row[k])
            if k == 0 or columns[k][1]:
                assert all(line.strip() in out for line in cell.split("\n"))
            else:
                assert all(letter in letters for letter in "".join(cell.split()))
    assert "…" not in out
    if count > 2:
        assert max(map(cell_len, out.split("\n"))) <= max(width, 46)


def test_a_heading_breaks_between_words_only_where_that_helps(capsys, monkeypatch):
    columns = (("policy", False), ("mean_completion", True), ("in slot", True))
    for width, lines in (
        (40, ["policy  mean_completion  in slot"]),
        (24, ["             mean_    in", "policy  completion  slot"]),
    ):
        monkeypatch.setenv("COLUMNS", str(width))
        console.print_rows(columns, [["las", "12", "3"]])
        assert capsys.readouterr().out.splitlines()[:-1] == lines
