"""Calling the ``oasis`` command in tests: in this process or one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "congested.json"
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

SMALL: dict[str, Any] = {
    "format": "oasis-instance",
    "version": 1,
    "horizon": 4,
    "slot_seconds": 3600.0,
    "resources": ["gpu", "bandwidth_gbps"],
    "worker_servers": [{"id": "w", "count": 2, "capacity": {"gpu": 2, "bandwidth_gbps": 20}}],
    "ps_servers": [{"id": "p", "capacity": {"bandwidth_gbps": 20}}],
    "jobs": [
        {
            "id": name,
            "arrival": arrival,
            "epochs": 2,
            "chunks": 4,
            "minibatches": 1,
            "minibatch_time": 0.5,
            "gradient_mb": 100.0,
            "worker": {"gpu": 1, "bandwidth_gbps": 1.0},
            "ps": {"bandwidth_gbps": 5.0},
            "utility": {"kind": "sigmoid", "priority": 10.0, "decay": 0.5, "target": 2.0},
        }
        for name, arrival in (("a", 0), ("b", 1))
    ],
    "metadata": {"seed": 7},
}

Result = tuple[int, str, str]
Oasis = Callable[..., Result]


def shell(
    *arguments: object,
    code: str = "",
    folder: Path = ROOT,
    stdout: Any = subprocess.PIPE,
    **environment: str,
) -> Result:
    """Run the command, after `code`, in a process of its own."""
    start = f"{code}\nfrom experiments.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", start, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def assert_refused(result: Result, *mentions: str) -> None:
    """Exit code 2, nothing on standard output, one line on standard error that says what."""
    code, out, err = result
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("oasis: ")
    for text in mentions:
        assert text in err
