"""Numbers of the KOD2 paper (Jeong and Yu, KTCCS 2022) that its text repeats from its figures."""

from __future__ import annotations

from collections.abc import Mapping

# Section 5.2. Fig. 7(b) at batch size 128: by how much KOD2 lowers the mean completion time.
# Panels (a) to (d) are the models in the order of Table 3.
FIG7: Mapping[tuple[str, int], float] = {("VGG-16", 128): 0.84}
# Fig. 8(b), batch size 64: by how much KOD2 raises the mean use of the CPUs, "up to".
FIG8: Mapping[str, float] = {"VGG-16": 0.92}
