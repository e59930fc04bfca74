"""Every constraint (2)-(13) and all that a result or a run states: what is broken is named."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import oasis
from oasis import (
    Cluster,
    Constant,
    Decision,
    Instance,
    Job,
    Piecewise,
    Run,
    Schedule,
    Server,
    VerificationError,
)
from oasis.certify.verify import MANY, suspects, verify_decisions, verify_schedule
from oasis.model.rounding import TOLERANCE
from tests import builders
from tests.oracle.tiny import seeded, tiny_instance

CLUSTER = Cluster(
    ("cpu", "bandwidth_gbps"),
    (Server("w", {"cpu": 4.0, "bandwidth_gbps": 4.0}, 2),),
    (
        Server("p0", {"cpu": 2.0, "bandwidth_gbps": 4.0}),
        Server("p1", {"cpu": 2.0, "bandwidth_gbps": 1.0}),
    ),
    1.0,
)


def job(name: str, arrival: int, **changes: Any) -> Job:
    """Four worker-slots, at most three workers at once, one parameter server for two workers."""
    fields: dict[str, Any] = {
        "minibatch_time": 4 / 3,
        "worker": {"cpu": 1.0, "bandwidth_gbps": 0.5},
        "ps": {"cpu": 1.0, "bandwidth_gbps": 1.0},
        "utility": Piecewise((0.0, 4.0), (10.0, 6.0)),
    }
    return builders.job(name, arrival, workers=3, **(fields | changes))


INSTANCE = Instance(5, CLUSTER, (job("a", 1), job("b", 0)))
WORKERS = [[1, 0, 2], [1, 1, 1], [2, 0, 1]]
PS = [[1, 0, 2], [2, 1, 1]]
VALID = {
    "a": Schedule("a", WORKERS, PS),
    "b": Schedule("b", [[0, 0, 2], [1, 1, 2]], [[0, 0, 1], [1, 1, 1]]),
}


def with_a(workers: list[list[int]] = WORKERS, ps: list[list[int]] = PS) -> dict[str, Schedule]:
    return VALID | {"a": Schedule("a", workers, ps)}


def test_valid_schedules_are_worth_what_their_utilities_say():
    """a completes in slot 2 after arriving in 1, b in slot 1 after 0: one slot of delay each."""
    assert oasis.verify(INSTANCE, VALID) == 9.0 + 9.0
    assert oasis.verify(INSTANCE, {}) == 0.0


BROKEN = tomllib.loads(Path(__file__).with_name("broken_schedules.toml").read_text())


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_broken_schedule_names_constraint_job_slot_and_server(case):
    with pytest.raises(VerificationError) as caught:
        oasis.verify(INSTANCE, with_a(case["workers"], case["ps"]))
    error = caught.value
    assert error.constraint.split()[0] == case["constraint"]
    found = (error.job, error.slot, error.server)
    assert found == ("a", case.get("slot"), case.get("server"))
    assert str(error).startswith(f"{error.constraint} [job a")


def test_a_slot_with_fewer_workers_than_the_minimum_is_named():
    """Job a has three workers in slot 1 and one in slot 2."""
    wide = Instance(5, CLUSTER, (job("a", 1, min_workers=2), job("b", 0, min_workers=2)))
    with pytest.raises(VerificationError) as caught:
        oasis.verify(wide, VALID)
    assert str(caught.value) == "minimum of workers [job a, slot 2]: 1 < 2"
    enough = with_a([[1, 0, 1], [1, 1, 1], [3, 0, 2]], [[1, 0, 1], [3, 1, 1]])
    assert oasis.verify(wide, enough) == 8.0 + 9.0


BIG = {"worker": {"cpu": 3.0, "bandwidth_gbps": 0.5}}


@pytest.mark.parametrize(
    ("instance", "schedules", "says"),
    [
        # three workers of a beside two of b make 5 CPUs on a server of 4
        (
            INSTANCE,
            with_a([[1, 1, 3], [2, 0, 1]], PS),
            "(4) worker capacity [slot 1, server w#1]: cpu: 5 used, capacity 4",
        ),
        # p1 has CPUs for one parameter server of each job, but bandwidth for one in all
        (
            INSTANCE,
            with_a(ps=[[1, 0, 1], [1, 1, 1], [2, 1, 1]]),
            "(5) parameter-server capacity [slot 1, server p1]: bandwidth_gbps: 2 used, capacity 1",
        ),
        # a single job alone
        (
            Instance(5, CLUSTER, (job("a", 0, **BIG),)),
            {"a": Schedule("a", [[0, 0, 2], [1, 0, 2]], [[0, 0, 1], [1, 0, 1]])},
            "(4) worker capacity [slot 0, server w#0]: cpu: 6 used, capacity 4",
        ),
    ],
)
def test_a_server_that_holds_too_much_is_named(instance, schedules, says):
    with pytest.raises(VerificationError) as caught:
        oasis.verify(instance, schedules)
    assert str(caught.value) == says


def test_a_full_server_is_not_overfull_by_rounding():
    """Ten workers of 0.1 use 0.9999999999999999 or 1.0 of one CPU; 1.000001 is too much."""
    cluster = Cluster(("cpu",), (Server("w", {"cpu": 1.0}),), (Server("p", {}),), 1.0)
    for demand, fits in ((0.1, True), (0.1 + 1e-12, True), (0.1 + 1e-7, False)):
        one = Job("j", 0, 1, 10, 1, 1.0, 0.0, {"cpu": demand}, {}, Constant(1.0))
        instance, schedules = Instance(1, cluster, (one,)), {"j": Schedule("j", [[0, 0, 10]], [])}
        if fits:
            assert oasis.verify(instance, schedules) == 1.0
        else:
            with pytest.raises(VerificationError, match=r"\(4\)"):
                oasis.verify(instance, schedules)


def test_schedules_that_are_not_of_their_job_are_refused():
    with pytest.raises(VerificationError, match=r"\(1\) jobs \[job x\]: the instance has no such"):
        oasis.verify(INSTANCE, {"x": Schedule("x", WORKERS, PS)})
    with pytest.raises(VerificationError, match=r"\(1\) jobs \[job a\]: is filed for 'b'"):
        oasis.verify(INSTANCE, {"a": VALID["b"]})


EARNED = 18.0  # by VALID


@pytest.mark.parametrize(
    ("stated", "says"),
    [
        ({"objective": EARNED, "upper_bound": None}, None),
        ({"objective": EARNED * (1 + 1e-12), "upper_bound": EARNED}, None),
        ({"upper_bound": 1e9}, None),
        ({"upper_bound": EARNED * (1 - 1e-9)}, None),
        ({"upper_bound": EARNED * (1 - 1e-6)}, None),
        ({"upper_bound": EARNED * (1 - 1e-4)}, "(1) bound: upper_bound is 17.998"),
        ({"upper_bound": 0.0}, "(1) bound: upper_bound is 0.0, a schedule has 18.0"),
        ({"upper_bound": -1.0}, "(1) bound: upper_bound is -1.0, a schedule has 18.0"),
        ({"objective": 18.5}, "(1) objective: objective is 18.5, recomputed 18"),
        ({"total_utility": 18.5}, "(1) objective: total_utility is 18.5, recomputed 18"),
        ({"objective": EARNED * (1 + 1e-6)}, "(1) objective"),
        ({"objective": 0.0}, "(1) objective"),
        ({"schedules": {}, "objective": 1e-13}, None),
        ({"schedules": {}, "objective": 1e-9}, "(1) objective"),
    ],
)
def test_what_a_result_states_is_what_is_recomputed_but_for_rounding(stated, says):
    result = SimpleNamespace(**({"schedules": VALID} | stated))
    if says is None:
        assert oasis.verify(INSTANCE, result) == (EARNED if result.schedules else 0.0)
    else:
        with pytest.raises(VerificationError, match=f"^{re.escape(says)}"):
            oasis.verify(INSTANCE, result)


def test_completion_counts_from_the_last_slot_with_a_worker():
    """(8): a worker more in the last slot costs delay, whether or not the work was done before."""
    late = with_a([*WORKERS, [4, 0, 1]], [*PS, [4, 0, 1]])
    assert oasis.verify(INSTANCE, late) == 7.0 + 9.0


def test_runs_with_a_tampered_schedule_or_utility_are_refused():
    run = oasis.simulate(INSTANCE, oasis.OASiS.from_instance(INSTANCE))
    oasis.verify(INSTANCE, run)
    first = run.decisions[0]
    assert first.schedule is not None
    fewer = replace(first.schedule, workers=first.schedule.workers[:-1])
    for broken in (
        replace(first, utility=first.utility + 1),
        replace(first, schedule=fewer),
    ):
        with pytest.raises(VerificationError):
            oasis.verify(INSTANCE, replace(run, decisions=(broken, *run.decisions[1:])))


CPUS = Cluster(("cpu",), (Server("w", {"cpu": 2.0}),), (Server("p", {"cpu": 1.0}),), 1.0)
ALONE = builders.job("a", worker={"cpu": 1.0}, utility=Constant(1.0))


def test_even_work_that_rounding_forgives_needs_a_worker():
    hardly = Instance(2, CPUS, (replace(ALONE, minibatch_time=1e-12),))
    assert oasis.verify(hardly, {"a": Schedule("a", [[0, 0, 1]], [])}) == 1.0
    with pytest.raises(VerificationError, match=r"\(2\) training work.*0 worker-slots"):
        oasis.verify(hardly, {"a": Schedule("a", [], [])})


def test_work_is_steps_times_compute_time_and_the_transfer_of_the_gradients():
    """125 MB are 1 Gbit: out and back at 2 Gbit/s take 1 s, half a slot of 2 s.

    A minibatch so takes 0.25 + 0.5 slots, and 3 * 2 * 4 of them 18 worker-slots.
    """
    amounts = {"cpu": 1.0, "bandwidth_gbps": 2.0}
    machine = {"cpu": 2.0, "bandwidth_gbps": 4.0}
    cluster = Cluster(tuple(machine), (Server("w", machine),), (Server("p", machine),), 2.0)
    steps = {"epochs": 3, "chunks": 2, "minibatches": 4, "minibatch_time": 0.25}
    job = replace(ALONE, **steps, gradient_mb=125.0, worker=amounts, ps=amounts)
    instance = Instance(10, cluster, (job,))
    busy = [[slot, 0, 2] for slot in range(9)]
    assert oasis.verify(instance, {"a": Schedule("a", busy, busy)}) == 1.0
    fewer = [[0, 0, 1], *busy[1:]]
    with pytest.raises(VerificationError, match=r"17 worker-slots, needs 18$"):
        oasis.verify(instance, {"a": Schedule("a", fewer, fewer)})


# -- what a run states of each decision, not only that its utilities add up ------------------------

TESTBED = oasis.generate("testbed", seed=3)
RUN = oasis.simulate(TESTBED, oasis.OASiS.from_instance(TESTBED))
ADMITTED = next(d for d in RUN.decisions if d.admitted)
REJECTED = next(d for d in RUN.decisions if not d.admitted)
UNFINISHED = Decision(REJECTED.job_id, True, reason="did not finish within the horizon")
WORTH, LATER = ADMITTED.utility, (ADMITTED.completion or 0) + 1
PRICED, UNPRICED, EITHER = (True,), (False,), (True, False)


def said(decision: Decision, is_priced: bool) -> Run:
    """The run with this decision on its job, as of a policy with prices or without."""
    decisions = tuple(decision if d.job_id == decision.job_id else d for d in RUN.decisions)
    return replace(RUN, decisions=decisions, bounds=RUN.bounds if is_priced else None)


@pytest.mark.parametrize(
    ("decision", "changes", "policies", "says"),
    [
        (ADMITTED, {"completion": LATER}, EITHER, "states"),
        (ADMITTED, {"payoff": 1e9}, EITHER, "states"),
        (ADMITTED, {"cost": -5.0, "payoff": WORTH + 5.0}, EITHER, "cost -5.0"),
        (ADMITTED, {"cost": -1e-3, "payoff": WORTH + 1e-3}, EITHER, "cost -0.001"),
        (ADMITTED, {"admitted": False}, EITHER, "admitted is False, schedule is <Schedule: "),
        (ADMITTED, {"cost": WORTH, "payoff": 0.0}, PRICED, "admitted at the payoff 0.0"),
        (ADMITTED, {"cost": WORTH + 0.5, "payoff": -0.5}, PRICED, "admitted at the payoff"),
        (REJECTED, {"payoff": 1.0}, EITHER, "states"),
        (REJECTED, {"cost": 0.5, "payoff": -0.5}, EITHER, "cost 0.5"),
        (UNFINISHED, {}, PRICED, "admitted is True, schedule is None"),
        (UNFINISHED, {"utility": 1.0, "payoff": 1.0}, UNPRICED, "states"),
        (UNFINISHED, {"payoff": 1e-9}, UNPRICED, "states"),
        (UNFINISHED, {"completion": 3}, UNPRICED, "states"),
        (UNFINISHED, {"cost": 1e-3, "payoff": -1e-3}, UNPRICED, "cost 0.001"),
        (UNFINISHED, {"cost": -1.0, "payoff": 1.0}, UNPRICED, "cost -1.0"),
    ],
)
def test_a_false_statement_about_a_decision_is_refused(decision, changes, policies, says):
    for is_priced in policies:
        with pytest.raises(VerificationError, match=f"^decisions.*{re.escape(says)}"):
            oasis.verify(TESTBED, said(replace(decision, **changes), is_priced))


@pytest.mark.parametrize(
    ("decision", "changes", "policies"),
    [
        (ADMITTED, {"cost": 0.0, "payoff": WORTH}, EITHER),
        (ADMITTED, {"cost": WORTH, "payoff": 0.0}, UNPRICED),
        (ADMITTED, {"cost": WORTH + 0.5, "payoff": -0.5}, UNPRICED),
        (UNFINISHED, {}, UNPRICED),
    ],
)
def test_what_a_policy_may_say_passes(decision, changes, policies):
    for is_priced in policies:
        verify_decisions(TESTBED, said(replace(decision, **changes), is_priced))


def test_decisions_are_one_for_each_job_in_order_and_with_its_own_utility():
    strange = tuple(replace(d, job_id="nobody") if d is REJECTED else d for d in RUN.decisions)
    for decisions in (RUN.decisions[:-1], (*RUN.decisions, REJECTED), strange):
        with pytest.raises(VerificationError, match="one for each job"):
            oasis.verify(TESTBED, replace(RUN, decisions=decisions))
    first, second = [k for k, d in enumerate(RUN.decisions) if d.admitted][:2]
    swapped = list(RUN.decisions)
    for here, there in ((first, second), (second, first)):
        swapped[here] = replace(RUN.decisions[here], utility=RUN.decisions[there].utility)
    with pytest.raises(VerificationError, match="decisions"):
        oasis.verify(TESTBED, replace(RUN, decisions=tuple(swapped)))


def test_payoff_far_below_the_utility_may_differ_in_the_digits_of_the_utility():
    """Utilities agree to the last bit or so; near-equal cost leaves the payoff no digits."""
    cost, stated = WORTH * (1 - 1e-12), float(np.nextafter(WORTH, np.inf))
    narrow = replace(ADMITTED, cost=cost, utility=stated, payoff=stated - cost)
    oasis.verify(TESTBED, said(narrow, is_priced=True))


# -- whatever the check of one schedule refuses is a suspect, and valid ones are none --------------

SIX_JOBS = oasis.generate("testbed", jobs=6, seed=2)


def _jobs(instance: Instance) -> dict[str, Job]:
    return {job.id: job for job in instance.jobs}


def _valid(instance: Instance) -> dict[str, Schedule]:
    return dict(oasis.simulate(instance, oasis.OASiS.from_instance(instance)).schedules)


def _refused(instance: Instance, schedules: dict[str, Schedule]) -> list[str]:
    refused, jobs = [], _jobs(instance)
    for job_id, schedule in schedules.items():
        try:
            verify_schedule(instance, jobs[job_id], schedule)
        except VerificationError:
            refused.append(job_id)
    return refused


def _changed(schedule: Schedule, rng: np.random.Generator) -> Schedule:
    """One or two numbers in it are a little different, or rows are missing or twice there."""
    tables = [np.array(schedule.workers), np.array(schedule.ps)]
    for _ in range(int(rng.integers(1, 3))):
        which = int(rng.integers(0, 2))
        rows = tables[which]
        if not len(rows):
            continue
        at = int(rng.integers(0, len(rows)))
        kind = int(rng.integers(0, 5))
        if kind == 0:
            tables[which] = np.delete(rows, at, axis=0)
        elif kind == 1:
            tables[which] = np.concatenate([rows, rows[at : at + 1]])
        else:
            rows[at, kind - 2] += int(rng.choice([-20, -1, 1, 1000]))
    return Schedule(schedule.job_id, *tables)


def _refused_in_all(instance: Instance, rounds: int, seed: int) -> int:
    """How many changed schedules are refused, each of which must be a suspect, and no other."""
    rng = np.random.default_rng(seed)
    valid, jobs, found = _valid(instance), _jobs(instance), 0
    for _ in range(rounds):
        mixed = {
            job_id: _changed(schedule, rng) if rng.random() < 0.5 else schedule
            for job_id, schedule in valid.items()
        }
        refused = _refused(instance, mixed)
        found += len(refused)
        assert suspects(instance, jobs, mixed) == refused
    return found


TINY = [tiny_instance(seeded(seed)) for seed in range(60)]
WIDE = [replace(job, min_workers=min(4, job.chunks)) for job in SIX_JOBS.jobs]


@pytest.mark.parametrize(
    ("instances", "rounds", "least"),
    [
        ([SIX_JOBS], 400, 200),
        (TINY, 20, 200),  # some jobs need no parameter server, or a part of one
        ([replace(SIX_JOBS, jobs=tuple(WIDE))], 200, 100),
    ],
    ids=["one", "tiny", "wide"],
)
def test_exactly_those_that_the_single_check_refuses_are_suspects(instances, rounds, least):
    assert sum(_refused_in_all(instance, rounds, seed=5) for instance in instances) > least


@pytest.mark.parametrize("part", [-2.0, -1.0, -0.5, 0.5, 0.999, 1.001, 2.0])
def test_work_that_rounding_forgives_is_forgiven_alike(part):
    """Three worker-slots are done; there are more or fewer to do by part of the tolerance."""
    work = {"epochs": 1, "chunks": 3, "minibatches": 1, "gradient_mb": 0.0}
    job = replace(SIX_JOBS.jobs[0], **work, minibatch_time=1.0 + part * TOLERANCE)
    instance = replace(SIX_JOBS, jobs=(job,))
    at = job.arrival
    schedule = Schedule(job.id, [[at, 0, 3]], [[at, 0, int(job.ps_needed(3))]])
    refused = _refused(instance, {job.id: schedule})
    assert suspects(instance, {job.id: job}, {job.id: schedule}) == refused
    assert bool(refused) == (part > 1.0)


def test_a_schedule_without_rows_and_one_with_enormous_counts_are_suspects():
    name, schedule = next(iter(_valid(SIX_JOBS).items()))
    rows = np.array(schedule.workers)
    rows[0, 2] = MANY + 1
    for wrong in (Schedule(name, [], []), Schedule(name, rows, schedule.ps)):
        assert suspects(SIX_JOBS, _jobs(SIX_JOBS), {name: wrong}) == [name]
