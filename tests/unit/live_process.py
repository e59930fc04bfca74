"""A service that is killed: makes the calls of a drill with a journal open and prints answers."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.live import KINDS, Drill

if __name__ == "__main__":
    journal, kind, seed, steps = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    drill = Drill(KINDS[kind](), seed)
    drill.scheduler.open_journal(journal)
    for step in range(steps):
        drill.step()
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
        if step % 7 == 6:
            drill.scheduler.checkpoint()
