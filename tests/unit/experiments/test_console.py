"""What the command line prints: tables, JSON, numbers for people; and Ctrl-C that it survives."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any

import pytest

from experiments.cli.console import (
    note,
    number,
    percent,
    print_facts,
    print_json,
    print_rows,
    print_text,
)
from experiments.cli.interrupt import STOPPING, CtrlC
from oasis.model.files import json_text

Captured = pytest.CaptureFixture[str]

# -- numbers for people ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (float("inf"), "-"),
        (float("-inf"), "-"),
        (0.0, "0"),
        (1234567.0, "1.23457e+06"),
        (123456.0, "123456"),
        (2 / 3, "0.666667"),
        (-1.5, "-1.5"),
    ],
)
def test_a_number_has_six_digits_or_is_a_dash(value: float | None, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (float("inf"), "-"),
        (0.5, "50%"),
        (0.0, "0%"),
        (0.12345, "12.3%"),
        (1.5, "150%"),
    ],
)
def test_a_share_is_a_percentage_of_three_digits(value: float | None, shown: str) -> None:
    assert percent(value) == shown


# -- what goes where -------------------------------------------------------------------------------


def test_results_go_to_standard_output_and_notes_to_standard_error(capsys: Captured) -> None:
    print_text("a result")
    note("by the way")
    assert capsys.readouterr() == ("a result\n", "by the way\n")


def test_json_is_one_document_and_nothing_else(capsys: Captured) -> None:
    document = {"name": "größe", "values": [1, 2.5, None]}
    print_json(document)
    out, err = capsys.readouterr()
    assert json.loads(out) == document
    assert out == json_text(document)
    assert out.endswith("}\n")
    assert err == ""


def test_a_number_that_json_does_not_know_is_never_printed(capsys: Captured) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        print_json({"gap": float("inf")})
    assert capsys.readouterr().out == ""


def test_facts_are_aligned_and_lines_have_no_blanks_at_their_end(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_facts("run", [("policy", "fifo"), ("utility", "12.5"), ("nothing", "")])
    assert capsys.readouterr().out.splitlines() == [
        "run",
        "policy   fifo",
        "utility  12.5",
        "nothing",
    ]


def test_numbers_stand_to_the_right_and_words_to_the_left(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_rows([("policy", False), ("jobs", True)], [["fifo", "5"], ["las", "1000"]], title="both")
    assert capsys.readouterr().out.splitlines() == [
        "both",
        "policy  jobs",
        "fifo       5",
        "las     1000",
    ]


# -- Ctrl-C ----------------------------------------------------------------------------------------


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_the_first_ctrl_c_is_heard_and_interrupts_nothing(
    capfd: Captured,
) -> None:
    with CtrlC() as ctrl_c:
        ctrl_c.check()
        press()
        assert ctrl_c.heard
        with pytest.raises(KeyboardInterrupt):
            ctrl_c.check()
    assert capfd.readouterr().err == STOPPING.decode()


@pytest.mark.usefixtures("capfd")
def test_it_raises_only_where_it_may() -> None:
    with CtrlC() as ctrl_c, pytest.raises(KeyboardInterrupt), ctrl_c.raising():
        press()
    with CtrlC() as ctrl_c:
        with ctrl_c.raising():
            pass
        press()  # behind it no more
        assert ctrl_c.heard


def test_the_former_handler_comes_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with CtrlC():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
    with pytest.raises(ZeroDivisionError), CtrlC():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) == before


def test_outside_the_main_thread_nothing_is_handled() -> None:
    found: list[Any] = []

    def body() -> None:
        with CtrlC() as ctrl_c:
            found.append((signal.getsignal(signal.SIGINT), ctrl_c.heard))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert found == [(signal.getsignal(signal.SIGINT), False)]
