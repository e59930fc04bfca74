"""What is certain of a run: it is feasible, and no schedule is worth more than its bound."""
