"""Figures of papers, made again, and studies of our own (docs/figures)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.controllers import table
from experiments.figures.direct import DirectFigure, reproduce_direct
from experiments.figures.dragon import study_figures, table1_figures
from experiments.figures.figure import PublishedFigure
from experiments.figures.kod2 import fig7_fig8
from experiments.figures.oasis import fig3, fig4, fig5, fig6, fig8, fig9
from experiments.figures.priority_queue import timeline
from experiments.figures.reproduction import Reproduction, reproduce
from experiments.figures.settings import FigureSettings
from experiments.figures.specon import (
    completion_times,
    distribution,
    parameters,
    saving,
    sensitivity,
)
from experiments.figures.studies import commitment, floor

FIGURES: Mapping[str, PublishedFigure] = {
    module.FIGURE.name: module.FIGURE
    for module in (fig3, fig4, fig5, fig6, fig8, fig9, floor, commitment)
}
# Those that replay elastic jobs, without a sweep.
EXPERIMENTS: Mapping[str, DirectFigure] = {
    figure.name: figure
    for module in (
        *(table1_figures, study_figures, fig7_fig8, saving, completion_times),
        *(distribution, parameters, sensitivity, timeline, table),
    )
    for figure in module.FIGURES
}

__all__ = [
    "EXPERIMENTS",
    "FIGURES",
    "DirectFigure",
    "FigureSettings",
    "PublishedFigure",
    "Reproduction",
    "reproduce",
    "reproduce_direct",
]
