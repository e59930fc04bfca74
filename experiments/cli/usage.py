"""What to say of usage that typer refuses, where more can be said than it does."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from oasis.model.choices import did_you_mean

TRACE_FORMATS = {  # names of columns by which a header is recognised
    "plain": ("submitted", "duration", "gpus"),
    "slurm": ("jobid", "submit"),
    "swf": (),
    "philly": ("timestamp", "duration", "num_gpus"),
    "openb": ("cpu_milli", "memory_mib"),
}
BEGIN_BYTES = 4096  # of a file, in which its header is
SWF_FIELDS = 18  # of each line
LISTS = ("--policies", "--job-counts", "--mix", "--priority")  # options whose entries have commas


def usage_message(message: str, words: Sequence[str], place: str, options: Sequence[str]) -> str:
    """A better message than `message`, or nothing.

    Parameters
    ----------
    message : str
        What typer says.
    words : sequence of str
        What the user typed behind ``oasis``.
    place : str
        The command that refused it, such as ``oasis import``.
    options : sequence of str
        Those that this command has.
    """
    if "extra argument" in message or any(f"'{option}'" in message for option in LISTS):
        return _spaces_for_commas(words)
    if found := re.match(r"No such option: (\S+)", message):
        return f"{found[0]}{did_you_mean(found[1], options)}"
    if message.startswith("No such command") and place == "oasis import":
        return _no_format(next((word for word in words[1:] if not word.startswith("-")), ""))
    return ""


def _spaces_for_commas(words: Sequence[str]) -> str:
    """A list that was given with blanks between its entries ends at the first."""
    for k, word in enumerate(words):
        option, equals, first = word.partition("=")
        if option not in LISTS:
            continue
        entries = [first] if equals else []
        for entry in words[k + 1 :]:
            if entry.startswith("-") or re.search(r"\.[a-z]\w*$", entry) or Path(entry).is_file():
                break
            entries.append(entry.strip(","))
        if len(entries) > 1:
            got = " ".join(words[k : k + len(entries) + (not equals)])
            return f"{option}: expected commas, not blanks: {option} {','.join(entries)}, got {got}"
    return ""


def _no_format(word: str) -> str:
    """``oasis import trace.csv``: the format is missing, and the file may say which it is."""
    known = ", ".join(TRACE_FORMATS)
    path = Path(word)
    if not (path.suffix or path.exists()):
        suggested = did_you_mean(word, TRACE_FORMATS)
        return f"FORMAT: expected one of {known}, got {word!r}{suggested}"
    expected = f"FORMAT: expected one of {known} before the file, got {word!r}"
    found = _format_of(path)
    if found is None:
        return f"{expected}; oasis import FORMAT {word} -o mine.json"
    files = f"PODS {word}" if found == "openb" else word
    return f"{expected}, which looks like {found}: oasis import {found} {files} -o mine.json"


def _format_of(path: Path) -> str | None:
    """The format that the beginning of a file looks like, if it is one."""
    try:
        with path.open("rb") as stream:
            is_packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_packed else path.open("rb") as stream:
            begin = stream.read(BEGIN_BYTES).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error):  # the last two: a gzip that is cut off or broken
        return None
    lines = [line for line in begin.splitlines() if line.strip()]
    if not lines:
        return None
    header = [name.strip().lower() for name in re.split(r"[,|;\t]", lines[0].lstrip("\ufeff"))]
    for name, columns in TRACE_FORMATS.items():
        if columns and set(columns) <= {"jobid" if e == "jobidraw" else e for e in header}:
            return name
    rows = [line for line in lines if not line.startswith(";")]
    is_swf = lines[0].startswith(";") or (rows and len(rows[0].split()) == SWF_FIELDS)
    return "swf" if is_swf else None
