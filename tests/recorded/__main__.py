"""Record outputs of commands and golden runs, or compare them with the recorded ones.

``python -m tests.recorded record`` writes ``outputs`` and ``runs.json`` beside this file;
``python -m tests.recorded compare`` makes everything again and shows what differs (exit code 1).
With ``runs`` or ``outputs`` behind it, only these.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.recorded.commands import COMMANDS, EXAMPLE, FILES
from tests.recorded.outputs import messages_of, text_of, written
from tests.recorded.runs import runs

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "outputs"
KEPT_RUNS = Path(__file__).parent / "runs.json"
PARTS = ("runs", "outputs")


def main(what: str, parts: tuple[str, ...] = PARTS) -> int:
    """Record, or compare; 1 if anything differs."""
    differing = [PART[part](what) for part in parts]
    return min(1, sum(differing))


def golden_runs(what: str) -> int:
    """Make every golden run; return how many differ from those recorded."""
    found = {name: make() for name, make in runs()}
    if what == "record":
        KEPT_RUNS.write_text(json.dumps(found, indent=0) + "\n")
        print(f"{len(found)} golden runs recorded")  # noqa: T201
        return 0
    differing = run_differences(json.loads(KEPT_RUNS.read_text()), found)
    print("\n".join(differing))  # noqa: T201
    print(f"{len(found)} golden runs, {len(differing)} differ")  # noqa: T201
    return len(differing)


def run_differences(kept: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """One line for each golden run that differs, is new or is gone, and in what."""
    lines = []
    for name in kept | found:
        old, new = kept.get(name), found.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'not recorded' if old is None else 'is gone'}")
        elif old != new:
            changed = [f"{key} {old[key]} -> {new[key]}" for key in old if old[key] != new[key]]
            lines.append(f"{name}: {', '.join(changed)}")
    return lines


def outputs(what: str) -> int:
    """Run every command; return how many outputs differ from those recorded."""
    differing = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, content in FILES.items():
            (folder / name).write_text(content)
        shutil.copy(ROOT / "docs" / "examples" / EXAMPLE, folder / EXAMPLE)
        examples = [sys.executable, "-m", "tests.recorded.examples"]
        steps = [(command, _oasis(command)) for command in COMMANDS]
        for number, (command, words) in enumerate([*steps, ("fixed examples", examples)]):
            found = run(command, words, folder)
            path = KEPT / f"{number:02}-{_slug(command)}.txt"
            if what == "record":
                KEPT.mkdir(exist_ok=True)
                path.write_text(found)
            elif not _is_same(path, found):
                differing += 1
    print(f"{len(COMMANDS) + 1} outputs, {differing} differ")  # noqa: T201
    return differing


def run(command: str, words: list[str], folder: Path) -> str:
    """Run a command; return what it prints and writes in its recorded form."""
    before = set(folder.rglob("*"))
    done = subprocess.run(
        words,
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"},
        check=False,
    )
    parts = (
        f"$ {command}\nexit code {done.returncode}\n",
        f"# standard output\n{text_of(done.stdout)}",
        f"# standard error\n{messages_of(done.stderr)}",
        f"# files\n{written(folder, before)}",
    )
    return "".join(parts)


def _oasis(command: str) -> list[str]:
    start = [sys.executable, "-c", "from experiments.cli.main import main; main()"]
    return [*start, *shlex.split(command)[1:]]


def _slug(command: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", command.removeprefix("oasis ").lower()).strip("-")[:50]


def _is_same(path: Path, found: str) -> bool:
    kept = path.read_text() if path.exists() else ""
    if kept == found:
        return True
    lines = difflib.unified_diff(
        kept.splitlines(), found.splitlines(), f"recorded/{path.name}", "now", lineterm="", n=1
    )
    print("\n".join(list(lines)[:40]))  # noqa: T201
    return False


PART = {"runs": golden_runs, "outputs": outputs}

if __name__ == "__main__":
    what, *parts = sys.argv[1:] or [""]
    if what not in ("record", "compare") or not set(parts) <= set(PARTS):
        sys.exit("expected: python -m tests.recorded record|compare [runs] [outputs]")
    sys.exit(main(what, tuple(parts) or PARTS))
