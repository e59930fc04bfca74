"""Work is never counted for longer than the pods were seen to run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oasis.kubernetes.control.meter import WorkMeter
from oasis.kubernetes.objects.oasis_job import SlotClock


@given(
    st.lists(st.tuples(st.floats(0.0, 40.0), st.sets(st.sampled_from("abc"))), max_size=12),
    st.floats(0.0, 9.0),
)
def test_at_most_what_ran_and_a_worker_slot_a_slot(
    changes: list[tuple[float, set[str]]], startup: float
) -> None:
    clock = SlotClock(slot_seconds=10.0, startup_seconds=startup)
    meter, ran, credited = WorkMeter(clock), 0.0, 0.0
    changes = sorted(changes, key=lambda change: change[0])
    at, working = 0.0, set()
    boundaries = [10.0, 20.0, 30.0, 40.0]
    for time, workers in [*changes, (40.0, set())]:
        while boundaries and boundaries[0] <= time:
            end = boundaries.pop(0)
            ran += (end - at) * len(working)
            at = end
            slots = meter.close(end).get("j", 0.0)
            assert slots <= 3 + 1e-9
            credited += slots * clock.work_seconds
        ran += (time - at) * len(working)
        at, working = time, workers
        meter.note("j", sorted(workers), time)
    assert credited <= ran + 1e-6


def test_what_was_broken_and_is_whole_again_is_told() -> None:
    meter = WorkMeter(SlotClock(slot_seconds=10.0))
    meter.note("j", ["a"], 0.0)
    meter.note("j", [], 3.0)
    meter.note("j", ["b"], 7.5)
    assert meter.idle("j") == (4.5, 4.5)
    assert meter.close(10.0) == {"j": 0.55}
    meter.note("j", [], 12.0)
    meter.note("j", ["c"], 13.0)
    assert meter.idle("j") == (5.5, 1.0)
    assert meter.idle("nobody") == (0.0, 0.0)


def test_a_worker_that_the_plan_took_away_earns_nothing_in_the_slot() -> None:
    """It may run a little longer; what is noted is that it ceased when the slot began."""
    meter = WorkMeter(SlotClock(slot_seconds=10.0, startup_seconds=9.0))
    meter.note("j", ["a", "b"], 0.0)
    assert meter.close(10.0) == {"j": 2.0}
    meter.note("j", ["a"], 10.0)
    assert meter.close(20.0) == {"j": 1.0}
