"""Record outputs, or compare them with the recorded ones.

``python -m tests.recorded record`` writes ``tests/recorded/outputs``;
``python -m tests.recorded compare`` runs everything again and shows what differs (exit code 1).
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.recorded.commands import COMMANDS, EXAMPLE, FILES
from tests.recorded.outputs import messages_of, text_of, written

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "outputs"


def main(what: str) -> int:
    """Record, or compare; the number of outputs that differ."""
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
    return min(1, differing)


def run(command: str, words: list[str], folder: Path) -> str:
    """What a command prints and writes, as it is kept."""
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


if __name__ == "__main__":
    if sys.argv[1:] not in (["record"], ["compare"]):
        sys.exit("expected: python -m tests.recorded record|compare")
    sys.exit(main(sys.argv[1]))
