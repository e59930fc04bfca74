"""Experiments: competitive ratios and the command line."""

from experiments.ratio import CompetitiveRatio, competitive_ratio

__all__ = ["CompetitiveRatio", "competitive_ratio"]
