"""Windows of a calendar, without a site."""

from __future__ import annotations

from oasis.model.calendar import EVER_OPEN, Calendar, CalendarEntry


def test_a_node_that_closes_soon_is_for_jobs_that_end_before() -> None:
    once = Calendar((CalendarEntry("a", 10, 12, frozenset({0})),))
    assert once.closing(4, [6]) == frozenset()
    assert once.closing(4, [7]) == {0}
    assert once.closing(10, [99]) == frozenset()
    weekly = Calendar(tuple(CalendarEntry("a", k, k + 2, frozenset({0})) for k in (10, 20, 30)))
    # eight slots lie between two windows: a job of nine would wait for ever
    assert weekly.closing(4, [8]) == {0}
    assert weekly.closing(4, [9]) == frozenset()
    # a window within another one is no end of it
    long = [CalendarEntry("long", k, k + 18, frozenset({0})) for k in (10, 30)]
    short = [CalendarEntry("short", k, k + 1, frozenset({0})) for k in (12, 26)]
    assert Calendar((*long, *short)).closing(4, [9]) == frozenset()


def test_machines_are_closed_in_the_slots_of_a_window_also_as_plain_data() -> None:
    calendar = Calendar(
        (CalendarEntry("b", 4, 6, frozenset({0, 1})), CalendarEntry("c", 5, 7, frozenset({0})))
    )
    closed = [set(calendar.closed(slot)) for slot in range(3, 8)]
    assert closed == [set(), {0, 1}, {0, 1}, {0}, set()]
    assert Calendar.from_dict(calendar.to_dict()) == calendar
    assert not EVER_OPEN
