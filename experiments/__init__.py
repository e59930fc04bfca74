"""Experiments: competitive ratios and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.evaluation.competitive_ratio import CompetitiveRatio, competitive_ratio

__all__ = ["CompetitiveRatio", "competitive_ratio"]


def __getattr__(name: str) -> Any:
    """Import the competitive ratio on first use, since that needs a solver."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from experiments.evaluation import competitive_ratio as measure  # noqa: PLC0415

    return getattr(measure, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
