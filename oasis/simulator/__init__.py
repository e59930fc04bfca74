"""Running policies on instances."""

from oasis.simulator.engine import Policy, simulate

__all__ = ["Policy", "simulate"]
