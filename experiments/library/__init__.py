"""A library of instances: the best schedules and bounds that are known of each (docs/library)."""

from experiments.library.families import FAMILIES, PROBLEMS, Problem
from experiments.library.store import Library, Record

__all__ = ["FAMILIES", "PROBLEMS", "Library", "Problem", "Record"]
