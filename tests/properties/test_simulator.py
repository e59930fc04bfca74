"""Whatever a policy answers, the engine stays consistent."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oasis import (
    NOTHING,
    Allocation,
    ChangeCosts,
    Engine,
    Machine,
    OASiS,
    Outage,
    Plan,
    PolicyError,
    PolicyJob,
    Recourse,
    Room,
    RoundRobin,
    ScalingTable,
    Site,
    Workload,
    make,
    simulate,
    verify,
)
from oasis.testing import instances_of_kinds, of_kinds, small_instances
from tests.builders import policies

GRIDS = st.sampled_from([1, 1 << 40])
TIMES = st.integers(0, 12).map(float)


@st.composite
def workloads(draw, slotted=None):
    grid = draw(GRIDS)
    step = 0.1 if grid > 1 else 1.0
    kinds = st.sampled_from([("worker",), ("ps",), ("worker", "ps")])
    machines = [Machine("m", (4 * step, 3 * step), frozenset({"worker", "ps"}), grid)]
    for k in range(draw(st.integers(1, 2))):
        amounts = (draw(st.integers(0, 4)) * step, draw(st.integers(1, 4)) * step)
        machines.append(Machine(f"m{k}", amounts, frozenset(draw(kinds)), grid))
    slotted = draw(st.booleans()) if slotted is None else slotted
    site = Site(("gpu", "cpu"), tuple(machines), 1.0, slotted, 20.0 if slotted else None)
    size = round(step * grid)
    jobs = []
    for k in range(draw(st.integers(1, 6))):
        fewest = draw(st.integers(1, 2))
        jobs.append(
            PolicyJob(
                f"j{k}",
                draw(TIMES),
                draw(st.sampled_from([0.0, 0.5, 1.0, 2.7, 8.0])) or (0.25 if slotted else 0.0),
                ((0, size), (1, size)) if draw(st.booleans()) else ((0, size),),
                ((1, size),),
                fewest,
                fewest + draw(st.integers(0, 3)),
                draw(st.sampled_from([0.0, 0.3, 1.0])),
            )
        )
    made = Workload.of(site, jobs)
    return draw(of_kinds(made)) if draw(st.booleans()) else made


@st.composite
def outages(draw, machines=2):
    machine, begin = draw(st.integers(0, machines - 1)), draw(TIMES)
    end = begin + 1 + draw(st.integers(0, 4)) if draw(st.booleans()) else float("inf")
    return [Outage(machine, begin, end)] if draw(st.booleans()) else []


class Random:
    """Answers drawn by Hypothesis: mostly legal, sometimes anything at all."""

    name, slotted, told_remaining = "random", False, False

    def __init__(self, data, knows_forms=False):
        self.data, self.parameters, self.knows_forms = data, {}, knows_forms

    def reset(self, site):
        self.site, self.calls = site, 0

    def decide(self, view):
        self.calls += 1
        if self.calls > 25:  # let the run end
            return Plan()
        draw = self.data.draw
        plan = Plan(wake_at=draw(st.sampled_from([None, view.now + 0.5, view.now + 3, -1.0])))
        room = Room(self.site, view.free())
        for job in list(view.jobs()):
            action = draw(st.sampled_from(["keep", "place", "place", "pause", "reject", "wild"]))
            if action == "pause":
                plan.changes[job.index] = NOTHING
            elif action == "reject":
                plan.rejected[job.index] = "drawn"
            elif action == "wild":
                tasks = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 5)), max_size=2)
                plan.changes[job.index] = Allocation(tuple(draw(tasks)), tuple(draw(tasks)))
            elif action == "place":
                held = view.allocation(job)
                room.release(job.in_forms[held.form], held)
                form = draw(st.sampled_from([held.form, *range(len(job.in_forms))]))
                way = job.in_forms[form]
                workers = draw(st.integers(way.min_workers, way.max_workers))
                found = RoundRobin().place(room, way, workers, way.ps_needed(workers))
                if found is not None:
                    plan.changes[job.index] = found._replace(form=form)
        if draw(st.integers(0, 9)) == 0:
            plan.changes[draw(st.integers(-1, 9))] = NOTHING
        return plan


def check_consistent(engine, before):
    """Machines, jobs and clock agree with each other."""
    state = engine.state
    assert state.now >= before
    expected = [list(machine.capacity) for machine in state.site.machines]
    used = [0] * len(state.used)
    tenants = [0] * len(expected)
    for progress in state.jobs.values():
        job, held = progress.job, progress.allocation
        for group, (tasks, demand) in enumerate(((held.workers, job.worker), (held.ps, job.ps))):
            labels = getattr(demand, "requires", {})
            for machine, count in tasks:
                assert machine not in state.down
                has = state.site.machines[machine].labels
                assert all(has.get(name) in values for name, values in labels.items())
                for resource, amount in demand:
                    expected[machine][resource] -= count * amount
                    used[2 * group + resource] += count * amount
        for machine in held.machines:
            tenants[machine] += 1
        assert (held == NOTHING) == (progress.rate == 0.0)
        assert 0.0 <= progress.remaining <= job.work
        check_work(engine, progress)
    for machine, row in enumerate(expected):
        assert min(row) >= 0
        assert state.free[machine] == ((0, 0) if machine in state.down else tuple(row))
    assert state.used == used
    if engine.speed.coupled:
        assert state.load.tenants == tenants
    times = [time for time, _ in engine.timeline]
    assert times == sorted(times)


def check_work(engine, progress):
    """With linear speed and no costs, work done is worker-time held; times add up."""
    assert progress.running >= 0
    assert progress.overhead >= 0
    present = progress.since - progress.job.arrival
    assert progress.running + progress.overhead <= present + 1e-9
    if not engine.speed.coupled:
        pieces = pairwise([*progress.history, (progress.since, NOTHING)])
        area = sum(
            held.worker_count * max(0.0, min(end, progress.since) - begin)
            for (begin, held), (end, _) in pieces
        )
        lost = progress.job.max_workers * progress.overhead
        done = progress.job.work - progress.remaining
        assert area - lost - 1e-9 <= done <= area + 1e-9


@settings(deadline=None)
@given(data=st.data(), work=workloads(), lost=outages())
def test_no_answer_brings_the_engine_into_an_inconsistent_state(data, work, lost):
    speed = data.draw(st.sampled_from([None, ScalingTable({}, sharing=0.5)]))
    costs = data.draw(st.sampled_from([None, ChangeCosts(1.0, 0.5, 0.25, 2.0)]))
    policy = Random(data, data.draw(st.booleans()))
    engine = Engine(work, policy, speed=speed, costs=costs, outages=lost)
    before, going = float("-inf"), True
    while going:
        with suppress(PolicyError):  # refused: nothing was done, and the run may go on
            going = engine.step()
        check_consistent(engine, before)
        before = engine.state.now
    engine.finish()
    for progress in engine.settled.values():
        assert progress.allocation == NOTHING
        if progress.refusal is None:
            assert progress.remaining == 0.0
            check_work(engine, progress)
    assert len(engine.settled) + len(engine.state.jobs) <= len(work.jobs)


@given(instance=small_instances(), seed=st.integers(0, 99))
@pytest.mark.parametrize("name", policies(of_baselines=True))
def test_on_instances_every_schedule_satisfies_the_model(name, instance, seed):
    run = simulate(instance, make(name, seed))
    assert verify(instance, run) == pytest.approx(run.total_utility)


@given(instance=instances_of_kinds())
def test_oasis_and_recourse_keep_to_labels_and_forms(instance):
    for policy in (OASiS.from_instance(instance), Recourse()):
        run = simulate(instance, policy)
        assert verify(instance, run) == pytest.approx(run.total_utility)
