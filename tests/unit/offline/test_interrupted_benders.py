"""Ctrl-C inside the decomposition, at chosen moments: it ends there, and what is known is kept.

The command line notices a Ctrl-C that got lost at its next report (tests/packaging); callers of
`solve` have nobody to do so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import oasis
from oasis.solvers import SolveProgress, Status
from oasis.solvers.budget import Budget
from oasis.solvers.running import RunningSolve
from offline import solve
from offline.benders import decomposition
from offline.benders.decomposition import LEVELS
from offline.heuristics.recombination import Alternation
from offline.params import BendersParams
from tests.oracle.odds import CROSSED, at_odds, unit_job
from tests.unit.offline.test_benders import SMALL, unaided

FRACTIONS, _, WHOLE = (phase for phase, *_ in LEVELS)
WINDOWS = "ruin and recreate in windows"  # it takes turns with another search
LIMIT = 600.0  # without one, nobody looks at the clock; never reached
AT_A_LOOK_AT_THE_CLOCK, WHILE_HIGHS_RUNS = "clock", "HiGHS"


class CtrlC:
    """Raises once: at the moment of this number and kind in a phase."""

    def __init__(self, phase: str, kind: str, number: int) -> None:
        self.phases: list[str] = []
        self.came_in = ""
        self._moment, self._seen = (phase, kind, number), Counter[tuple[str, str]]()

    def watch(self, progress: SolveProgress) -> None:
        if self.phases[-1:] != [progress.phase]:
            self.phases.append(progress.phase)

    def before(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, of which every call is a moment."""

        def called(*given: Any) -> Any:
            here = self.phases[-1] if self.phases else ""
            self._seen[here, kind] += 1
            if not self.came_in and (here, kind, self._seen[here, kind]) == self._moment:
                self.came_in = here
                raise KeyboardInterrupt
            return function(*given)

        return called


@pytest.mark.parametrize(
    ("phase", "kind", "number"),
    [
        ("configuration LP", AT_A_LOOK_AT_THE_CLOCK, 2),
        ("configuration LP", AT_A_LOOK_AT_THE_CLOCK, 5),
        ("cutting planes", AT_A_LOOK_AT_THE_CLOCK, 3),
        ("cutting planes", AT_A_LOOK_AT_THE_CLOCK, 6),  # while patterns are looked for
        (FRACTIONS, AT_A_LOOK_AT_THE_CLOCK, 2),
        (FRACTIONS, WHILE_HIGHS_RUNS, 1),
        (WINDOWS, AT_A_LOOK_AT_THE_CLOCK, 2),
        ("cuts around the plan", AT_A_LOOK_AT_THE_CLOCK, 2),
        ("plans that fit", AT_A_LOOK_AT_THE_CLOCK, 2),
        ("plans that fit", WHILE_HIGHS_RUNS, 1),  # a plan
        ("plans that fit", WHILE_HIGHS_RUNS, 2),  # its placement
        (WHOLE, WHILE_HIGHS_RUNS, 1),
        (WHOLE, WHILE_HIGHS_RUNS, 2),
    ],
)
def test_ctrl_c_ends_the_decomposition_where_it_comes(
    monkeypatch: pytest.MonkeyPatch, phase: str, kind: str, number: int
) -> None:
    instance = at_odds(CROSSED, *(unit_job(f"j{k}", 1.0) for k in range(4)))
    ctrl_c = CtrlC(phase, kind, number)
    with_turns = Alternation.search
    unaided(monkeypatch)
    if phase == WINDOWS:
        monkeypatch.setattr(Alternation, "search", with_turns)
    if phase == "plans that fit":  # of a small instance, whose whole counts have no time
        monkeypatch.setattr(decomposition, "WHOLE_LIMIT", 0.0)
    is_small = phase in (WHOLE, "plans that fit")
    params = BendersParams(whole_size=SMALL if is_small else 0, second_process=False)
    elapsed = Budget.elapsed.fget
    assert elapsed is not None
    clock = property(ctrl_c.before(AT_A_LOOK_AT_THE_CLOCK, elapsed))
    monkeypatch.setattr(Budget, "elapsed", clock)
    waiting = ctrl_c.before(WHILE_HIGHS_RUNS, RunningSolve._report)
    monkeypatch.setattr(RunningSolve, "_report", waiting)
    result = solve(instance, "benders", time_limit=LIMIT, params=params, on_progress=ctrl_c.watch)
    assert ctrl_c.came_in == phase, ctrl_c.phases
    assert result.status is Status.INTERRUPTED
    assert ctrl_c.phases[-1] == phase
    assert oasis.verify(instance, result) == result.objective
    assert 0 < result.objective <= 3.0 <= result.upper_bound
