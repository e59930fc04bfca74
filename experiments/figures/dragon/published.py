"""Numbers of the DRAGON paper (CLOSER 2019), from its text and the labels of its plots."""

from __future__ import annotations

from collections.abc import Mapping

# Fig. 7 and section 4.2: parts of the mean elapsed time, in units of the default scheduler's. The
# labels 0.02, 0.03 and 0.04 of waiting and scaling survive in the text without their bars.
FIG7: Mapping[str, Mapping[str, float | None]] = {
    "kubernetes-default": {"elapsed": 1.0, "running": 0.66, "waiting": 0.34, "scaling": 0.0},
    "locality-aware": {"elapsed": 0.40, "running": 0.38, "waiting": None, "scaling": 0.0},
    "dragon": {"elapsed": 0.35, "running": 0.30, "waiting": None, "scaling": None},
    "dragon (code)": {"elapsed": 0.35, "running": 0.30, "waiting": None, "scaling": None},
}

# Section 4.2: mean utilisation of the GPUs.
FIG8: Mapping[str, float] = {
    "kubernetes-default": 0.57,
    "locality-aware": 0.45,
    "dragon": 0.79,
    "dragon (code)": 0.79,
}

# Section 4.2: by how much longer the default scheduler runs a job than DRAGON does.
FIG6_FACTORS = (1.2, 6.3)
