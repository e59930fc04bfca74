"""How a job's work is best split over slots, given what each worker count costs in each slot."""

from oasis.online.dp.lagrangian import Split
from oasis.online.dp.worker_slots import ChunkSplit, best_split, smallest_cost, smallest_factor

__all__ = ["ChunkSplit", "Split", "best_split", "smallest_cost", "smallest_factor"]
