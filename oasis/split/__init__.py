"""How a job's work is best split over slots, given what each worker count costs in each slot."""

from oasis.split.chunks import ChunkSplit
from oasis.split.result import Split
from oasis.split.search import best_split, smallest_cost, smallest_factor

__all__ = ["ChunkSplit", "Split", "best_split", "smallest_cost", "smallest_factor"]
