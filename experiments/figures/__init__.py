"""The figures of the paper's section V, made again, and studies of our own (docs/figures)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.figure import PublishedFigure
from experiments.figures.oasis import fig3, fig4, fig5, fig6, fig8, fig9
from experiments.figures.reproduction import Reproduction, reproduce
from experiments.figures.settings import FigureSettings
from experiments.figures.studies import commitment, floor

FIGURES: Mapping[str, PublishedFigure] = {
    module.FIGURE.name: module.FIGURE
    for module in (fig3, fig4, fig5, fig6, fig8, fig9, floor, commitment)
}

__all__ = ["FIGURES", "FigureSettings", "PublishedFigure", "Reproduction", "reproduce"]
