"""The commands of the pages on Kubernetes, taken out of them and carried out."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.kubernetes.controlplane.plane import ControlPlane
from tests.kubernetes.controlplane.waiting import free_ports
from tests.kubernetes.names import CONTROLLER, SYSTEM

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CHART = ROOT / "oasis/kubernetes/chart"
Shell = Callable[..., str]  # `typed` in an environment
NAMES = ("install", "submit", "observe", "operate")
PAGES = [ROOT / f"docs/kubernetes-{name}.md" for name in NAMES]
ASKS = tuple(f"oasis kubernetes {word}" for word in ("status", "plan", "quote", "explain"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PATIENCE = 150.0  # seconds until what the page shows has to be so
PAUSE = 1.0


class Command(NamedTuple):
    """A line that a reader types, and what the page shows below it."""

    line: str
    shown: str


class File(NamedTuple):
    """A file that a reader saves under the name in its first line."""

    name: str
    text: str


def steps() -> list[Command | File]:
    # Objects whose first line is no name of a file are parts of one, shown to be read.
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
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield Command(line, shown)


def words_on_path(directory: Path, controlplane: Path, helm: Path | None = None) -> None:
    """Make `oasis` and `kubectl` commands in `directory`, and `helm` where it is given."""
    directory.mkdir()
    for name, target in (
        ("oasis", [sys.executable, "-m", "experiments.cli"]),
        ("kubectl", [str(controlplane), "kubectl"]),
    ):
        path = directory / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join(target)} "$@"\n')
        path.chmod(0o755)
    if helm is not None:
        (directory / "helm").symlink_to(helm)


def environment(words: Path, kubeconfig: Path, home: Path | None = None) -> dict[str, str]:
    """The environment of a reader who has these commands and is the admin of a cluster."""
    return {
        **os.environ,
        "PATH": f"{words}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
        "COLUMNS": "120",
        **({} if home is None else {"HOME": str(home)}),
    }


def shell(
    environment: Mapping[str, str], line: str, where: Path, given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line],
        input=given,
        cwd=where,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def typed(environment: Mapping[str, str], line: str, code: int = 0, given: str = "") -> str:
    """Output of a command line, typed where the manifests are; it must end with `code`."""
    done = shell(environment, line, DEPLOY, given)
    assert done.returncode == code, f"$ {line}\n{done.stdout}"
    return done.stdout


def carry_out(command: Command, directory: Path, environment: Mapping[str, str]) -> str | None:
    """Type a command, again and again if it only asks, until it says what the page shows."""
    # Returns what it said instead; None if it said that.
    deadline = time.monotonic() + PATIENCE
    while True:
        done = shell(environment, command.line, directory)
        good = done.returncode == 0
        if good and doctest.OutputChecker().check_output(command.shown, done.stdout, FLAGS):
            return None
        if not command.line.startswith(ASKS) or time.monotonic() > deadline:
            return f"$ {command.line}\n{done.stdout}({done.returncode})"
        time.sleep(PAUSE)


@contextmanager
def container(plane: ControlPlane, words: Path, log: Path) -> Iterator[None]:
    """Run the container of the Deployment with its service account, as a kubelet does."""
    shown = plane.kubectl("get", "deployment", CONTROLLER, f"--namespace={SYSTEM}", "-ojson")
    (port,) = free_ports(1)
    account = plane.service_account(CONTROLLER, SYSTEM)
    arguments = [
        argument.replace("$(POD_NAMESPACE)", SYSTEM)
        for argument in json.loads(shown)["spec"]["template"]["spec"]["containers"][0]["args"]
    ]
    own = ["--metrics-port", str(port), "--kubeconfig", str(account.kubeconfig())]
    with log.open("w") as lines:
        process = subprocess.Popen(
            [str(words / "oasis"), *arguments, *own],
            env=environment(words, account.kubeconfig()),
            stdout=lines,
            stderr=lines,
        )
        try:
            yield
            assert process.poll() is None, log.read_text()
        finally:
            process.terminate()
            process.wait(timeout=60.0)
