"""Run commands in processes that begin with all modules loaded, which saves seconds for each.

This program loads them, and forks for each command that it is told of in a line of standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"}


def in_a_process(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Run the command in `folder`; its exit code, standard output and standard error."""
    with TemporaryDirectory() as place:
        streams = [str(Path(place, name)) for name in ("out", "err")]
        loaded = _loaded()
        assert loaded.stdin is not None
        assert loaded.stdout is not None
        loaded.stdin.write(json.dumps([words, str(folder), streams]) + "\n")
        loaded.stdin.flush()
        code = int(loaded.stdout.readline())
        out, err = (Path(name).read_text(encoding="utf-8") for name in streams)
    return code, out, err


@cache
def _loaded() -> subprocess.Popen[str]:
    """This program; it ends with its standard input."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "tests.recorded.warm"]
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ | ENVIRONMENT, stdin=pipe, stdout=pipe, text=True
    )


def _main() -> None:
    import pandas  # noqa: F401
    import pulp  # noqa: F401

    from oasis.__main__ import main

    for line in sys.stdin:
        words, folder, streams = json.loads(line)
        if os.fork() == 0:
            for number, name in enumerate([os.devnull, *streams]):
                os.dup2(os.open(name, os.O_CREAT | os.O_RDWR), number)
            os.chdir(folder)
            sys.argv = ["oasis", *words]
            main()
        _, status = os.wait()
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


if __name__ == "__main__":
    _main()
