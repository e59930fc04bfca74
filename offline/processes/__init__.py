"""A second process beside a solve: how it starts and ends, and what the two tell each other."""
