"""Record outputs of commands and golden runs, or compare them with the recorded ones.

``python -m tests.recorded record`` writes ``outputs`` and ``runs.json`` beside this file;
``python -m tests.recorded compare`` makes everything again and shows what differs (exit code 1).
With ``runs`` or ``outputs`` behind it, only these. A new output is a new file of ``outputs`` with
a line ``$ `` and the command, or several that make one story. The commands of a file run in a
folder of their own with ``files`` and the examples. As in a shell, ``NAME=value`` before a command
sets its environment, ``< file`` behind it is what it reads and ``> file`` keeps what it prints.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.recorded.outputs import (
    SAME,
    is_same,
    leaves,
    messages_of,
    of_any_libraries,
    text_of,
    written,
)
from tests.recorded.runs import runs
from tests.recorded.warm import in_a_process

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).parent / "outputs"
NAMES = ("congested.json", "elastic.json", "job.json", "sweep.toml")
EXAMPLES = [ROOT / "docs" / "examples" / name for name in NAMES]
FILES = [*(KEPT.parent / "files").iterdir(), *EXAMPLES, ROOT / "tests/packaging/small.json"]
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
        else:
            changed = [f"{k} {old[k]} -> {new[k]}" for k in old if not _equal(old[k], new[k])]
            if changed:
                lines.append(f"{name}: {', '.join(changed)}")
    return lines


def _equal(old: Any, new: Any) -> bool:
    """Whether two results are equal, floats to twelve significant digits."""
    pairs = list(zip(leaves(old), leaves(new), strict=False))
    return len(pairs) == len(list(leaves(old))) == len(list(leaves(new))) and all(
        math.isclose(a, b, rel_tol=SAME, abs_tol=SAME)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for a, b in pairs
    )


def outputs(what: str) -> int:
    """Run every command; return how many outputs differ from those recorded."""
    paths = sorted(KEPT.iterdir())
    differing = 0
    for path in paths:
        found = found_output(path)
        if what == "record":
            path.write_text(found)
        elif not is_same(path.read_text(), found):
            differing += 1
            print(difference(path, found))  # noqa: T201
    print(f"{len(paths)} outputs, {differing} differ")  # noqa: T201
    return differing


def found_output(path: Path) -> str:
    """What the commands of an output give now."""
    commands = re.findall(r"^\$ (.*)$", path.read_text(), re.MULTILINE)
    with tempfile.TemporaryDirectory() as place:
        for file in FILES:
            shutil.copy(file, place)
        return "".join(run(command, Path(place)) for command in commands)


def run(command: str, folder: Path) -> str:
    """Run a command; return what it prints and writes in its recorded form."""
    before = set(folder.rglob("*"))
    code, out, err = in_a_process(command, folder)
    parts = {
        f"$ {command}\n": f"exit code {code}\n",
        "# standard output\n": text_of(out),
        "# standard error\n": messages_of(err),
        "# files\n": written(folder, before),
    }
    return of_any_libraries("".join(heading + part for heading, part in parts.items() if part))


def difference(path: Path, found: str) -> str:
    """The first lines in which an output differs from the recorded one."""
    kept, now = path.read_text().splitlines(), found.splitlines()
    lines = difflib.unified_diff(kept, now, f"recorded/{path.name}", "now", lineterm="", n=1)
    return "\n".join(list(lines)[:40])


PART = {"runs": golden_runs, "outputs": outputs}

if __name__ == "__main__":
    what, *parts = sys.argv[1:] or [""]
    if what not in ("record", "compare") or not set(parts) <= set(PARTS):
        sys.exit("expected: python -m tests.recorded record|compare [runs] [outputs]")
    sys.exit(main(what, tuple(parts) or PARTS))
