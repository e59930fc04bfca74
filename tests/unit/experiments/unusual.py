"""For each policy, a value of each option that is not its default."""

from __future__ import annotations

from typing import Any

UNUSUAL: dict[str, dict[str, Any]] = {
    "oasis": {
        "scale": 0.5,
        "min_utility_fraction": 0.3,
        "granularity": "chunk",
        "normalize": False,
    },
    "recourse": {
        "commitment": "arrival",
        "seed": 4,
        "seconds": 30.0,
        "admission_floor": 0.3,
        "rounds": 2,
        "discount": 0.9,
        "started_bonus": 1.0,
        "min_utility_fraction": 0.01,
        "most_leaving": 2,
        "most_joining": 3,
        "noise": 0.1,
        "growth": 0.5,
        "tries": 3,
        "first_window": 4,
        "widening": 2,
    },
    "fifo": {"seed": 4, "placement": "spread"},
    "drf": {"placement": "first-fit"},
    "rrh": {"seed": 4, "threshold": 2.5, "discount": 0.1, "weight": 0.25, "placement": "one-node"},
    "dorm": {
        "theta_1": 0.2,
        "theta_2": 0.5,
        "node_limit": 3,
        "places": 40,
        "placement": "most-idle",
    },
    "srtf": {"seed": 4, "line": "backfill", "placement": "best-fit"},
    "las": {"seed": 4, "thresholds": [0.5, 2.0], "line": "backfill", "placement": "spread"},
    "kubernetes-default": {"seed": 4, "interleave": False},
    "locality-aware": {"reading": "code"},
    "dragon": {"urgent_after": 30.0, "idle_after": 0.0, "alarms": False, "reading": "code"},
    "kod2": {"starve_limit": 60.0, "form": "difference", "printed": True},
    "priority-queue": {"printed": True},
    "specon": {
        "alpha": 0.05,
        "interval": 20.0,
        "weights": [3.0, 1.5, 0.5],
        "counted": "cluster",
    },
}
