"""Proofs about a run: its schedules are feasible, and the optimum is at most a certain bound."""
