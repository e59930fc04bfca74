"""A library of instances: the best schedules and bounds that are known of each (docs/library)."""

from experiments.library.families import FAMILIES, PROBLEMS, Problem
from experiments.library.store import Library, LibraryEntry

__all__ = ["FAMILIES", "PROBLEMS", "Library", "LibraryEntry", "Problem"]
