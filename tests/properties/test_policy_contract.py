"""What every policy of the registry keeps to, whoever wrote it; a new one is picked up by itself.

OASiS decides on instances alone, the others also where jobs may be of any kind: on slots and in
continuous time, on machines that are lost, with costs, and where gangs may be incomplete.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import baselines
from oasis import Instance, LiveScheduler, OASiS, PriceBounds
from oasis.simulator import (
    ChangeCosts,
    Engine,
    Machine,
    Observation,
    Outage,
    PolicyJob,
    Site,
    TrainingCurve,
    TrainingSpeed,
    Workload,
)
from tests.live import CLUSTER, TROUBLES, Drill
from tests.strategies import fewer, of_kinds, small_instances, with_work

TIMES = st.integers(0, 12).map(float)
MOST_STEPS = 5_000
CURVE = TrainingCurve(((0.0, 1.0), (0.3, 0.2), (1.0, 0.0)))
COSTS = (None, ChangeCosts(1.0, 0.5, 0.25, 2.0), ChangeCosts(save=0.5, checkpoint_interval=1.0))
# Dorm solves an MILP each time it is asked
examples = {"dorm": fewer(5)}
names = pytest.mark.parametrize("name", baselines.ALL)


@st.composite
def workloads(draw):
    """Elastic jobs with parameter servers on a few machines, of one kind or of two."""
    slotted = draw(st.booleans())
    hosts = [frozenset(kinds) for kinds in (("worker", "ps"), ("worker",), ("ps",))]
    machines = [Machine("m0", (4.0, 4.0), hosts[0], cpu_cores=4.0, link_gbps=1.0)]
    for k in range(draw(st.integers(0, 2))):
        amounts = (float(draw(st.integers(0, 4))), float(draw(st.integers(1, 4))))
        machines.append(Machine(f"m{k + 1}", amounts, draw(st.sampled_from(hosts)), cpu_cores=2.0))
    site = Site(
        ("gpu", "cpu"),
        tuple(machines),
        1.0,
        slotted,
        20.0 if slotted else None,
        partial_gangs=not slotted and draw(st.booleans()),
    )
    jobs = []
    for k in range(draw(st.integers(1, 6))):
        least = draw(st.integers(1, 2))
        most = least + draw(st.integers(0, 3))
        fixed = draw(st.booleans())
        jobs.append(
            PolicyJob(
                f"j{k}",
                draw(TIMES),
                draw(st.sampled_from([0.5, 1.0, 2.7, 8.0])),
                # one that reserves nothing fits wherever a machine is there, and on no lost one
                draw(st.sampled_from([((0, 1), (1, 1)), ((0, 1),), ()])),
                draw(st.sampled_from([((1, 1),), ()])),
                least,
                most,
                0.0 if fixed else draw(st.sampled_from([0.0, 0.3, 1.0])),
                initial_workers=draw(st.sampled_from([None, least, most])),
                fixed_ps=draw(st.integers(0, 2)) if fixed else None,
                worker_cpu=draw(st.sampled_from([0.0, 1.5])),
                gradient_mb=draw(st.sampled_from([0.0, 50.0])),
                step_time=1.0,
                curve=CURVE,
            )
        )
    made = Workload.of(site, jobs)
    return draw(of_kinds(made)) if draw(st.booleans()) else made


@st.composite
def worlds(draw):
    """A workload and what surrounds it: speed, costs, lost machines and observation."""
    work = draw(workloads())
    outages = []
    for machine in range(len(work.site.machines)):
        if draw(st.booleans()):
            begin = draw(TIMES)
            outages.append(Outage(machine, begin, begin + 1.0 + draw(st.integers(0, 4))))
    options = {
        "speed": draw(st.sampled_from([None, TrainingSpeed()])),
        "costs": draw(st.sampled_from(COSTS)),
        "outages": outages,
        "observation": draw(st.sampled_from([None, Observation(1.0, 0.1, 3)])),
    }
    return work, options


def run(work, policy, options=None):
    """Run to the end, which must come."""
    engine = Engine(work, policy, **(options or {}))
    for _ in range(MOST_STEPS):
        if not engine.step():
            break
    else:
        raise AssertionError(f"{policy.name} still goes on after {MOST_STEPS} instants")
    engine.finish()
    return engine


def decided(engine, until=float("inf")):
    """Outcome, up to `until`, of every job that had arrived before."""
    everyone = engine.settled | engine.state.jobs
    found = {}
    for index, progress in sorted(everyone.items()):
        if progress.job.arrival < until:
            held = [entry for entry in progress.history if entry[0] < until]
            ended = progress.end if progress.end is not None and progress.end < until else None
            found[index] = (progress.job.id, held, ended)
    return found


def with_examples(name, test):
    """`test` with so many examples as the policy of this name can be asked for in the time."""
    return examples[name](test) if name in examples else test


@names
def test_its_answers_are_legal_and_it_ends_whatever_machines_are_lost(name):
    """Nor does it leave a job half placed; both unless it says so."""

    @given(world=worlds())
    def check(world):
        work, options = world
        policy = baselines.make(name, 1)
        engine = run(work, policy, options)  # an answer that cannot run raises PolicyError
        if getattr(policy, "may_deadlock", False):
            return
        # all machines come back: nobody waits for ever
        assert work.site.slotted or not engine.state.jobs, "stuck"
        for progress in (engine.settled | engine.state.jobs).values():
            assert progress.stalled == 0.0
            assert all(
                not (held.workers or held.ps) or progress.job.works_with(held)
                for _, held in progress.history
            )

    with_examples(name, check)()


@names
def test_it_sees_only_the_past(name):
    @given(world=worlds(), until=TIMES, factor=st.sampled_from([0.1, 3.0]))
    def check(world, until, factor):
        work, options = world
        earlier = [job for job in work.jobs if job.arrival < until]
        later = [job for job in work.jobs if job.arrival >= until]
        expected = decided(run(work, baselines.make(name, 1), options), until)
        cut = Workload.of(work.site, earlier)
        assert decided(run(cut, baselines.make(name, 1), options), until) == expected
        others = [with_work(job, lambda work: work * factor) for job in later]
        changed = Workload.of(work.site, earlier + others)
        assert decided(run(changed, baselines.make(name, 1), options), until) == expected

    with_examples(name, check)()


@names
def test_what_it_is_not_told_does_not_matter(name):
    """More work for jobs that are not done by `until` changes nothing before that."""
    if baselines.make(name, 1).told_remaining:
        pytest.skip("it declares that it is told how much work is left")

    more = st.lists(st.sampled_from([0.0, 5.0, 40.0]), min_size=6, max_size=6)

    @given(world=worlds(), until=TIMES, extra=more)
    def check(world, until, extra):
        work, options = world
        options = options | {"observation": None}  # which tells of the work, as it should
        expected = run(work, baselines.make(name, 1), options)
        longer = [
            with_work(job, extra[job.index].__add__, curve=None)
            if expected.settled.get(job.index) is None
            or (expected.settled[job.index].end or 0.0) >= until
            else job
            for job in work.jobs
        ]
        found = run(Workload.of(work.site, longer), baselines.make(name, 1), options)
        assert decided(found, until) == decided(expected, until)

    with_examples(name, check)()


@names
def test_it_repeats_itself_and_can_be_used_again(name):
    @given(world=worlds())
    def check(world):
        work, options = world
        policy = baselines.make(name, 7)
        runs = [decided(run(work, each, options)) for each in (policy, policy)]
        runs.append(decided(run(work, baselines.make(name, 7), options)))
        assert runs[0] == runs[1] == runs[2]

    with_examples(name, check)()


@names
def test_as_a_service_it_keeps_to_windows_whole_and_partial(name):
    @fewer(10)
    @given(seed=st.integers(0, 2**32 - 1))
    @example(6)  # a gang waits for its last task where a window is about to begin
    def check(seed):
        scheduler = LiveScheduler(baselines.make(name, 1), CLUSTER)
        Drill(scheduler, seed, (*TROUBLES, *["reserve"] * 3), leaps=(1,)).run(30).verify()

    check()


def committed(instance, bounds):
    return OASiS(instance.cluster, instance.horizon, bounds)


@given(instance=small_instances(), data=st.data())
def test_oasis_sees_only_the_past_ends_and_repeats_itself(instance, data):
    until = float(data.draw(st.integers(0, instance.horizon)))
    bounds = PriceBounds.from_instance(instance)
    engine = run(Workload.from_instance(instance), committed(instance, bounds))
    again = run(Workload.from_instance(instance), committed(instance, bounds))
    assert decided(engine) == decided(again)
    earlier = tuple(job for job in instance.jobs_by_arrival() if job.arrival < until)
    cut = Instance(instance.horizon, instance.cluster, earlier)
    found = run(Workload.from_instance(cut), committed(instance, bounds))
    assert decided(found, until) == decided(engine, until)
