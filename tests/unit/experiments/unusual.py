"""For each policy, a value of each option that is not its default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PRICES = str(Path(__file__).with_name("prices.json"))  # U and L in raw units, with a floor of 0.3

UNUSUAL: dict[str, dict[str, Any]] = {
    "oasis": {
        "scale": 0.5,
        "min_utility_fraction": 0.3,
        "granularity": "chunk",
        "normalize": False,
        "bounds": PRICES,
    },
    "recourse": {
        "commitment": "arrival",
        "seed": 4,
        "seconds": 30.0,
        "admission": "learned",
        "prices": PRICES,
        "samples": 3,
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
    "fifo": {"seed": 4, "line": "fit", "placement": "spread"},
    "drf": {"by": "owner", "placement": "first-fit"},
    "rrh": {"seed": 4, "threshold": 2.5, "discount": 0.1, "weight": 0.25, "placement": "one-node"},
    "dorm": {
        "theta_1": 0.2,
        "theta_2": 0.5,
        "node_limit": 3,
        "places": 40,
        "placement": "most-idle",
    },
    "srtf": {"seed": 4, "line": "fit", "placement": "best-fit"},
    "las": {
        "seed": 4,
        "thresholds": [0.5, 2.0],
        "order": "running-first",
        "line": "fit",
        "placement": "spread",
    },
    "sjf": {"seed": 4, "line": "fit", "placement": "spread"},
    "srsf": {"seed": 4, "line": "fit", "placement": "spread"},
    "easy": {"seed": 4, "placement": "spread"},
    "gittins": {
        "seed": 4,
        "levels": [0.5, 2.0],
        "history": [1.0],
        "line": "fit",
        "placement": "spread",
    },
    "finish-time-fairness": {"seed": 4, "lease": 2.0, "line": "fit", "placement": "spread"},
    "gavel": {
        **{"seed": 4, "round_minutes": 12.0, "placement": "spread", "objective": "makespan"},
        **{"rounds": "strict", "reset_minutes": 1.0},
    },
    "kubernetes-default": {"seed": 4, "interleave": False},
    "locality-aware": {},
    "dragon": {"urgent_after": 30.0, "idle_after": 0.0},
    "kod2": {"starve_limit": 60.0},
    "priority-queue": {},
    "specon": {"alpha": 0.05, "interval": 20.0},
    "optimus": {"round_minutes": 4.0, "training": "async", "samples": 3, "convergence": 0.01},
    "elasticflow": {
        "slot_minutes": 4.0,
        "worth": 0.9,
        "margin_seconds": 30.0,
        "sizes": "any",
    },
}
