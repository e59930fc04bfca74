"""Shares of jobs, the line that ordered policies serve, and how policies are made and place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.counts import Placing
from baselines.fair_shares import Fairness, Portions, Shares, fair_shares
from baselines.preemptive import Ordered
from baselines.queues import FIT, STRICT
from baselines.registry import ALL, CONTROLLERS, POLICIES, QUEUES, make
from oasis.driver.books import BooksView
from oasis.model.groups import TaskGroup
from oasis.model.rounding import FloatArray
from oasis.scheduling.job import NOTHING, Allocation, FixedPs, PolicyJob
from oasis.scheduling.placement import BestFit, RoundRobin, Spread
from oasis.scheduling.policy import Plan, View
from oasis.scheduling.site import Machine, Site
from oasis.simulator.state import JobProgress, State

# Eight GPUs and sixteen cores for workers, eight cores for parameter servers.
SITE = Site(
    ("gpu", "cpu"),
    (
        Machine("w0", (4.0, 8.0), frozenset({"worker"})),
        Machine("w1", (4.0, 8.0), frozenset({"worker"})),
        Machine("p0", (0.0, 8.0), frozenset({"ps"})),
    ),
)
FULL = [machine.capacity for machine in SITE.machines]
WORKER, PS = ((0, 1), (1, 1)), ((1, 2),)


def job(name: str = "a", index: int = 0, **changes: object) -> PolicyJob:
    given = {"ps": PS, "max_workers": 4, "ps_per_worker": 0.5, "index": index}
    return PolicyJob(name, 0.0, 60.0, WORKER, **(given | changes))  # type: ignore[arg-type]


# -- shares ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "ps", "share"),
    [(0, 0, 0.0), (1, 0, 1 / 8), (4, 1, 4 / 8), (1, 1, 2 / 8), (0, 3, 6 / 8)],
)
def test_the_dominant_share_is_the_largest_of_any_resource(
    workers: int, ps: int, share: float
) -> None:
    assert Shares(SITE).dominant(job(), workers, ps) == share


def test_a_job_that_asks_for_nothing_has_no_share() -> None:
    assert Shares(SITE).dominant(job(ps=()), 0, 5) == 0.0


def test_cores_of_workers_and_of_parameter_servers_are_two_resources() -> None:
    portions = Portions(SITE)
    assert portions.totals.tolist() == [8.0, 16.0, 0.0, 8.0]
    assert portions.kinds == 3
    assert portions.of_task(job(), TaskGroup.WORKER).tolist() == [1 / 8, 1 / 16, 0.0, 0.0]
    assert portions.of_task(job(), TaskGroup.PS).tolist() == [0.0, 0.0, 0.0, 2 / 8]


def test_a_worker_comes_with_its_part_of_a_parameter_server() -> None:
    portions = Portions(SITE)
    assert portions.of_worker(job()).tolist() == [1 / 8, 1 / 16, 0.0, 1 / 8]
    fixed = job(ps_per_worker=0.0, ps_rule=FixedPs(1), min_workers=2)
    assert portions.of_worker(fixed).tolist() == [1 / 8, 1 / 16, 0.0, 1 / 8]
    alone = job(ps_per_worker=0.0)
    assert portions.of_worker(alone).tolist() == [1 / 8, 1 / 16, 0.0, 0.0]


def test_what_no_machine_has_counts_for_nothing() -> None:
    assert Portions(SITE).of_task(job(ps=((0, 1),)), TaskGroup.PS).tolist() == [0.0] * 4


def test_supply_is_the_share_of_machines_that_are_there() -> None:
    portions = Portions(SITE)
    assert portions.supply(FULL).tolist() == [1.0, 1.0, 0.0, 1.0]
    assert portions.supply([FULL[0], (0, 0), FULL[2]]).tolist() == [0.5, 0.5, 0.0, 1.0]


def vectors(*rows: list[float]) -> dict[int, FloatArray]:
    return {k: np.array(row) for k, row in enumerate(rows)}


def test_dominant_shares_of_the_example_of_drf() -> None:
    """Ghodsi et al., section 4.1: 9 CPUs and 18 GB; A takes (1, 4), B (3, 1): both get 2/3.

    A runs three tasks of 4 GB, B two tasks of 3 CPUs.
    """
    portions = vectors([1 / 9, 4 / 18], [3 / 9, 1 / 18])
    shares = fair_shares(portions, {0: 99, 1: 99}, np.ones(2))
    assert shares == pytest.approx({0: 2 / 3, 1: 2 / 3})


def test_what_one_job_cannot_use_goes_to_the_others() -> None:
    portions = vectors([0.1], [0.1], [0.1])
    assert fair_shares(portions, {0: 1, 1: 99, 2: 99}, np.ones(1)) == pytest.approx(
        {0: 0.1, 1: 0.45, 2: 0.45}
    )


def test_jobs_that_need_other_resources_go_on_growing() -> None:
    portions = vectors([0.1, 0.0], [0.1, 0.0], [0.0, 0.1])
    assert fair_shares(portions, dict.fromkeys(range(3), 99), np.ones(2)) == pytest.approx(
        {0: 0.5, 1: 0.5, 2: 1.0}
    )


def test_a_resource_that_is_gone_stops_only_who_needs_it() -> None:
    portions = vectors([0.1, 0.1], [0.1, 0.0], [0.0, 0.0])
    found = fair_shares(portions, dict.fromkeys(range(3), 99), np.array([1.0, 0.0]))
    assert found == pytest.approx({0: 0.0, 1: 1.0, 2: 0.0})


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
)
def test_shares_fit_and_are_full_somewhere_for_everybody_who_wants_more(
    rows: list[list[int]], most: list[int]
) -> None:
    portions = {k: np.array(row) / 10 for k, row in enumerate(rows)}
    limits = dict(enumerate(most[: len(rows)]))
    shares = fair_shares(portions, limits, np.ones(2))
    used = np.zeros(2)
    for k, portion in portions.items():
        if portion.max():
            used += shares[k] * portion / portion.max()
    assert (used <= 1 + 1e-9).all()
    for k, portion in portions.items():
        is_capped = shares[k] >= portion.max() * limits[k] - 1e-9
        assert is_capped or (used[portion > 0] >= 1 - 1e-9).any()


def test_the_loss_is_the_distance_from_the_fair_share() -> None:
    """Two alike: each of them may have half of the GPUs, four workers of an eighth."""
    jobs = {0: job("a", 0, max_workers=8), 1: job("b", 1, max_workers=8)}
    fairness = Fairness.among(jobs, Portions(SITE), FULL)
    assert fairness.fair == pytest.approx({0: 0.5, 1: 0.5})
    assert fairness.per_worker == {0: 0.125, 1: 0.125}
    assert [fairness.loss(0, n) for n in (0, 4, 6)] == pytest.approx([0.5, 0.0, 0.25])
    held = {0: Allocation(((0, 4), (1, 2))), 1: Allocation(((1, 2),))}
    assert fairness.total(held) == pytest.approx(0.25 + 0.25)


# -- the line --------------------------------------------------------------------------------------


class ByName(Ordered):
    """Serves jobs in the order of their names, which are numbers."""

    name = "by-name"

    def key(self, job: PolicyJob, workers: int, view: View) -> float:
        return float(job.id)


class Desk:
    """A policy, and a state that follows its plans, on one machine of four GPUs."""

    def __init__(self, line: str = STRICT) -> None:
        self.site = Site(("gpu",), (Machine("n0", (4.0,)),))
        self.state, self.policy = State(self.site), ByName(line=line)
        self.policy.reset(self.site)
        self.index = 0

    def ask(self, arrive: Mapping[str, int] | None = None, finish: str = "") -> Plan:
        """Let jobs arrive and finish; ask the policy and carry out its plan."""
        view = BooksView(self.state, "by-name", told_remaining=False)
        for progress in [p for p in self.state.jobs.values() if p.job.id in finish.split()]:
            self.state.hold(progress, NOTHING, coupled=False)
            view.finished.append(self.state.jobs.pop(progress.job.index).job)
        for name, workers in (arrive or {}).items():
            made = PolicyJob(
                name,
                0.0,
                9.0,
                ((0, 1),),
                min_workers=workers,
                max_workers=workers,
                index=self.index,
            )
            self.state.jobs[self.index] = JobProgress(made)
            view.arrived.append(made)
            self.index += 1
        plan = self.policy.decide(view)
        for index in plan.rejected:
            del self.state.jobs[index]
        for index, held in sorted(plan.changes.items(), key=lambda item: bool(item[1].workers)):
            self.state.hold(self.state.jobs[index], held, coupled=False)
        return plan

    @property
    def runs(self) -> str:
        return " ".join(sorted(p.job.id for p in self.state.jobs.values() if p.complete))


def test_jobs_are_served_in_the_order_of_their_keys() -> None:
    desk = Desk()
    desk.ask({"3": 2, "1": 2, "2": 2})
    assert desk.runs == "1 2"
    assert [made.id for made, _ in desk.policy.running()] == ["1", "2"]
    desk.ask(finish="1")
    assert desk.runs == "2 3"


def test_a_job_with_a_smaller_key_preempts_and_the_others_keep_their_order() -> None:
    desk = Desk()
    desk.ask({"5": 4})
    plan = desk.ask({"2": 3})
    assert plan.changes == {0: NOTHING, 1: Allocation(((0, 3),))}
    desk.ask({"7": 1})
    assert desk.runs == "2"  # 5 waits before 7 and blocks it
    desk.ask(finish="2")
    assert desk.runs == "5"


def test_who_goes_before_everybody_waiting_is_not_touched() -> None:
    desk = Desk()
    desk.ask({"1": 2, "2": 2})
    assert desk.ask({"3": 1}).changes == {}
    assert desk.ask({"4": 1}).changes == {}


def test_equal_keys_are_served_in_order_of_arrival() -> None:
    desk = Desk()
    desk.ask({"1": 3})
    desk.ask({"1.0": 3})
    assert desk.runs == "1"


@pytest.mark.parametrize(("line", "runs"), [(STRICT, "1"), (FIT, "1 3")])
def test_a_job_that_does_not_fit_blocks_the_line_or_is_passed(line: str, runs: str) -> None:
    desk = Desk(line)
    desk.ask({"1": 3, "2": 3, "3": 1})
    assert desk.runs == runs
    desk.ask(finish="1")
    assert desk.runs == "2 3"


def test_with_fit_a_job_that_lost_its_place_is_paused_and_comes_back() -> None:
    desk = Desk(FIT)
    desk.ask({"5": 3})
    plan = desk.ask({"1": 2, "6": 2})
    assert plan.changes[0] == NOTHING
    assert desk.runs == "1 6"
    desk.ask(finish="1")
    assert desk.runs == "5"  # it goes first again, and 6 does not fit beside it
    desk.ask(finish="5")
    assert desk.runs == "6"


def test_a_job_larger_than_the_cluster_is_rejected_and_blocks_nobody() -> None:
    desk = Desk()
    plan = desk.ask({"1": 5, "2": 4})
    assert plan.rejected == {0: "does not fit the empty cluster"}
    assert desk.runs == "2"


def test_the_line_is_strict_or_lets_pass() -> None:
    with pytest.raises(ValueError, match="line: expected strict or fit, got 'loose'"):
        ByName(line="loose")
    assert ByName(4, line=FIT, placement="spread").parameters == {
        "seed": 4,
        "line": "fit",
        "placement": "spread",
    }


# -- making policies -------------------------------------------------------------------------------


def test_every_policy_is_known_by_its_name_and_in_one_list() -> None:
    lists = (POLICIES, QUEUES, CONTROLLERS)
    assert set(ALL) == {name for names in lists for name in names}
    assert len(ALL) == sum(map(len, lists))
    assert [make(name).name for name in ALL] == list(ALL)


def test_each_make_is_a_new_policy() -> None:
    assert make("fifo") is not make("fifo")


@pytest.mark.parametrize("name", ALL)
def test_the_seed_goes_to_those_that_draw(name: str) -> None:
    parameters = make(name, 5).parameters
    assert parameters.get("seed", 5) == 5
    draws_nothing = {"drf", "dorm", *CONTROLLERS} - {"kubernetes-default"}
    assert ("seed" in parameters) == (name not in draws_nothing)


def test_an_unknown_name_or_option_is_refused() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        make("best")
    assert str(caught.value) == f"policy: expected one of {', '.join(ALL)}, got 'best'"
    with pytest.raises(ValueError, match="placement: expected one of "):
        make("fifo", placement="anywhere")
    with pytest.raises(TypeError, match="thresholds"):
        make("fifo", thresholds=(1.0,))


@pytest.mark.parametrize(
    ("name", "slotted", "rule"),
    [
        (None, False, BestFit),
        (None, True, RoundRobin),
        ("spread", False, Spread),
        ("spread", True, Spread),
    ],
)
def test_without_a_name_the_workload_decides_on_the_placement(
    name: str | None, slotted: bool, rule: type
) -> None:
    placing = Placing(name)
    site = Site(("gpu",), (Machine("n0", (4.0,)),), slotted=slotted)
    assert type(placing.on(site)) is rule
    assert placing.parameters == {"placement": name}
    assert placing.on(site) is not placing.on(site)  # a rule remembers where it was


def test_what_the_empty_cluster_holds_depends_on_the_placement() -> None:
    site = Site(("gpu",), (Machine("n0", (4.0,)), Machine("n1", (4.0,))))
    wide = PolicyJob("a", 0.0, 1.0, ((0, 1),), min_workers=6, max_workers=6)
    assert Placing("best-fit").empty(site).holds(wide, 6, 0)
    assert not Placing("one-node").empty(site).holds(wide, 6, 0)
