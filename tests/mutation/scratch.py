"""Copies of the project in which mutants are run, so that the checkout is never changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter

from tests.mutation.mutants import Mutant
from tests.mutation.parts import ROOT

LEFT_OUT = shutil.ignore_patterns(".*", "_build", "build", "dist", "*.egg-info", "__pycache__")
NOTICED = (1, 2)  # pytest's exit codes: a test failed, a module could not be imported
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"


class Scratch:
    """One copy of the project, in which one mutant is run at a time."""

    def __init__(self) -> None:
        self.root = Path(mkdtemp(prefix="mutants-"))
        shutil.copytree(ROOT, self.root, ignore=LEFT_OUT, dirs_exist_ok=True)

    def remove(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self.root)

    def baseline(self, tests: list[str]) -> float:
        """Seconds that the tests take on the code as it is; they must pass, in this copy."""
        where = "import oasis, offline; print(oasis.__file__, offline.__file__)"
        _, output = self._python(["-c", where], None)
        if any(not Path(name).is_relative_to(self.root) for name in output.split()):
            raise RuntimeError(f"expected imports from the scratch copy, got {output.strip()}")
        begin = perf_counter()
        code, output = self._pytest(tests, None)
        if code != 0:
            raise RuntimeError(f"the tests fail without any mutation:\n{output}")
        return perf_counter() - begin

    def run(self, mutant: Mutant, tests: list[str], limit: float) -> str:
        """Run `tests` against `mutant` for at most `limit` seconds; return the result."""
        path = self.root / mutant.module
        original = path.read_text("utf-8")
        path.write_text(mutant.code, "utf-8")
        try:
            code, output = self._pytest(tests, limit)
        finally:
            path.write_text(original, "utf-8")
        if code is None:
            return TIMED_OUT
        if code == 0:
            return SURVIVED
        if code in NOTICED or code < 0:  # below 0: the process was killed, as by a crash
            return KILLED
        raise RuntimeError(f"pytest ended with {code} on {mutant.module}:{mutant.row}:\n{output}")

    def _pytest(self, tests: list[str], limit: float | None) -> tuple[int | None, str]:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "tests.mutation.no_shrink"]
        return self._python(["-m", "pytest", *options, *tests], limit)

    def _python(self, arguments: list[str], limit: float | None) -> tuple[int | None, str]:
        """Exit code, None after `limit` seconds, and what was printed."""
        environment = dict(os.environ, PYTHONPATH=str(self.root), PYTHONDONTWRITEBYTECODE="1")
        with subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that processes that the tests start end with them
        ) as process:
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None, ""
            return process.returncode, output
