"""CP-SAT in a process of its own: a model comes in, what the search finds goes out.

OR-Tools and highspy bring different versions of one shared library, libhighs.so.1, and whichever
is imported second fails on Linux (google/or-tools#5246), so nothing here may import `offline`.

Standard input has one line of JSON with ``upper``, ``rows``, ``costs`` (`WholeModel`), ``hint`` (a
value for each variable, or null), ``until`` (seconds since the epoch, or null) and ``work``
(CP-SAT's deterministic time, or null).
Standard output gets a line for every bound, ``{"bound": b}``, for every solution, ``{"solution":
[[variable, value], ...]}`` without the zeros, and for the end, ``{"status": s}``, with the last
bound if there is a solution.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ortools.sat.python import cp_model

NO_LOW, NO_HIGH = -(2**63), 2**63 - 1


def tell(**event: Any) -> None:
    print(json.dumps(event), flush=True)


class Solutions(cp_model.CpSolverSolutionCallback):
    def on_solution_callback(self) -> None:
        values = enumerate(self.response_proto.solution)
        tell(solution=[(variable, value) for variable, value in values if value])


def model_of(given: dict[str, Any]) -> cp_model.CpModel:
    model = cp_model.CpModel()
    proto = model.proto
    for most in given["upper"]:
        proto.variables.add().domain.extend([0, most])
    for variables, coefficients, low, high in given["rows"]:
        row = proto.constraints.add().linear
        row.vars.extend(variables)
        row.coeffs.extend(coefficients)
        row.domain.extend([NO_LOW if low is None else low, NO_HIGH if high is None else high])
    variables, costs = given["costs"]
    proto.objective.vars.extend(variables)
    proto.objective.coeffs.extend([-cost for cost in costs])  # the least of -value
    proto.objective.scaling_factor = -1.0
    if given["hint"] is not None:
        proto.solution_hint.vars.extend(range(len(given["hint"])))
        proto.solution_hint.values.extend(given["hint"])
    return model


def main() -> None:
    given = json.loads(sys.stdin.readline())
    model = model_of(given)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # one worker alone would run one strategy; interleaved, it shares its time among all of them
    solver.parameters.interleave_search = True
    if given["until"] is not None:
        solver.parameters.max_time_in_seconds = max(0.0, given["until"] - time.time())
    if given["work"] is not None:
        solver.parameters.max_deterministic_time = given["work"]
    solver.best_bound_callback = lambda bound: tell(bound=bound)
    status = solver.status_name(solver.solve(model, Solutions()))
    # without a solution the bound of the answer means nothing, and the callback has told all
    known = {"bound": solver.best_objective_bound} if status in ("OPTIMAL", "FEASIBLE") else {}
    tell(status=status, **known)


if __name__ == "__main__":
    main()
