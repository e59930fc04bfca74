"""``oasis solve``: the offline optimum, or a certified interval."""

from __future__ import annotations

from functools import partial

from experiments.cli import console
from experiments.cli.exit_codes import DONE, LIMIT
from experiments.cli.interrupt import CtrlC
from experiments.cli.options import (
    AsJson,
    InstanceFile,
    ResultFile,
    SetMethod,
    Solving,
    known_method,
    method_params,
    note_unused,
)
from experiments.cli.progress import solver_progress
from experiments.cli.results import deliver, read_instance
from experiments.evaluation.provenance import instance_reference
from experiments.evaluation.tables import solve_facts
from oasis.solvers import Status


def command(
    *,
    file: InstanceFile,
    how: Solving,
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

    method, limits = known_method(how.method), how.given()
    params = method_params(method, assignments)
    instance = read_instance(file)
    with CtrlC() as ctrl_c:
        with solver_progress(ctrl_c.check) as on_progress, ctrl_c.raising():
            result = solve_offline(
                instance,
                method,
                on_progress=on_progress,
                seed=how.solver_seed,
                params=params,
                **limits,
            )
        note_unused(params, result.method)
        # Outside of `raising`: Ctrl-C must not cut a
        # result in half while it is written.
        document = result.to_dict() | {"instance": instance_reference(instance, str(file))}
        title = f"offline optimum of {len(instance.jobs)} jobs"
        shown = partial(console.print_facts, title, solve_facts(result))
        deliver(document, shown, as_json=as_json, output=output)
    return DONE if result.status is Status.OPTIMAL else LIMIT
