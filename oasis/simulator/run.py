"""Running a policy: on an instance of the model, or on any workload."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from itertools import pairwise
from time import perf_counter

from oasis.model.decision import Decision
from oasis.model.errors import describe
from oasis.model.instance import Instance, expect_instance
from oasis.online.oasis import OASiS
from oasis.scheduling.policy import Planner, Policy
from oasis.scheduling.policy_check import check_interface, parameters_of, report_of
from oasis.scheduling.site import schedule_of
from oasis.simulator.costs import ChangeCosts
from oasis.simulator.engine import Engine, Outage, Settled
from oasis.simulator.observation import Observation
from oasis.simulator.outcome import JobTimes, Outcome
from oasis.simulator.result import Run
from oasis.simulator.speed import Speed
from oasis.simulator.state import JobProgress
from oasis.simulator.workload import Workload
from oasis.version import __version__

LOGGER = logging.getLogger(__name__)


def replay(
    workload: Workload,
    policy: Policy,
    *,
    speed: Speed | None = None,
    costs: ChangeCosts | None = None,
    outages: Iterable[Outage] = (),
    on_settled: Settled | None = None,
    observation: Observation | None = None,
) -> Outcome:
    """Run `policy` on `workload`; the parameters are those of `Engine`.

    Raises
    ------
    PolicyError
        If the policy lacks an attribute, asks for what cannot run, or fails in its own code.
    TypeError
        If one of the two is something else, such as a path or a class; says how to make one of it.

    Examples
    --------
    >>> from baselines import FIFO
    >>> from oasis.simulator import PlainJob, rigid_workload
    >>> jobs = [PlainJob("a", 0.0, 60.0, 8), PlainJob("b", 5.0, 30.0, 8)]
    >>> replay(rigid_workload(jobs, servers=1, gpus_per_server=8), FIFO()).completions
    [60.0, 85.0]
    """
    _expect_workload(workload)
    engine = Engine(
        workload,
        policy,
        speed=speed,
        costs=costs,
        outages=outages,
        on_settled=on_settled,
        observation=observation,
    )
    return _run(engine, policy, None)


def simulate(
    instance: Instance,
    policy: Policy,
    *,
    speed: Speed | None = None,
    costs: ChangeCosts | None = None,
    outages: Iterable[Outage] = (),
    on_decision: Callable[[Decision], None] | None = None,
) -> Run:
    """Run `policy` on the jobs of `instance`; it learns of each at its arrival.

    Parameters
    ----------
    instance : Instance
        The problem.
    policy : Policy
        ``OASiS.from_instance(instance)``, or one of `baselines`.
    speed, costs, outages
        As for `replay`, in slots.
    on_decision : callable, optional
        Called once for each job when its fate is known, for progress.

    Returns
    -------
    Run
        Decisions, schedules, total utility and measured times. A job that was admitted but did
        not finish within the horizon has no completion and no schedule, and earns nothing.

    Raises
    ------
    PolicyError
        If the policy lacks an attribute, asks for what cannot run, or fails in its own code. The
        error names the line of that code, and its ``__cause__`` is what was raised there.
    TypeError
        If one of the two is something else, such as a path or a class; says how to make one of it.

    Examples
    --------
    >>> import oasis
    >>> instance = oasis.generate("testbed", jobs=3, seed=1)
    >>> run = oasis.simulate(instance, oasis.OASiS.from_instance(instance))
    >>> [decision.job_id for decision in run.decisions if decision.admitted]
    ['j0', 'j2']
    """
    expect_instance(instance)
    check_interface(policy)
    workload = Workload.from_instance(instance)
    jobs, machines = len(instance.jobs), len(workload.site.machines)
    LOGGER.info("%s decides on %d jobs on %d machines", policy.name, jobs, machines)
    seed = instance.metadata.get("seed")

    def decided(decision: Decision) -> None:
        LOGGER.debug("%s", decision)
        if on_decision is not None:
            on_decision(decision)

    # OASiS decides at the arrival and states payoff and cost; of
    # other policies the outcome is the decision.
    if isinstance(policy, OASiS):
        before, policy.on_decision = len(policy.decisions), decided
        engine = Engine(workload, policy, speed=speed, costs=costs, outages=outages)
        outcome, policy.on_decision = _run(engine, policy, seed), None
        decisions, seconds = list(policy.decisions[before:]), list(policy.decision_seconds)
    else:
        known: dict[int, Decision] = {}

        def settle(progress: JobProgress) -> None:
            known[progress.job.index] = decision = _decision(progress, workload)
            decided(decision)

        engine = Engine(
            workload, policy, speed=speed, costs=costs, outages=outages, on_settled=settle
        )
        outcome = _run(engine, policy, seed)
        # Jobs that are left at the horizon were admitted and did not finish.
        for progress in engine.state.jobs.values():
            settle(progress)
        decisions = [known[index] for index in sorted(known)]
        seconds = list(engine.policy_seconds)
    run = Run(
        policy=policy.name,
        parameters=parameters_of(policy),
        decisions=tuple(decisions),
        bounds=policy.bounds if isinstance(policy, OASiS | Planner) else None,
        decision_seconds=tuple(seconds),
        seed=seed,
        version=__version__,
        outcome=outcome,
        report=report_of(policy),
    )
    admitted, utility, spent = run.admitted, run.total_utility, sum(seconds)
    LOGGER.info("admitted %d, total utility %g, %.3g s of decisions", admitted, utility, spent)
    return run


def _expect_workload(workload: object) -> None:
    """Raise `TypeError` unless `workload` is a `Workload`; it says how to make one."""
    if isinstance(workload, Workload):
        return
    got = describe(workload)
    if isinstance(workload, (str, os.PathLike)):
        file = repr(os.fspath(workload))
        got += f"; read_elastic({file}) is one of elastic jobs, and "
        got += f"rigid_workload(oasis.traces.read_plain({file}).jobs, servers, gpus) one of a trace"
    elif isinstance(workload, Instance):
        got += "; oasis.simulate(instance, policy) runs a policy on it"
    elif callable(getattr(workload, "decide", None)):
        got += ", a policy; the workload comes first"
    raise TypeError(f"workload: expected an oasis.simulator.Workload, got {got}")


def _run(engine: Engine, policy: Policy, seed: int | None) -> Outcome:
    begin = perf_counter()
    engine.run()
    elapsed = perf_counter() - begin
    everyone = engine.settled | engine.state.jobs
    thinking = sum(engine.policy_seconds)
    return Outcome(
        jobs=tuple(JobTimes.of(everyone[index]) for index in sorted(everyone)),
        site=engine.workload.site,
        timeline=tuple(engine.timeline),
        until=engine.state.now,
        calls=len(engine.policy_seconds),
        policy_seconds=thinking,
        simulator_seconds=elapsed - thinking,
        policy=policy.name,
        parameters=parameters_of(policy),
        seed=seed,
        version=__version__,
        saving=tuple(engine.state.saving.busy),
        held=engine.state.reserved_time,
    )


def _decision(progress: JobProgress, workload: Workload) -> Decision:
    """Return the outcome of a job as a `Decision`; one without an end counts as admitted."""
    job = progress.job
    if progress.refusal is not None:
        return Decision(job.id, False, reason=progress.refusal)
    if progress.end is None:
        return Decision(job.id, True, reason="did not finish within the horizon")
    completion = int(progress.history[-1][0]) - 1  # it held its machines to the end of this slot
    utility = float(job.utility(completion - job.arrival)) if job.has_utility else 0.0
    spans = pairwise(progress.history)
    rows = [(slot, a) for (begin, a), (end, _) in spans for slot in range(int(begin), int(end))]
    schedule = schedule_of(job.id, rows, workload.site, progress.form)
    return Decision(job.id, True, utility, utility, 0.0, completion, schedule)
