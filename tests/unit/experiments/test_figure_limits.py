"""Limits of the offline solves of a figure."""

from __future__ import annotations

import math

from experiments.figures.oasis import FIGURES
from experiments.figures.settings import FigureSettings


def tasks(settings: FigureSettings) -> dict[str, object]:
    task: dict[str, object] = FIGURES[2].grid(settings)["task"]
    return task


def test_a_solve_without_improvement_ends_where_that_is_asked_for() -> None:
    assert tasks(FigureSettings()) == {"name": "ratio", "time_limit": 120.0}
    settings = FigureSettings(no_improvement=5.0)
    assert tasks(settings)["no_improvement"] == settings.to_dict()["no_improvement"] == 5.0
    assert FigureSettings(no_improvement=math.inf).to_dict()["no_improvement"] is None
    assert "no_improvement" not in FigureSettings().to_dict()
