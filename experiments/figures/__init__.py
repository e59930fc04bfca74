"""The figures of papers, made again (docs/figures, docs/figures-dragon)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.direct import DirectFigure, reproduce_direct
from experiments.figures.dragon import study_figures, table1_figures
from experiments.figures.figure import PublishedFigure
from experiments.figures.oasis import fig3, fig4, fig5, fig6, fig8, fig9
from experiments.figures.reproduction import Reproduction, reproduce
from experiments.figures.settings import FigureSettings

FIGURES: Mapping[str, PublishedFigure] = {
    module.FIGURE.name: module.FIGURE for module in (fig3, fig4, fig5, fig6, fig8, fig9)
}
# Those that replay elastic jobs, without a sweep.
EXPERIMENTS: Mapping[str, DirectFigure] = {
    figure.name: figure for figure in (*table1_figures.FIGURES, *study_figures.FIGURES)
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
