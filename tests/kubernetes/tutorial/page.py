"""The commands of the pages on Kubernetes, taken out of them and carried out."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
NAMES = ("install", "submit", "observe", "operate")
PAGES = [ROOT / f"docs/kubernetes-{name}.md" for name in NAMES]
ASKS = tuple(f"oasis kubernetes {word}" for word in ("status", "plan", "quote", "explain"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PATIENCE = 150.0  # seconds until what the page shows has to be so
PAUSE = 1.0


@dataclass(frozen=True)
class Command:
    """A line that a reader types, and what the page shows below it."""

    line: str
    shown: str


@dataclass(frozen=True)
class File:
    """A file that a reader saves under the name in its first line."""

    name: str
    text: str


def steps() -> list[Command | File]:
    """What a reader of the pages types and saves, in order.

    Objects whose first line is no name of a file are parts of one, shown to be read.
    """
    found: list[Command | File] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            first = block.partition("\n")[0]
            if language == "console":
                found += commands(block)
            elif language == "yaml" and first.startswith("# "):
                found.append(File(first.removeprefix("# "), block))
    return found


def commands(block: str) -> Iterator[Command]:
    """The commands of a block of shell and output."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield Command(line, shown)


def words_on_path(directory: Path, controlplane: Path) -> None:
    """Make `oasis` and `kubectl` commands in `directory`."""
    directory.mkdir()
    for name, target in (
        ("oasis", [sys.executable, "-m", "experiments.cli"]),
        ("kubectl", [str(controlplane), "kubectl"]),
    ):
        path = directory / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(target)} "$@"\n')
        path.chmod(0o755)


def environment(words: Path, kubeconfig: Path) -> dict[str, str]:
    """Of a reader who has the two commands and is the admin of a cluster."""
    return {
        **os.environ,
        "PATH": f"{words}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
        "COLUMNS": "120",
    }


def carry_out(command: Command, directory: Path, environment: Mapping[str, str]) -> str | None:
    """Type a command, again and again if it only asks, until it says what the page shows.

    Returns what it said instead; None if it said that.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run(
            ["sh", "-c", command.line],
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        good = done.returncode == 0
        if good and doctest.OutputChecker().check_output(command.shown, done.stdout, FLAGS):
            return None
        if not command.line.startswith(ASKS) or time.monotonic() > deadline:
            return f"$ {command.line}\n{done.stdout}({done.returncode})"
        time.sleep(PAUSE)
