"""Follow an instance through `oasis ratio`: which files it enters, how often it comes back.

Every call of a function of this project that gets the instance as an argument is a step; methods of
the instance itself are none. Steps in the same file one after the other count as one visit, and a
visit to a file that had been left before is a return.

    python tests/benchmarks/journey.py [--tree DIRECTORY] [--list] [options of `oasis ratio`]

`--tree` names another checkout, such as one of an earlier commit, to compare with. The options
default to `--json`; a work limit makes the path, and so the counts, the same on every machine.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import os
import runpy
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parents[2]
PACKAGES = ("oasis", "offline", "baselines", "experiments")


@dataclass(slots=True)
class Journey:
    """The files that an instance went through.

    Parameters
    ----------
    root : Path
        Checkout whose functions are followed.
    """

    root: Path
    visits: list[str] = field(default_factory=list)
    steps: int = 0
    _instance: Any = None
    _generators: list[FrameType] = field(default_factory=list)

    def on_event(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call, as `sys.setprofile` reports it."""
        if event != "call":
            return
        file = self._file(frame.f_code.co_filename)
        if file is None or not self._gets_instance(frame):
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            if any(known is frame for known in self._generators):
                return  # a generator that goes on is no new call
            self._generators.append(frame)
        self.steps += 1
        if not self.visits or self.visits[-1] != file:
            self.visits.append(file)

    def _file(self, name: str) -> str | None:
        path = Path(name)
        if not path.is_relative_to(self.root):
            return None
        inside = path.relative_to(self.root)
        return inside.as_posix() if inside.parts[0] in PACKAGES else None

    def _gets_instance(self, frame: FrameType) -> bool:
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & inspect.CO_VARARGS)
        names = code.co_varnames[:count]
        arguments = [frame.f_locals[name] for name in names if name in frame.f_locals]
        if self._instance is None:
            # the first one made is the one that the command reads
            self._instance = next((a for a in arguments if type(a).__name__ == "Instance"), None)
        if self._instance is None or (arguments and arguments[0] is self._instance and _own(names)):
            return False
        return any(argument is self._instance for argument in arguments)

    @property
    def returns(self) -> int:
        """Visits to a file that had been left before."""
        return len(self.visits) - len(set(self.visits))

    @property
    def ways_back(self) -> int:
        """The returns, with the way from one file to another counted once."""
        seen, ways = set(self.visits[:1]), set()
        for before, file in pairwise(self.visits):
            if file in seen:
                ways.add((before, file))
            seen.add(file)
        return len(ways)


def _own(names: tuple[str, ...]) -> bool:
    return names[0] == "self"


def follow(root: Path, options: list[str]) -> Journey:
    """Run `oasis ratio` on the shipped example in the checkout `root`."""
    journey = Journey(root)
    sys.path.insert(0, str(root))
    os.chdir(root)
    sys.argv = ["oasis", "ratio", "docs/examples/congested.json", *options]
    threading.setprofile(journey.on_event)
    sys.setprofile(journey.on_event)
    try:
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_module("experiments.cli", run_name="__main__")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return journey


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=HERE)
    parser.add_argument("--list", action="store_true", help="print the visits one by one")
    known, options = parser.parse_known_args()
    journey = follow(known.tree.resolve(), options or ["--json"])
    if known.list:
        print("\n".join(journey.visits))
    for file, times in Counter(journey.visits).most_common():
        print(f"{times:5}  {file}")
    print(f"calls with the instance: {journey.steps}")
    print(f"files entered: {len(set(journey.visits))}")
    print(f"returns to a file already left: {journey.returns}, by {journey.ways_back} ways")


if __name__ == "__main__":
    main()
