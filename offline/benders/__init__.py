"""Logic-based Benders decomposition: a master over counts, a subproblem that places them."""
