"""Numbers of the SpeCon paper (Mao et al.), from its text."""

from __future__ import annotations

from collections.abc import Mapping

# Section III-A, Fig. 1: part of the whole reduction of the evaluation function after a fifth of
# the time that a training takes on its own.
EARLY_PROGRESS: Mapping[str, float] = {"VAE": 0.65, "Bi-RNN": 0.98, "GRU": 0.90}

# Section VI-B, Fig. 5: 20 VAE jobs, one every 50 s, four workers. Seconds; "reduced" is the part
# of the jobs that complete sooner, "best" the largest reduction of one job.
FIG5: Mapping[str, Mapping[str, float | None]] = {
    "default": {"mean": 275.2, "makespan": 1260.0, "reduced": None, "best": None},
    "specon": {"mean": 234.7, "makespan": 1190.0, "reduced": 11 / 20, "best": 0.376},
}
