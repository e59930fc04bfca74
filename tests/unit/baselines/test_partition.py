"""The MILP of Dorm on cases small enough to be solved in the head."""

from __future__ import annotations

import pytest

from baselines.dorm import Candidate, Partition
from baselines.fair_shares import Fairness, Portions
from oasis.scheduling.job import NOTHING, Allocation, PolicyJob
from oasis.scheduling.site import Machine, Site

NODES = 1000
SITE = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
FULL = [machine.capacity for machine in SITE.machines]


def job(index: int, most: int = 8, least: int = 1) -> PolicyJob:
    return PolicyJob(
        f"j{index}", 0.0, 60.0, ((0, 1),), min_workers=least, max_workers=most, index=index
    )


def partition(
    held: dict[int, Allocation],
    jobs: dict[int, PolicyJob] | None = None,
    most_loss: float = 9.0,
    most_changes: int = 9,
    site: Site = SITE,
) -> Partition:
    """A MILP with all jobs of `held` as candidates, and no other jobs."""
    made = jobs or {index: job(index) for index in held}
    free = [machine.capacity for machine in site.machines]
    portions = Portions(site)
    fairness = Fairness.among(made, portions, free)
    candidates = [
        Candidate.of(made[index], allocation, portions, fairness)
        for index, allocation in held.items()
    ]
    return Partition(site, free, candidates, most_loss, most_changes)


def answer(*arguments: object, **options: object) -> dict[int, Allocation]:
    status, found = partition(*arguments, **options).solve(NODES)  # type: ignore[arg-type]
    assert status == "optimal"
    assert found is not None
    return found


def counts(found: dict[int, Allocation]) -> dict[int, int]:
    return {index: allocation.worker_count for index, allocation in found.items()}


def test_a_candidate_runs_if_it_holds_workers() -> None:
    portions = Portions(SITE)
    fairness = Fairness({0: 0.125}, {0: 0.5}, kinds=1)
    waits = Candidate.of(job(0), NOTHING, portions, fairness)
    assert (waits.runs, waits.per_worker, waits.fair) == (False, 0.125, 0.5)
    assert [portion.tolist() for portion in waits.portions] == [[0.125], [0.0]]
    assert Candidate.of(job(0), Allocation(((0, 1),)), portions, fairness).runs


def test_one_job_alone_gets_all_it_can_use() -> None:
    assert counts(answer({0: NOTHING})) == {0: 8}
    assert counts(answer({0: NOTHING}, {0: job(0, most=3)})) == {0: 3}


def test_fairness_shares_the_machines_between_two() -> None:
    """Half each is fair; without a limit any split with both is as good."""
    assert counts(answer({0: NOTHING, 1: NOTHING}, most_loss=0.0)) == {0: 4, 1: 4}
    assert sum(counts(answer({0: NOTHING, 1: NOTHING})).values()) == 8


def test_to_run_one_job_more_comes_before_utilisation() -> None:
    """Seven workers of the one and one of the other, never eight of one alone."""
    jobs = {0: job(0, least=7), 1: job(1, most=1)}
    assert counts(answer({0: NOTHING, 1: NOTHING}, jobs)) == {0: 7, 1: 1}


def test_without_leave_to_adjust_who_runs_stays_where_it_is() -> None:
    held = Allocation(((1, 3),))
    found = answer({0: held, 1: NOTHING}, most_changes=0)
    assert found[0] == held
    assert found[1].worker_count == 5


def test_with_leave_a_job_shrinks_for_another() -> None:
    """Eight GPUs held by one job: the other starts only if the first may be adjusted."""
    held = Allocation(((0, 4), (1, 4)))
    assert counts(answer({0: held, 1: NOTHING}, most_changes=0)) == {0: 8, 1: 0}
    found = answer({0: held, 1: NOTHING}, most_changes=1)
    assert found[1].worker_count >= 1
    assert found[0].worker_count + found[1].worker_count == 8


def test_a_job_that_runs_is_never_stopped() -> None:
    """The other alone would use all eight GPUs, not five."""
    jobs = {0: job(0, most=5, least=5), 1: job(1, least=5)}
    held = Allocation(((0, 4), (1, 1)))
    assert counts(answer({0: held, 1: NOTHING}, jobs)) == {0: 5, 1: 0}
    assert counts(answer({0: NOTHING, 1: NOTHING}, jobs)) == {0: 0, 1: 8}


def test_workers_come_with_the_parameter_servers_that_they_need() -> None:
    """One of a core for every two workers; the host has three cores, which makes six workers."""
    machines = (
        Machine("w0", (8.0, 0.0), frozenset({"worker"})),
        Machine("p0", (0.0, 3.0), frozenset({"ps"})),
    )
    made = PolicyJob(
        "a", 0.0, 60.0, ((0, 1),), ((1, 1),), max_workers=8, ps_per_worker=0.5, index=0
    )
    found = answer({0: NOTHING}, {0: made}, site=Site(("gpu", "cpu"), machines))
    assert found[0] == Allocation(((0, 6),), ((1, 3),))


def test_limits_that_cannot_hold_leave_no_answer() -> None:
    """Both run, one with too much, and nobody may be adjusted: the loss stays above nothing."""
    held = {0: Allocation(((0, 4), (1, 2))), 1: Allocation(((1, 2),))}
    status, found = partition(held, most_loss=0.0, most_changes=0).solve(NODES)
    assert found is None
    assert status == "infeasible without a solution"


def test_the_rows_are_named_after_what_they_say() -> None:
    made = partition({0: Allocation(((0, 1),)), 1: NOTHING})
    names = {row.name for row in made.problem.constraints()}
    assert {"fairness", "adjustment", "capacity_0_0", "capacity_1_0"} <= names
    assert {"fewest_0", "above_1", "below_1", "least_worker_0_0"} <= names
    assert "least_worker_1_0" not in names  # who waits has nothing to lose


@pytest.mark.parametrize("lost", [0, 1])
def test_on_what_is_left_of_the_machines_nobody_is_put_elsewhere(lost: int) -> None:
    portions = Portions(SITE)
    free = [(0,) if k == lost else row for k, row in enumerate(FULL)]
    fairness = Fairness.among({0: job(0)}, portions, free)
    candidate = Candidate.of(job(0), NOTHING, portions, fairness)
    status, found = Partition(SITE, free, [candidate], 9.0, 9).solve(NODES)
    assert (status, found) == ("optimal", {0: Allocation(((1 - lost, 4),))})
