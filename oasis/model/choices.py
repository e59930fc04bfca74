"""Names that users give: the one that is meant, and which to suggest where none is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from oasis.model.errors import InputError

MOST_SUGGESTED = 3


def choice(name: Any, known: Iterable[str], field: str = "", *, expected: str = "") -> str:
    """Return the entry of `known` equal to `name` but for case; `InputError` if there is none."""
    entries = list(known)
    text = name.casefold() if isinstance(name, str) else None
    folded = [entry for entry in entries if entry.casefold() == text]
    # Names that differ in case alone are told apart by the exact spelling.
    same = [entry for entry in folded if entry == name] or folded
    if len(same) == 1:
        return same[0]
    expected = expected or f"one of {', '.join(entries)}"
    raise InputError(field, f"expected {expected}", name, hint=did_you_mean(name, entries))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with entries of `known` near `name`; empty if none is near."""
    similar = _near(name, list(known)) if isinstance(name, str) else []
    if not similar:
        return ""
    return f"; did you mean {' or '.join(map(repr, similar[:MOST_SUGGESTED]))}?"


def _near(name: str, known: list[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    # ``fs`` for ``fair-share`` and ``FairShare``
    plain, initials = _plain(name), "".join(word[0] for word in words).casefold()
    same = [plain, initials] if len(initials) > 1 else [plain]
    by_plain: dict[str, list[str]] = {}
    for entry in known:
        by_plain.setdefault(_plain(entry), []).append(entry)
    # The same letters or initials, one in the other, and last, as it is least certain, what few
    # changes of single letters lead to.
    guesses = (
        [one for one in same if one in by_plain],
        [e for e in by_plain if min(len(e), len(plain)) > 2 and (e in plain or plain in e)],
        get_close_matches(plain, by_plain, n=MOST_SUGGESTED),
    )
    nearest: list[str] = next(filter(None, guesses), [])
    return [entry for one in nearest for entry in by_plain[one]]


def _plain(name: str) -> str:
    """Return the letters and digits of `name` in lower case: ``Finish_Time`` is ``finishtime``."""
    return re.sub(r"[\W_]+", "", name).casefold()
