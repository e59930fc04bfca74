"""The experiments of the DRAGON paper, reproduced."""
