"""The command is told from other programs, and a signal in its first moments is one line."""

from __future__ import annotations

import signal
import sys

import pytest

from oasis import starting
from tests.builders import rows

WINDOWS = (["C:\\oasis.exe"], ["C:\\oasis.exe"], sys.platform == "win32")
ROWS = [*rows(__file__, "names.toml")["command"], WINDOWS]


@pytest.mark.parametrize(("argv", "orig_argv", "is_command"), ROWS)
def test_the_command_is_the_script_or_the_module(
    argv: list[str], orig_argv: list[str], is_command: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig_argv)
    assert starting.is_command() is is_command


def test_signals_that_are_ignored_stay_ignored_and_others_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(starting, "is_command", lambda: True)
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        starting.guard_command()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert callable(signal.getsignal(signal.SIGTERM))
        starting.work_begins()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGINT, signal.default_int_handler)
        starting.guard_command()
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        starting.work_begins()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
