"""The parts of a sweep: its configuration, its cells, what is done with them, and where."""
