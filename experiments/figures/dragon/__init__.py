"""The experiments of the DRAGON paper, made again."""
