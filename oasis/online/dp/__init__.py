"""How a job's work is best split over slots, given what each worker count costs in each slot."""

from oasis.online.dp.chunks import ChunkSplit
from oasis.online.dp.split import Split
from oasis.online.dp.worker_slots import best_split, smallest_cost, smallest_factor

__all__ = ["ChunkSplit", "Split", "best_split", "smallest_cost", "smallest_factor"]
