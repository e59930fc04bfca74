"""What a pass over the library has done so far, so that it can go on where it was stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oasis.model.files import naming, write_text


class PassJournal:
    """A file with the settings of a pass and a line for each instance that it is done with.

    Parameters
    ----------
    path : Path
        The file. One that was written with other settings, or whose settings cannot be read, is
        begun anew.
    settings : mapping
        What must be the same for a pass to go on, as plain data.

    Attributes
    ----------
    done : set of str
        Names of the instances that the pass is done with.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from experiments.library.journal import PassJournal
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pass.jsonl"
    >>> PassJournal(path, {"seed": 1}).add("a")
    >>> PassJournal(path, {"seed": 1}).done, PassJournal(path, {"seed": 2}).done
    ({'a'}, set())
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path = path
        header = json.dumps(settings)
        lines = []
        if path.exists():
            # a line without an end was cut off when the process was killed
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        self.done: set[str] = set()
        if lines[:1] == [header]:
            self.done = set(lines[1:])
        write_text(path, "".join(f"{line}\n" for line in (header, *sorted(self.done))))

    def add(self, name: str) -> None:
        """Write down that an instance is done."""
        with naming(self._path), open(self._path, "a", encoding="utf-8") as stream:
            stream.write(f"{name}\n")
            stream.flush()
            os.fsync(stream.fileno())

    def close(self) -> None:
        """Remove the file: the pass is complete, the next one starts at the first instance."""
        self._path.unlink()
