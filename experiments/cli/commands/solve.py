"""``oasis solve``: the offline optimum, or a certified interval."""

from __future__ import annotations

from experiments.cli import console
from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.interrupt import CtrlC
from experiments.cli.options import (
    AsJson,
    Gap,
    InstanceFile,
    Method,
    NoImprovement,
    ResultFile,
    SetMethod,
    SolverSeed,
    TimeLimit,
    WorkLimit,
    known_method,
    limits_of,
    method_params,
    note_unused,
)
from experiments.cli.progress import solver_progress
from experiments.cli.results import deliver, read_instance
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import solve_facts
from oasis.solvers import Status


def command(
    file: InstanceFile,
    method: Method = "auto",
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = None,
    gap: Gap = None,
    no_improvement: NoImprovement = None,
    seed: SolverSeed = 0,
    assignments: SetMethod = None,
    output: ResultFile = None,
    as_json: AsJson = False,
) -> int:
    """Solve the instance knowing all its jobs: the optimum, or an interval that contains it.

    Starts from OASiS's own schedule and never returns a worse one. The first limit reached ends the
    solve and is its status; the result is then an interval, and the exit code is 3. Ctrl-C and
    SIGTERM stop at any moment and print what is proven so far.

    Example: oasis solve instance.json --time-limit 300 --gap 0.01
    """
    from offline import solve as solve_offline  # noqa: PLC0415 (needs an extra)

    method = known_method(method)
    limits = limits_of(time_limit, work_limit, gap, no_improvement)
    params = method_params(method, assignments)
    instance = read_instance(file)
    with CtrlC() as ctrl_c:
        with solver_progress(ctrl_c.check) as on_progress, ctrl_c.raising():
            result = solve_offline(
                instance, method, on_progress=on_progress, seed=seed, params=params, **limits
            )
        note_unused(params, result.method)
        # Outside of `raising`: Ctrl-C must not cut a
        # result in half while it is written.
        document = result.to_dict() | {"instance": instance_reference(instance, str(file))}
        title = f"offline optimum of {len(instance.jobs)} jobs"
        deliver(
            document,
            lambda: console.print_facts(title, solve_facts(result)),
            as_json=as_json,
            output=output,
        )
    return DONE if result.status is Status.OPTIMAL else LIMIT
