"""Machines and slots of a calendar."""

from __future__ import annotations

from oasis.model.calendar import EVER_OPEN, Calendar, CalendarEntry
from oasis.scheduling.calendar import kept_capacity
from oasis.scheduling.site import Machine, Site


def two(gpus: float = 4.0) -> Site:
    return Site(
        ("gpu",), (Machine("n0", (gpus,)), Machine("n1", (gpus,))), unit_seconds=60.0, slotted=True
    )


def test_what_is_kept_adds_up_to_the_whole_machine_at_most() -> None:
    site = two()
    calendar = Calendar(
        (
            CalendarEntry("a", 2, 5, {0: (1.0,)}),
            CalendarEntry("b", 4, 6, {0: (2.5,), 1: (1.0,)}),
            CalendarEntry("c", 5, 7, {0: None}),
        )
    )
    assert [kept_capacity(calendar, slot, site).get(0) for slot in range(1, 8)] == [
        None, (1,), (1,), (4,), (4,), (4,), None,
    ]  # fmt: skip
    assert calendar.closed(4) == frozenset()
    assert calendar.closed(5) == {0}
    assert Calendar.from_dict(calendar.to_dict()) == calendar
    assert not EVER_OPEN
    assert calendar.next_begin(0, 2) == 4
    assert calendar.next_begin(0, 5) is None
