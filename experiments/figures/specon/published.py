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

# Section VI-C: random schedules of mixed models. Seconds; None where the text gives no number.
# "reduced" is the part of the jobs that complete sooner, "gain" by how much the mean is lower.
RANDOM: Mapping[str, Mapping[str, Mapping[str, float | None]]] = {
    "6": {
        "default": {"mean": None, "makespan": 1421.0},
        "specon": {"mean": None, "makespan": 1070.0, "reduced": 15 / 20, "gain": 0.136},
    },
    "7": {
        "default": {"mean": 865.7, "makespan": 1760.0},
        "specon": {"mean": 800.2, "makespan": 1498.0, "reduced": 18 / 30, "gain": 0.076},
    },
    "12": {
        "default": {"mean": 596.3, "makespan": 2070.0},
        "specon": {"mean": 553.0, "makespan": 1840.0, "reduced": 30 / 50, "gain": 0.072},
    },
}

# Table III: alpha and interval, and what they gain on 20 VAE jobs in [0, 300].
TABLE3: Mapping[tuple[float, float], Mapping[str, float]] = {
    (0.05, 20.0): {"reduced": 0.600, "overall": 0.057, "best": 0.291, "makespan": 0.061},
    (0.05, 25.0): {"reduced": 0.600, "overall": 0.068, "best": 0.278, "makespan": 0.075},
    (0.05, 30.0): {"reduced": 0.550, "overall": 0.032, "best": 0.213, "makespan": 0.040},
    (0.01, 30.0): {"reduced": 0.650, "overall": 0.096, "best": 0.310, "makespan": 0.082},
    (0.10, 30.0): {"reduced": 0.600, "overall": 0.064, "best": 0.239, "makespan": 0.031},
}

# Section III-B, Fig. 2: saving and resuming at any point takes less than this, seconds; and the
# standard deviation over the points.
SAVING_AT_MOST, SAVING_SPREAD = 5.0, 1.43
# Fig. 5: completion times of job 17, the one with the largest gain, under both schedulers.
JOB17: Mapping[str, float] = {"default": 348.7, "specon": 217.6}
