"""The figures of the paper's section V, made again (docs/figures)."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.figure import PublishedFigure
from experiments.figures.oasis import fig3, fig4, fig5, fig6, fig8, fig9
from experiments.figures.reproduction import Reproduction, reproduce
from experiments.figures.settings import FigureSettings

FIGURES: Mapping[str, PublishedFigure] = {
    module.FIGURE.name: module.FIGURE for module in (fig3, fig4, fig5, fig6, fig8, fig9)
}

__all__ = ["FIGURES", "FigureSettings", "PublishedFigure", "Reproduction", "reproduce"]
