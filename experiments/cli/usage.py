"""Clearer messages for usage errors that typer reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from typer.exceptions import TyperException

from experiments.evaluation.limits import share_hint
from oasis.model.choices import did_you_mean
from oasis.model.errors import InputError, OasisError
from oasis.model.file_kinds import FileKind
from oasis.traces.plain import FORMATS
from oasis.traces.readers import NODES, PODS
from oasis.traces.table import read_source

# What typer says of a value, and the words for it here.
BAD_VALUE = re.compile(r"Invalid value for '(--[\w-]+)': (?:Value error, )?(.*)", re.S)
EXPECTED = (
    (r"Input should be a valid integer.*", "expected an integer"),
    (r"Input should be a valid number.*", "expected a number"),
    (r"Input should be greater than or equal to (\S+)", r"expected at least \1"),
    (r"Input should be less than or equal to (\S+)", r"expected at most \1"),
)
LISTS = ("--policies", "--job-counts", "--mix", "--priority")  # options whose entries have commas


def usage_error(error: TyperException, words: Sequence[str]) -> InputError:
    """The error of this project for one of typer; `words` is what the user typed."""
    message = error.format_message().strip()
    context = getattr(error, "ctx", None)
    place = context.command_path if context else ""
    options = [name for each in context.command.params for name in each.opts] if context else []
    better = usage_message(message, words, place, options)
    hint = f" (see '{place} --help')" if place else ""
    return InputError("", f"{better or message}{hint}")


def usage_message(message: str, words: Sequence[str], place: str, options: Sequence[str]) -> str:
    """A clearer message than typer's `message` at the command `place`; empty if there is none."""
    may_be_list = "extra argument" in message or any(f"'{each}'" in message for each in LISTS)
    if may_be_list and (better := _spaces_for_commas(words)):
        return better
    if match := re.match(r"No such option: (\S+)", message):
        return f"{match[0]}{did_you_mean(match[1], options)}"
    if match := BAD_VALUE.fullmatch(message):
        return _bad_value(match[1], match[2], words)
    if message.startswith("No such command") and place == "oasis import":
        return _no_format(next((word for word in words[1:] if not word.startswith("-")), ""))
    return ""


def _bad_value(option: str, message: str, words: Sequence[str]) -> str:
    """Name the option, what was expected and what was given, as everywhere else."""
    for pattern, expected in EXPECTED:
        if match := re.fullmatch(pattern, message, re.S):
            value = _given(option, words)
            return f"{option}: {match.expand(expected)}, got {value!r}{share_hint(value)}"
    return f"{option}: {message}"


def _given(option: str, words: Sequence[str]) -> str:
    """The last value of an option, which is the one that counts."""
    return [
        after if word == option else word.partition("=")[2]
        for word, after in pairwise([*words, ""])
        if word.partition("=")[0] == option
    ][-1]


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
    formats = ", ".join(FORMATS)
    path = Path(word)
    if not (path.suffix or path.exists()):
        suggested = did_you_mean(word, FORMATS)
        return f"FORMAT: expected one of {formats}, got {word!r}{suggested}"
    expected = f"FORMAT: expected one of {formats} before the file, got {word!r}"
    kind = _kind_of_file(path)
    if kind is None or kind.name not in (*FORMATS, NODES):
        return f"{expected}; oasis import FORMAT {word} -o mine.json"
    name = PODS.name if kind.name == NODES else kind.name
    files = {PODS.name: f"{word} NODES", NODES: f"PODS {word}"}.get(kind.name, word)
    return f"{expected}, which looks like {kind.name}: oasis import {name} {files} -o mine.json"


def _kind_of_file(path: Path) -> FileKind | None:
    """The kind of a file; None if it cannot be read, which `oasis import FORMAT` reports."""
    try:
        return read_source(path).kind()
    except (OSError, OasisError):
        return None
