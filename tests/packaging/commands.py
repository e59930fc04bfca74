"""Calling the ``oasis`` command in tests: in this process or one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "congested.json"
ELASTIC = ROOT / "docs" / "examples" / "elastic.json"
SWEEP = ROOT / "docs" / "examples" / "sweep.toml"
JOB = ROOT / "docs" / "examples" / "job.json"

# For the beginning of a program: without this package.
BLOCK = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""

SMALL: dict[str, Any] = json.loads(Path(__file__).with_name("small.json").read_text())

Result = tuple[int, str, str]
Oasis = Callable[..., Result]


def python(
    *words: object, folder: Path = ROOT, stdout: Any = subprocess.PIPE, **environment: str
) -> Result:
    """Run Python in a process of its own."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def shell(
    *arguments: object,
    code: str = "",
    folder: Path = ROOT,
    stdout: Any = subprocess.PIPE,
    **environment: str,
) -> Result:
    """Run the command, after `code`, in a process of its own."""
    start = f"{code}\nfrom oasis.__main__ import main\nmain()"
    return python("-c", start, *arguments, folder=folder, stdout=stdout, **environment)


def assert_refused(result: Result, *mentions: str) -> None:
    """Exit code 2, nothing on standard output, one line on standard error that says what."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("oasis: ")
    for text in mentions:
        assert text in err
