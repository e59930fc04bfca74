"""The compact model (1)-(13) with CP-SAT of OR-Tools: an outside peer of the offline methods.

It gets the rows that HiGHS gets, in whole numbers (`tests.unit.benchmarks.whole_numbers`): a
relaxation, so that its bounds are bounds, by less than 1e-9 of a capacity. Each of its solutions is
verified as it comes; one that breaks a constraint is not counted, but listed as ``refused`` in the
result's parameters. The objective is recomputed from the schedules. Utilities are rounded up, which
lifts the bound by at most the ``bound_slack`` of the parameters.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oasis.model.errors import SolverError, VerificationError
from oasis.model.instance import Instance
from oasis.model.schedule import Schedule
from oasis.solvers import PROOF, SolveProgress, Status
from oasis.solvers.budget import Budget, Stop, WorkLimit
from offline import OfflineResult
from offline.model.arrays import OfflineArrays
from offline.model.milp import CompactModel
from offline.state import Phase, SolveState, conclude
from tests.unit.benchmarks.whole_numbers import WholeModel, whole_model

# -P: what lies beside the script is not to be found before OR-Tools and what that needs
PROCESS = [sys.executable, "-P", str(Path(__file__).with_name("cpsat_process.py"))]
MISSING = "cpsat needs OR-Tools: pip install 'oasis-scheduler[bench]'"


def is_installed() -> bool:
    return find_spec("ortools") is not None  # importing it here would break HiGHS


def solve_cpsat(
    instance: Instance,
    time_limit: float | None = 60.0,
    warm_start: Mapping[str, Schedule] | None = None,
    on_progress: Callable[[SolveProgress], None] | None = None,
    *,
    work_limit: float | None = None,
) -> OfflineResult:
    """Solve the offline problem (1)-(13) with CP-SAT; arguments and result as of `solve`.

    The warm start is CP-SAT's hint, and kept as a solution whatever it makes of it. A limit of work
    is one of its deterministic time: each run then ends at the same point.
    """
    stop = Stop(time_limit) if work_limit is None else WorkLimit(work_limit)
    budget = stop.start()
    state = SolveState(instance, budget, on_progress)
    parameters: dict[str, Any] = {
        **stop.to_dict(),
        "warm_start": warm_start is not None,
        "solver": f"CP-SAT {metadata.version('ortools')}",
        "refused": [],
    }

    def work() -> Status:
        if warm_start is not None:
            state.enter(Phase.WARM_START)
            state.record_solution(warm_start)
        state.enter("CP-SAT")
        model = CompactModel(OfflineArrays.of(instance), budget)
        whole = whole_model(model.problem)
        parameters["bound_slack"] = whole.value(len(model.jobs))
        hint = None if warm_start is None else model.values_of(warm_start)
        request = _request(whole, hint, budget)
        return _search(model, whole, request, state, parameters["refused"])

    return conclude(state, work, "cpsat", parameters)


def _request(whole: WholeModel, hint: Mapping[str, float] | None, budget: Budget) -> dict[str, Any]:
    """The request that `tests.unit.benchmarks.cpsat_process` reads."""
    until = time.time() + budget.left
    return {
        "upper": whole.upper,
        "rows": whole.rows,
        "costs": whole.costs,
        "hint": None if hint is None else [int(hint.get(name, 0)) for name in whole.names],
        "until": None if budget.is_repeatable or math.isinf(budget.left) else until,
        "work": budget.left if budget.is_repeatable and math.isfinite(budget.left) else None,
    }


def _search(
    model: CompactModel,
    whole: WholeModel,
    request: dict[str, Any],
    state: SolveState,
    refused: list[str],
) -> Status:
    """Let CP-SAT search, and tell `state` of its bounds and verified solutions."""
    status = ""
    with closing(_events(request)) as events:
        for event in events:
            if "solution" in event:
                values = {whole.names[k]: float(units) for k, units in event["solution"]}
                schedules = model.schedules_of(defaultdict(float, values))
                try:
                    state.record_solution(schedules)
                except VerificationError as error:
                    refused.append(str(error))
            if "bound" in event:
                state.record_bound(whole.value(event["bound"]))
            status = event.get("status", status)
    if status not in ("OPTIMAL", "FEASIBLE", "UNKNOWN"):
        raise SolverError(f"CP-SAT calls the model {status}; admitting no job solves it")
    if status == "OPTIMAL" and state.gap > PROOF:
        raise SolverError(f"CP-SAT calls optimal what does not verify: {'; '.join(refused)}")
    return Status.OPTIMAL if status == "OPTIMAL" else state.budget.status


def _events(request: dict[str, Any]) -> Generator[dict[str, Any]]:
    """Events of CP-SAT's process; closing the iterator ends the process."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as given:
        json.dump(request, given)
        given.seek(0)
        with subprocess.Popen(PROCESS, stdin=given, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield from map(json.loads, process.stdout or ())
                if process.wait() != 0:
                    raise SolverError(f"CP-SAT's process ended with {process.returncode}")
            finally:
                process.kill()
