"""Random workloads after the paper's section V (docs/workloads)."""

from oasis.workloads.generator import generate
from oasis.workloads.presets import PRESETS, Preset

__all__ = ["PRESETS", "Preset", "generate"]
