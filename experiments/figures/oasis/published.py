"""Numbers of the published figures (arXiv 1801.00936), read off the plots by eye.

They are good to about the width of a line: 2 % of the axis.
"""

from __future__ import annotations

from collections.abc import Mapping

# Fig. 3: total utility at T = 300, by policy and number of jobs.
FIG3: Mapping[str, Mapping[int, float]] = {
    "oasis": {100: 2970, 200: 5150, 300: 6680, 400: 7540},
    "fifo": {100: 900, 200: 1120, 300: 400, 400: 900},
    "drf": {100: 2330, 200: 1400, 300: 900, 400: 1000},
    "rrh": {100: 680, 200: 1510, 300: 1860, 400: 1910},
    "dorm": {100: 2690, 200: 3360, 300: 3940, 400: 3700},
}

# Fig. 4: range of the medians of completion minus target, slots; of OASiS is known only that its
# completions are nearest the target.
FIG4: Mapping[str, tuple[float, float]] = {
    "fifo": (43, 63),
    "drf": (43, 63),
    "dorm": (43, 63),
}

# Fig. 5: all ratios lie within.
FIG5 = (1.1, 1.5)

# Fig. 6: total utility of OASiS at 400 jobs, by U/L as a multiple of its true value.
FIG6: Mapping[float, float] = {0.2: 7150, 0.5: 8130, 1.0: 7540, 3.0: 6330, 5.0: 6160, 10.0: 5400}

# Fig. 8: total utility on the testbed.
FIG8: Mapping[str, float] = {"oasis": 283, "fifo": 137, "drf": 90, "rrh": 62, "dorm": 178}

# Fig. 9: median of completion minus target on the testbed, slots.
FIG9: Mapping[str, float] = {"oasis": 0, "fifo": 2, "drf": 6, "rrh": 2, "dorm": 4}
