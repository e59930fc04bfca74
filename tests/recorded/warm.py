"""Run commands in processes that begin with all modules loaded, which saves seconds for each.

This program loads them, and forks for each command that it is told of in a line of standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"}


def in_a_process(command: str, folder: Path) -> tuple[int, str, str]:
    """Run the command in `folder`; its exit code, standard output and standard error."""
    words, streams = shlex.split(command), dict.fromkeys("<>", os.devnull)
    variables = takewhile(lambda word: word != "oasis", words)
    environment = dict(word.split("=", 1) for word in variables)
    while words[:-1] and words[-2] in streams:
        *words, sign, streams[sign] = words
    with TemporaryDirectory() as place:
        files = [streams["<"], *(str(Path(place, name)) for name in ("out", "err"))]
        loaded = _loaded()
        assert loaded.stdin is not None
        assert loaded.stdout is not None
        given = [words[len(environment) + 1 :], environment, str(folder), files]
        loaded.stdin.write(json.dumps(given) + "\n")
        loaded.stdin.flush()
        code = int(loaded.stdout.readline())
        out, err = (Path(name).read_text(encoding="utf-8") for name in files[1:])
    if streams[">"] != os.devnull:
        Path(folder, streams[">"]).write_text(out, encoding="utf-8")
        out = ""
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
    import jinja2  # noqa: F401
    import matplotlib.pyplot as plt  # noqa: F401
    import pandas  # noqa: F401
    import pulp  # noqa: F401

    from oasis.__main__ import main

    commands = importlib.import_module("experiments.cli.commands")
    for each in pkgutil.walk_packages(commands.__path__, f"{commands.__name__}."):
        importlib.import_module(each.name)

    gc.freeze()
    for line in sys.stdin:
        words, environment, folder, files = json.loads(line)
        if os.fork() == 0:
            os.environ.update(environment)
            os.chdir(folder)
            for number, name in enumerate(files):
                os.dup2(os.open(name, os.O_CREAT | os.O_RDWR), number)
            sys.argv = ["oasis", *words]
            _end_with(main)
        _, status = os.wait()
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _end_with(command: Callable[[], None]) -> None:
    """Run a command that ends the process, without the time to take all modules down."""
    try:
        command()
    except SystemExit as end:
        if threading.active_count() > 1:  # of a pool of processes, which it ends
            raise
        os._exit(int(end.code or 0))


if __name__ == "__main__":
    _main()
