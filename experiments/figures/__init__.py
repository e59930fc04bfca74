"""Figures of papers, made again, and studies of our own (docs/figures)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures import controllers as table
from experiments.figures import kod2 as fig7_fig8
from experiments.figures import priority_queue as timeline
from experiments.figures.dragon import study as study_figures
from experiments.figures.dragon import table1 as table1_figures
from experiments.figures.figure import (
    DirectFigure,
    PublishedFigure,
    Reproduction,
    reproduce,
    reproduce_direct,
)
from experiments.figures.oasis import fig3, fig4, fig5, fig6, fig8, fig9
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
