"""Schedules are sorted tables of (slot, server, count); what they use; windows in between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasis.model.calendar import EVER_OPEN, Calendar, CalendarEntry
from oasis.model.errors import InputError
from oasis.model.schedule import Schedule, committed
from tests import builders

WORKERS = [[3, 0, 1], [1, 1, 2], [1, 0, 3]]


def test_rows_are_sorted_by_slot_and_server():
    schedule = Schedule("j", WORKERS, [[3, 0, 1], [1, 0, 1]])
    assert schedule.workers.tolist() == [[1, 0, 3], [1, 1, 2], [3, 0, 1]]
    assert schedule.ps.tolist() == [[1, 0, 1], [3, 0, 1]]
    assert schedule == Schedule("j", WORKERS[::-1], [[1, 0, 1], [3, 0, 1]])


def test_rows_are_read_only_and_no_view_of_the_source():
    source = np.array(WORKERS)
    schedule = Schedule("j", source, [])
    source[0, 2] = 99
    assert schedule.worker_slots == 6
    with pytest.raises(ValueError, match="read-only"):
        schedule.workers[0, 2] = 5


def test_schedules_differ_by_job_workers_and_parameter_servers():
    one = Schedule("j", WORKERS, [[1, 0, 1]])
    assert one != Schedule("k", WORKERS, [[1, 0, 1]])
    assert one != Schedule("j", WORKERS[:2], [[1, 0, 1]])
    assert one != Schedule("j", WORKERS, [])
    assert one != "j"


CLUSTER = builders.cluster(
    servers=2, worker={"gpu": 4.0, "bandwidth_gbps": 8.0}, ps={"bandwidth_gbps": 8.0}
)


JOB = builders.job(
    "a", worker={"gpu": 1.0, "bandwidth_gbps": 1.0}, ps={"bandwidth_gbps": 3.0}, workers=4
)
INSTANCE = builders.instance(JOB, horizon=3, on=CLUSTER)


@pytest.mark.parametrize(
    ("workers", "ps", "form", "message"),
    [
        ([[3, 0, 1]], [], 0, "job a.worker: slot 3, server 0 outside the instance"),
        ([[0, 2, 1]], [], 0, "job a.worker: slot 0, server 2 outside the instance"),
        ([[-1, 0, 1]], [], 0, "job a.worker: slot -1, server 0 outside the instance"),
        ([[0, 0, 1]], [[0, 1, 1]], 0, "job a.ps: slot 0, server 1 outside the instance"),
        ([[0, 0, 1]], [], 1, "job a.form: expected an integer <= 0, got 1"),
    ],
)
def test_what_is_outside_the_instance_is_named(workers, ps, form, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        committed(INSTANCE, {"a": Schedule("a", workers, ps, form)})


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(1, 3)), min_size=1, max_size=6
    )
)
def test_the_sum_over_all_places_is_the_work_times_the_demand(rows):
    """Rows may name one place twice: both count; a job that the instance does not have does not."""
    several = {name: Schedule(name, rows, []) for name in "ac"}
    worker, ps = committed(INSTANCE, several)
    assert not ps.any()
    total = sum(count for _, _, count in rows)
    assert worker.sum(axis=(0, 1)).tolist() == [total * 1.0, total * 1.0]
    for slot in range(3):
        for server in range(2):
            here = sum(count for t, h, count in rows if (t, h) == (slot, server))
            assert worker[slot, server, 0] == here


def test_a_node_that_closes_soon_is_for_jobs_that_end_before():
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


def test_machines_are_closed_in_the_slots_of_a_window_also_as_plain_data():
    calendar = Calendar(
        (CalendarEntry("b", 4, 6, frozenset({0, 1})), CalendarEntry("c", 5, 7, frozenset({0})))
    )
    closed = [set(calendar.closed(slot)) for slot in range(3, 8)]
    assert closed == [set(), {0, 1}, {0, 1}, {0}, set()]
    assert Calendar.from_dict(calendar.to_dict()) == calendar
    assert not EVER_OPEN
