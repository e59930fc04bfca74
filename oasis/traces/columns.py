"""Columns of a table of jobs: named by the user, or recognised by common names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from oasis.model.errors import InstanceError
from oasis.traces.options import UNITS
from oasis.traces.plain_job import FACTS
from oasis.traces.table import COLUMN, csv_cells

# What a table may say of a job -> names of such columns, the likeliest first.
KNOWN: Mapping[str, Sequence[str]] = FACTS["known"]
NEEDED = ("submitted", "duration", "gpus")
DURATIONS = ("duration", "waiting")
TIMED = ("submitted", "eligible", "started", "ended", "waiting", "duration", "deadline")
DOCUMENTED = {"start": "started", "end": "ended"}  # of the simple format, beside the fields' names
DELIMITERS = ",;\t|"


def parse_map(text: str) -> dict[str, str]:
    """Parse ``--map``: a column for each name; an empty one means no such column."""
    found: dict[str, str] = {}
    for part in csv_cells(text) if text else []:
        name, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or name not in KNOWN:
            expected = f"expected NAME=COLUMN with a name of {', '.join(KNOWN)}"
            raise InstanceError("map", expected, part)
        if name in found:
            raise InstanceError("map", f"expected {name} once", text)
        found[name] = column
    return found


def columns_of(
    header: Sequence[str],
    given: Mapping[str, str],
    file: str,
    preset: Mapping[str, str],
    words: Collection[str] = (),
) -> dict[str, str]:
    """Columns by what is `given`, the `preset` or their names; those of `words` hold no numbers."""
    found = {name: column for name, column in given.items() if column}
    for name in KNOWN:
        column = preset.get(name, "").removesuffix("?")
        if name not in given and column and (column in header or column == preset[name]):
            found[name] = column
        # A known format is not guessed at: a column of a likely name may mean something else there.
        elif not (name in given or preset or (name == "waiting" and "started" in found)):
            free = [column for column in header if column not in found.values()]
            if name in ("gpus", "model") and len(free) > 1:
                free = [column for column in free if (column in words) == (name == "model")]
            if column := guess(header, free, name):
                found[name] = column
    for name, column in found.items():
        if header.count(column) != 1 and not preset:
            often = "twice or more" if column in header else "not"
            shown = f"for {name}: {','.join(header)[:200]}"
            raise InstanceError(f"{COLUMN}{column}", f"is {often} in the header of {file}, {shown}")
    _check_complete(header, found, file)
    return {name: found[name] for name in KNOWN if name in found}


def notes_of_guesses(found: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """A note on columns that were guessed, for readers of the numbers."""
    shown = ", ".join(
        f"{name}={column}"
        for name, column in found.items()
        if name not in (*given, column, DOCUMENTED.get(column), "instances")
    )
    return [f"columns guessed from their names: {shown} (--map names others)"] if shown else []


def units_of(found: Mapping[str, str]) -> dict[str, str]:
    """The units that the names of columns of times and durations end with."""
    timed = [name for name in TIMED if name in found]
    return {name: unit for name in timed if (unit := _base(found[name])[1])}


def _check_complete(header: Sequence[str], found: Mapping[str, str], file: str) -> None:
    has_run = "ended" in found and ("started" in found or "waiting" in found)
    missing = [
        name for name in NEEDED if name not in found and not (name == "duration" and has_run)
    ]
    if not missing:
        return
    many = len(missing) > 1
    also = " for duration" if many else ""
    also = f", or started and ended{also}," if "duration" in missing else ""
    expected = f"expected {'these columns' if many else 'this column'}{also} once in the header of"
    hint = ",".join(f"{name}=COLUMN" for name in missing)
    raise InstanceError(
        f"{COLUMN.strip()}{'s' if many else ''} {', '.join(missing)}",
        f"{expected} {file}: {','.join(header)[:200]}; --map {hint} names "
        f"{'others' if many else 'another'}",
    )


def _base(column: str) -> tuple[str, str]:
    """A name without the unit at its end, and that unit: ``runtime [min]`` -> runtime, min."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower())
    if len(words) > 1 and words[-1] in UNITS:
        unit = UNITS[words.pop()]
        return "".join(words[:-1] if words[1:] and words[-1] == "in" else words), unit
    plain = _plain(column)
    # A name that is a unit alone, as hours; of one letter it is more often something else.
    return plain, UNITS.get(plain, "") if len(plain) > 2 and plain != "min" else ""


def guess(header: Sequence[str], free: Sequence[str], name: str) -> str:
    """The column with the likeliest name, empty if there is none."""
    if name in header and (name in free or name not in ("gpus", "model")):
        return name
    base = {column: _base(column) if name in TIMED else (_plain(column), "") for column in free}
    # Known names outermost: a likelier name wins, wherever its column stands.
    likely = [c for known in KNOWN[name] for c in free if base[c][0] == known]
    if name == "duration":  # a column of hours, or run_hours
        likely += [c for c in free if base[c][1] and base[c][0] in ("run", _plain(c))]
    return likely[0] if likely else ""


def _plain(column: str) -> str:
    """A name without signs between its words: ``Submit time`` and ``submit_time`` are the same."""
    return re.sub(r"[^a-z0-9]", "", column.lower())


def delimiter_of(header: str) -> str:
    """Guess the delimiter of a header: the most frequent candidate, or a comma."""
    return max(DELIMITERS, key=lambda sign: len(csv_cells(header, sign)))
