"""Figures of papers, reproduced, and studies of this project (docs/figures)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures import controllers, kod2, oasis, priority_queue, studies
from experiments.figures.dragon import study, table1
from experiments.figures.figure import (
    DirectFigure,
    PublishedFigure,
    Reproduction,
    reproduce,
)
from experiments.figures.settings import FigureSettings
from experiments.figures.specon import distribution, saving, schedules

FIGURES: Mapping[str, PublishedFigure] = {
    figure.name: figure for figure in (*oasis.FIGURES, *studies.FIGURES)
}
# Those that replay elastic jobs, without a sweep.
EXPERIMENTS: Mapping[str, DirectFigure] = {
    figure.name: figure
    for figure in (
        *(*table1.FIGURES, *study.FIGURES, *kod2.FIGURES),
        *(*saving.FIGURES, *schedules.SCHEDULE_FIGURES, *distribution.FIGURES),
        *(*schedules.PARAMETER_FIGURES, *schedules.READING_FIGURES),
        *(*priority_queue.FIGURES, *controllers.FIGURES),
    )
}

__all__ = [
    "EXPERIMENTS",
    "FIGURES",
    "DirectFigure",
    "FigureSettings",
    "PublishedFigure",
    "Reproduction",
    "reproduce",
]
