"""Windows of a calendar, without a site."""

from __future__ import annotations

from oasis.model.calendar import Calendar, CalendarEntry


def test_a_node_that_closes_soon_is_for_jobs_that_end_before() -> None:
    once = Calendar((CalendarEntry("a", 10, 12, {0: None}),))
    assert once.closing(4, [6]) == frozenset()
    assert once.closing(4, [7]) == {0}
    assert once.closing(10, [99]) == frozenset()
    weekly = Calendar(tuple(CalendarEntry("a", k, k + 2, {0: None}) for k in (10, 20, 30)))
    # eight slots lie between two windows: a job of nine would wait for ever
    assert weekly.closing(4, [8]) == {0}
    assert weekly.closing(4, [9]) == frozenset()
    # a window within another one is no end of it
    long = [CalendarEntry("long", k, k + 18, {0: None}) for k in (10, 30)]
    short = [CalendarEntry("short", k, k + 1, {0: None}) for k in (12, 26)]
    assert Calendar((*long, *short)).closing(4, [9]) == frozenset()
