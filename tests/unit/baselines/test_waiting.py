"""Lines of jobs of one size, and ends in order, against plain lists."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from baselines import EASY
from baselines.queues import Ends, Waiting
from oasis.simulator import PlainJob, replay, rigid_workload

steps = st.lists(
    st.tuples(st.booleans(), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=60
)
kinds = st.sets(st.booleans())


@given(steps, st.integers(-1, 31), st.integers(0, 10), kinds)
def test_the_next_job_is_that_of_a_plain_list(
    steps: list[tuple[bool, int, int]], after: int, most: int, failed: set[bool]
) -> None:
    waiting, expected = Waiting(), dict[int, float]()
    for enters, index, work in steps:
        if enters and index not in expected:
            waiting.enter(index, float(work))
            expected[index] = float(work)
        elif not enters and expected.pop(index, None) is not None:
            waiting.leave(index)
        behind = [k for k in sorted(expected) if k > after]
        wanted = [k for k in behind if (expected[k] <= most) not in failed]
        found = waiting.next(after, failed, lambda work: work <= most)
        assert found == next(iter(wanted), None)
        assert waiting.has_after(after) == bool(behind)
        assert bool(waiting) == bool(expected)


@given(
    st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 9), st.integers(0, 3))),
    st.lists(st.integers(0, 12), max_size=4),
    st.sets(st.integers(0, 20)),
)
def test_ends_come_in_order_however_late_they_are(
    jobs: dict[int, tuple[int, int]], more: list[int], gone: set[int]
) -> None:
    ends = Ends()
    for index, (bound, _) in jobs.items():
        ends.add(index, float(bound))
    for index in gone:
        ends.remove(index)
    real = {k: float(bound + late) for k, (bound, late) in jobs.items() if k not in gone}
    others = [(float(time), 100 + k) for k, time in enumerate(more)]
    found = list(ends.in_order(others, lambda index: real[index]))
    assert found == sorted([*others, *((end, index) for index, end in real.items())])


class Counted(EASY):
    """Counts the jobs that it looks at, and the ends that it asks for."""

    asked = tried = 0

    def _end_after(self, *arguments: Any) -> float:
        self.asked += 1
        return super()._end_after(*arguments)

    def _start(self, *arguments: Any) -> Any:
        self.tried += 1
        return super()._start(*arguments)


def looks(count: int) -> tuple[float, float]:
    """Looks of EASY at each of `count` jobs of four sizes, of which nearly all wait at once."""
    rows = [(float(k), 50.0 + 37 * k % 101, (1, 2, 4, 3)[k % 4]) for k in range(count)]
    jobs = [PlainJob(f"j{k}", *row) for k, row in enumerate(rows)]
    policy = Counted()
    replay(rigid_workload(jobs, 1, 8), policy)
    return policy.asked / count, policy.tried / count


def test_a_line_ten_times_as_long_costs_each_job_no_more_looks() -> None:
    """A look at each job that waits would be ten times as many for each of them."""
    asked, tried = looks(200)
    more_asked, more_tried = looks(2000)
    assert more_tried < 1.5 * tried < 12
    # The tree is a few levels higher.
    assert more_asked < 2.5 * asked
