"""Measure the time until work begins: ``python -m tests.benchmarks.startup``.

Processor time of a process from its start to its end, the least of several: on a busy machine the
time of the clock says nothing. Targets: 0.2 s for ``import oasis``, 0.5 s for ``oasis --version``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPEATS = 7
STARTS = {
    "python": ("-c", "pass"),
    "import numpy": ("-c", "import numpy"),
    "import oasis": ("-c", "import oasis"),
    "oasis --version": ("-m", "oasis", "--version"),
    "oasis --help": ("-m", "oasis", "--help"),
}
TARGETS = {"import oasis": 0.2, "oasis --version": 0.5}


def processor_seconds(words: tuple[str, ...]) -> float:
    """Processor time that one process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a table."""
    for name, words in STARTS.items():
        least = min(processor_seconds(words) for _ in range(REPEATS))
        target = f"  target {TARGETS[name]:.1f} s" if name in TARGETS else ""
        print(f"{name:16} {least:.3f} s{target}")


if __name__ == "__main__":
    main()
