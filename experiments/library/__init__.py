"""A library of instances: the best schedules and bounds that are known of each (docs/library)."""

from experiments.library.families import PROBLEMS, Problem
from experiments.library.store import Library, LibraryEntry

__all__ = ["PROBLEMS", "Library", "LibraryEntry", "Problem"]
