"""Clearer messages for usage errors that typer reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from oasis.model.choices import did_you_mean
from oasis.model.errors import OasisError
from oasis.model.file_kinds import NODES, OPENB, TRACES, FileKind
from oasis.traces.table import read_source

LISTS = ("--policies", "--job-counts", "--mix", "--priority")  # options whose entries have commas


def usage_message(message: str, words: Sequence[str], place: str, options: Sequence[str]) -> str:
    """Return a clearer message than `message`, or an empty text if there is none.

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
            # A flag or a name of a file ends the list.
            if entry.startswith("-") or re.search(r"\.[a-z]\w*$", entry) or Path(entry).is_file():
                break
            entries.append(entry.strip(","))
        if len(entries) > 1:
            got = " ".join(words[k : k + len(entries) + (not equals)])
            return f"{option}: expected commas, not blanks: {option} {','.join(entries)}, got {got}"
    return ""


def _no_format(word: str) -> str:
    """``oasis import trace.csv``: the format is missing, and the file may say which it is."""
    known = ", ".join(TRACES)
    path = Path(word)
    if not (path.suffix or path.exists()):
        suggested = did_you_mean(word, TRACES)
        return f"FORMAT: expected one of {known}, got {word!r}{suggested}"
    expected = f"FORMAT: expected one of {known} before the file, got {word!r}"
    kind = _kind_of_file(path)
    if kind is None or kind.name not in (*TRACES, NODES):
        return f"{expected}; oasis import FORMAT {word} -o mine.json"
    found = OPENB if kind.name == NODES else kind.name
    files = {OPENB: f"{word} NODES", NODES: f"PODS {word}"}.get(kind.name, word)
    return f"{expected}, which looks like {kind.name}: oasis import {found} {files} -o mine.json"


def _kind_of_file(path: Path) -> FileKind | None:
    """The kind of a file; None if it cannot be read, which `oasis import FORMAT` reports."""
    try:
        return read_source(path).kind()
    except (OSError, OasisError):
        return None
