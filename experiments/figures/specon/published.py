"""Numbers of the SpeCon paper (Mao et al.), from its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Section III-A, Fig. 1: part of the whole reduction of the evaluation function after a fifth of
# the time that a training takes on its own.
EARLY_PROGRESS: Mapping[str, float] = {"VAE": 0.65, "Bi-RNN": 0.98, "GRU": 0.90}

# Section III-B, Fig. 2: saving and resuming at any point takes less than this, seconds; and the
# standard deviation over the points.
SAVING_AT_MOST, SAVING_SPREAD = 5.0, 1.43


@dataclass(frozen=True, slots=True)
class DefaultRun:
    """What is known of the one run of the default scheduler behind a figure; seconds.

    Parameters
    ----------
    mean, makespan : float
        Mean completion time, and the end of the last job.
    job : int
        The job whose completion time is printed, from 1 on.
    time : float
        That time.
    """

    mean: float
    makespan: float
    job: int
    time: float


@dataclass(frozen=True, slots=True)
class SpeconRun:
    """What is known of the one run of SpeCon behind a figure.

    Parameters
    ----------
    gain : float
        By how much the mean completion time is lower than the default scheduler's.
    makespan : float
        End of the last job, seconds.
    reduced : float
        Part of the jobs that complete sooner.
    best : float
        Largest reduction of one job: of that whose time is known under both schedulers.
    """

    gain: float
    makespan: float
    reduced: float
    best: float


@dataclass(frozen=True, slots=True)
class PublishedSchedule:
    """An experiment of section VI, and what is published of it.

    Parameters
    ----------
    jobs, workers : int
        How many of each.
    window : float
        Seconds in which all jobs arrive.
    fixed : bool
        Whether one comes every ``window / jobs`` seconds, all of them VAE; else the times and the
        models are drawn.
    default : DefaultRun
        Under the default scheduler. Workloads are calibrated on this alone.
    specon : SpeconRun
        Under SpeCon: compared with what we find, and used for nothing else.
    """

    jobs: int
    workers: int
    window: float
    fixed: bool
    default: DefaultRun
    specon: SpeconRun


# Section VI-C2 prints no mean for Fig. 6, but it follows from what it prints: 15 jobs gain 165.7 s
# each on average, 5 lose 110.8 s each, and that is 13.6 % of what all 20 take under the default
# scheduler.
FIG6_MEAN = (15 * 165.7 - 5 * 110.8) / 20 / 0.136

SCHEDULES: Mapping[str, PublishedSchedule] = {
    "5": PublishedSchedule(  # section VI-B
        *(20, 4, 1000.0, True),
        DefaultRun(275.2, 1260.0, 17, 348.7),
        SpeconRun(1 - 234.7 / 275.2, 1190.0, 11 / 20, 0.376),
    ),
    "6": PublishedSchedule(  # section VI-C2
        *(20, 4, 300.0, False),
        DefaultRun(FIG6_MEAN, 1421.0, 14, 1167.8),
        SpeconRun(0.136, 1070.0, 15 / 20, 0.316),
    ),
    "7": PublishedSchedule(
        *(30, 4, 600.0, False),
        DefaultRun(865.7, 1760.0, 5, 1539.6),
        SpeconRun(1 - 800.2 / 865.7, 1498.0, 18 / 30, 0.288),
    ),
    "12": PublishedSchedule(  # section VI-D
        *(50, 8, 1200.0, False),
        DefaultRun(596.3, 2070.0, 50, 467.5),
        SpeconRun(1 - 553.0 / 596.3, 1840.0, 30 / 50, 0.415),
    ),
}

# Table III: alpha and interval, and what they gain on 20 VAE jobs in [0, 300].
TABLE3: Mapping[tuple[float, float], Mapping[str, float]] = {
    (0.05, 20.0): {"reduced": 0.600, "overall": 0.057, "best": 0.291, "makespan": 0.061},
    (0.05, 25.0): {"reduced": 0.600, "overall": 0.068, "best": 0.278, "makespan": 0.075},
    (0.05, 30.0): {"reduced": 0.550, "overall": 0.032, "best": 0.213, "makespan": 0.040},
    (0.01, 30.0): {"reduced": 0.650, "overall": 0.096, "best": 0.310, "makespan": 0.082},
    (0.10, 30.0): {"reduced": 0.600, "overall": 0.064, "best": 0.239, "makespan": 0.031},
}
