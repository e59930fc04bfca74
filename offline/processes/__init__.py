"""A second process beside a solve: what it works on, and what the two tell each other."""
