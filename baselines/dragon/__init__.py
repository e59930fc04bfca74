"""DRAGON, and the same controller without scaling."""

from baselines.dragon.locality_aware import LocalityAware
from baselines.dragon.policy import Dragon

__all__ = ["Dragon", "LocalityAware"]
