"""The variables and rows of the offline problem, and its compact mixed-integer program."""
