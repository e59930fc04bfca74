"""Phases of an ``OasisJob``."""

from __future__ import annotations

# Phases of jobs that hold room: before their gang works, and then.
HOLDING = ("Starting", "Running")
PHASES = ("Pending", "Waiting", *HOLDING, "Completed", "Rejected", "GivenUp", "Invalid", "Failed")
# Invalid and Failed are no ends: an edit brings such a job back.
TERMINAL = frozenset({"Completed", "Rejected", "GivenUp"})
