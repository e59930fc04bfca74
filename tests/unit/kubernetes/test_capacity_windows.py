"""Maintenance windows, as a controller reads them, keeps to them, and tells."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from oasis.kubernetes.api.connection import ApiError
from oasis.kubernetes.api.resources import WINDOWS
from oasis.kubernetes.api.watching import ObjectStore
from oasis.kubernetes.control.windows import Windows
from tests.unit.kubernetes.fake_api import FakeConnection, writer
from tests.unit.kubernetes.played import SLOT, Played, policy, window


def test_of_two_controllers_the_one_with_the_nodes_tells() -> None:
    """Each of two has one node, and a window is for the node of the second."""
    shared, told = [window("w", 2, 6, nodes=["n1"])], []
    one, two = (Played(policy("fifo"), name=name) for name in ("one", "two"))
    for made, others in ((one, "n1"), (two, "n0")):
        made.nodes = [each for each in made.nodes if each["metadata"]["name"] != others]
        made.restart()
        made.windows = shared
    for made, slots in ((one, 1), (two, 1), (one, 2), (two, 1)):
        made.run(slots)
        told.append([each["reason"] for each in shared[0]["status"]["conditions"]])
    assert told[0] == ["NoNode"], "somebody has to say it"
    assert told[1] == ["NoNode", "Accepted"]
    assert told[2:] == [["Accepted"]] * 2
    assert (one.told["w"], two.told["w"]) == (2, 1)


def test_conditions_are_written_on_a_window_that_is_as_it_was_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection, store = FakeConnection(), ObjectStore()
    clerk = writer(connection, **{WINDOWS.plural: store})
    found = {"metadata": {"name": "w", "resourceVersion": "7", "uid": "u"}, "spec": {}}
    clerk.write_windows([(found, [{"type": "Accepted"}])])
    assert connection.asked == [("PATCH", f"{WINDOWS.path(name='w')}/status")]
    (kept,) = store.items()
    assert kept["status"] == {"conditions": [{"type": "Accepted"}]}

    def refuse(status: int) -> Callable[..., Any]:
        def answer(method: str, path: str, **_: Any) -> Any:
            raise ApiError(method, path, status, "No", "not you")

        return answer

    with caplog.at_level(logging.WARNING, "oasis.kubernetes"):
        for status in (409, 403, 403):  # another controller wrote; rights of an older version
            connection.request = refuse(status)  # type: ignore[method-assign]
            clerk = writer(connection)
            for _ in range(2):
                clerk.write_windows([(found, [])])
    assert [each.getMessage().count("403") for each in caplog.records] == [1, 1]


def test_windows_are_rounded_outwards_to_slots_and_repeat() -> None:
    made = Played(policy("fifo"))
    made.run(1)
    week = 7 * 86400 / SLOT

    def slots(*given: float, **spec: Any) -> list[tuple[int, int]]:
        made.windows = [window("w", *given, nodes=["n1"], **spec)]
        held = Windows(made.settings, made.reconciler.clock)
        found = held.calendar(made.seen(), made.reconciler.machines, made.now())
        return [(entry.begin, entry.end) for entry in found.windows]

    assert slots(5, 8) == [(4, 8)]
    assert slots(5.5, 8.5) == [(4, 9)]
    assert slots(5, 8, noticeSeconds=0) == [(5, 8)]
    assert slots(5, 8, noticeSeconds=61) == [(3, 8)]
    assert slots(-9, 0) == []
    repeated = slots(-9, -8, repeat="weekly")
    assert repeated[0] == (week - 10, week - 8)
    assert len(repeated) == 53
