"""What the two processes of a solve tell each other: messages, each a line of JSON.

A message is a JSON object; its first key says what kind of message it is:

==========  ===================================================================
schedules   better schedules, as `Schedule.to_dict` writes them, and ``by`` whom
bound       a lower upper bound
cuts        a cut of the master: its group, and the weight of each job
plan        when the jobs complete in a plan of the master
prices      of workers (T, H, R) and of parameter servers (T, K, R), from the configuration LP
relaxation  of each job that may complete, the first and the last slot for that
status      the process has ended its work, and why
error       it could not go on
==========  ===================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from oasis.model.schedule import Schedule

Message = Mapping[str, Any]
KINDS = ("schedules", "bound", "cuts", "plan", "prices", "relaxation", "status", "error")


class Partner:
    """The other process, as either of the two sees it.

    Parameters
    ----------
    send : callable
        Takes a line for the other process, with its end.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._takers: dict[str, Callable[[Message], None]] = {}
        self._waiting: dict[str, list[Message]] = {}

    def tell(self, message: Message) -> None:
        """Send a message."""
        self._send(line(message))

    def on(self, kind: str, take: Callable[[Message], None]) -> None:
        """Let `take` have all messages of a kind, those first that have come before."""
        self._takers[kind] = take
        for message in self._waiting.pop(kind, ()):
            take(message)

    def pass_on(self, message: Message) -> None:
        """Give a message that has come to whoever takes its kind, now or later."""
        kind = next(iter(message), "")
        if kind in self._takers:
            self._takers[kind](message)
        else:
            self._waiting.setdefault(kind, []).append(message)


def line(message: Message) -> str:
    """A message as it is sent."""
    return json.dumps(message) + "\n"


def plain(schedules: Mapping[str, Schedule]) -> list[dict[str, Any]]:
    """Schedules as `oasis.model.schedule.schedules_by_job` reads them."""
    return [schedule.to_dict() for schedule in schedules.values()]
