"""A program that is killed without warning at moments drawn from a seed, and started again."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.kubernetes.controlplane.guardian import Guardian


class MortalProgram:
    """`command`, running from entering to leaving this context manager.

    Its output goes to `directory`/program.log, across all lives. The guardian takes `directory`
    away in the end, and the program even if the test itself is killed.
    """

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        directory.mkdir()
        self.log = directory / "program.log"
        self.lives = 0
        self._command = list(command)
        self._guardian = Guardian(directory)

    def __enter__(self) -> MortalProgram:
        self._guardian.__enter__()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._guardian.__exit__()

    def start(self) -> None:
        """Begin a life."""
        self._process: subprocess.Popen[bytes] = self._guardian.start(self._command, self.log)
        self.lives += 1

    def kill(self) -> None:
        """End it by SIGKILL; an error if it has ended by itself, which no test expects."""
        if (code := self._process.poll()) is not None:
            raise RuntimeError(f"exited by itself ({code}): {self.log.read_text()[-2000:]}")
        self._process.kill()
        self._process.wait()

    def kill_and_restart(self, seed: int, times: int, longest: float) -> None:
        """Kill it and start it again, `times` times, each after up to `longest` seconds of life."""
        draw = random.Random(seed)
        for _ in range(times):
            time.sleep(draw.uniform(0, longest))
            self.kill()
            self.start()
