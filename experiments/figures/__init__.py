"""Figures of papers, reproduced, and studies of this project (docs/figures)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures import controllers, dragon, kod2, oasis, priority_queue, specon, studies
from experiments.figures.figure import (
    DirectFigure,
    PublishedFigure,
    Reproduction,
    reproduce,
)
from experiments.figures.settings import FigureSettings

FIGURES: Mapping[str, PublishedFigure] = {
    figure.name: figure for figure in (*oasis.FIGURES, *studies.FIGURES)
}
# Those that replay elastic jobs, without a sweep.
EXPERIMENTS: Mapping[str, DirectFigure] = {
    figure.name: figure
    for figure in (
        *(*dragon.FIGURES, *kod2.FIGURES, *specon.FIGURES),
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
