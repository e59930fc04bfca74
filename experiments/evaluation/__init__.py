"""Policies by name, side by side, and against the offline optimum."""
