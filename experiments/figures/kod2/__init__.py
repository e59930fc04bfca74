"""The experiments of the KOD2 paper, made again."""
