"""Optimal split of a job's work over slots, given the cost of each worker count in each slot."""

from oasis.online.dp.lagrangian import Split
from oasis.online.dp.worker_slots import ChunkSplit, best_split, smallest_cost, smallest_factor

__all__ = ["ChunkSplit", "Split", "best_split", "smallest_cost", "smallest_factor"]
