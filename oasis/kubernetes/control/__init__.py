"""The controller: its loop, its checkpoint, the statuses that it writes, and its metrics."""
