"""KOD2, the operator for distributed training jobs."""

from baselines.kod2.policy import Kod2
from baselines.kod2.weights import JobState

__all__ = ["JobState", "Kod2"]
