"""SpeCon."""

from baselines.specon.policy import SpeCon

__all__ = ["SpeCon"]
