"""The answers of OASiS on another processor: ``python -m tests.portable`` and pytest's arguments.

NumPy chooses its loops by the processor that it runs on. Their sums differ in the last bit, and no
decision may depend on it. So pytest is run without AVX-512 or, where there is none, without all
that NumPy can do without.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from numpy._core import _multiarray_umath as compiled


def switched_off(dispatched: Sequence[str], features: Mapping[str, bool]) -> list[str]:
    """Features that this processor has and NumPy can do without: those of AVX-512, or all."""
    found = [name for name in dispatched if features[name]]
    return [name for name in found if name.startswith("AVX512") or name == "X86_V4"] or found


def main() -> None:
    """Replace this process by pytest, with less of the processor."""
    features = switched_off(compiled.__cpu_dispatch__, compiled.__cpu_features__)
    if not features:
        sys.stdout.write("NumPy has one kind of loops for this processor: nothing to compare\n")
        return
    os.environ["NPY_DISABLE_CPU_FEATURES"] = " ".join(features)
    sys.stdout.write(f"without {' '.join(features)}\n")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])


if __name__ == "__main__":
    main()
