"""Times and durations as traces write them; a column of times has one form (docs/traces)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from math import isfinite, nan
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.rounding import FloatArray
from oasis.traces.options import UNIT_SECONDS, UNIT_WORDS, UNITS, TraceOptions
from oasis.traces.table import NUMBER, MalformedError, numbers

LOCAL, ZONED = "a time without a zone", "a time with a zone"
RELATIVE, SECONDS = "seconds since the trace began", "epoch seconds"
EPOCH = {  # form -> ticks in a second
    SECONDS: 1,
    "epoch milliseconds": 10**3,
    "epoch microseconds": 10**6,
    "epoch nanoseconds": 10**9,
}
# Within these years no number can be both epoch seconds and milliseconds.
FIRST_YEAR, LAST_YEAR = 1990, 2100
FIRST_SECOND = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()
LAST_SECOND = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()
WANTED = "ISO 8601 such as 2017-10-09 07:00:00, or epoch seconds or milliseconds"
OTHERS = "--time-format reads others"

ISO = re.compile(
    r"(?P<date>(?P<year>\d{4})-\d\d-\d\d)"
    r"(?:(?P<separator>[Tt ])(?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)"
    r" ?(?P<zone>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
QUICK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}")  # numpy reads it
DATES_OF_DIGITS = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
OTHER_FORMS = (  # what is recognised, and refused by its name
    (r"", "empty"),
    (r"(?i)unknown|none|n/?a|nan|null|\(null\)", "unknown"),
    (r"\d{4}-?W\d\d(-?\d)?([T ].*)?", "a week date"),
    (r"\d{4}-\d{3}([T ].*)?", "an ordinal date"),
    (r"\d{8}[Tt ].*", "a date without separators"),
    (r"\d{4}[^\d-]\d\d[^\d-]\d\d(\D.*)?", "a date with other separators than -"),
    (r"\d{4}-\d\d-\d\d[^\dTt ].*", "another separator than T or a space before the time of day"),
    (r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}(\D.*)?", "a date that does not begin with the year"),
)

ELAPSED = re.compile(r"(?:(?:(\d+)(?:-| days?,? ))?(\d+):)?(\d+):(\d\d(?:\.\d+)?)")
ISO_DURATION = re.compile(
    r"(?i)P(?:(\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
NAMED = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)[\s,]*")  # 1h30m, 2 days 4 hours
DURATION = "a number >= 0, or days, hours, minutes and seconds as d-hh:mm:ss"
# Medians outside of this are those of hours as small numbers, or of milliseconds.
SHORTEST_MEDIAN = 1.0
LONGEST_MEDIAN = 30 * 86400.0


class TraceTimes:
    """Reads the times of one trace, which all have one form: that of most of them.

    Where `is_dated` is false, numbers too small for a date of 1990 are seconds since some moment,
    such as the beginning of the trace; one such number says so of all numbers of the trace.
    """

    def __init__(self, options: TraceOptions, *, is_dated: bool) -> None:
        self._format, self._any_year = options.time_format, options.any_year
        self._zone = _zone(options.time_zone)
        self.unit = options.time_unit  # of numbers; empty: seconds, or what they look like
        self._is_dated = is_dated and not self.unit
        self._counts = bool(self.unit)  # whether every number is a time since some moment
        self._date_of_digits = ""  # the first, if most numbers are such
        self._separator = " "
        self._repeated = 0  # times that the clocks of the zone showed twice
        self.form = LOCAL if self._is_dated else RELATIVE
        if self._format:
            _check_format(self._format)

    def look_at(self, texts: Iterable[str], unit: str = "") -> None:
        """Find the form of a column, whose name ends with `unit`: that of most of its times."""
        kept = [text for text in texts if text]
        # 20240301 is a number of seconds too. Where at least half of the whole numbers read as
        # dates, none is taken for seconds, and the error says how to read them.
        digits = [text for text in kept if text.isdecimal()]
        dates = [text for text in digits if _is_date_of_digits(text)]
        is_dates = bool(dates) and 2 * len(dates) >= len(digits)
        self._date_of_digits = dates[0] if is_dates and not self._counts else ""
        if not self._counts and not self._is_dated and not is_dates:
            values = numbers(kept)
            # A name such as submit_ms is believed, unless the numbers are dates of our time.
            most = np.nanmax(values, initial=0.0)
            named = unit and most < FIRST_SECOND / UNIT_SECONDS[unit]
            self._counts = bool(named or np.any((values > 0) & (values < FIRST_SECOND)))
        forms, _ = self._quick(kept)
        counted = Counter(form for form in forms if form)
        for k in np.flatnonzero(forms == "").tolist():
            with suppress(_OtherFormError):
                counted[self._parse(kept[k])[0]] += 1
        self._repeated = 0  # these are read again
        if counted:
            # Of forms that are equally frequent, `max` takes the first that came.
            self.form = max(counted, key=lambda form: counted[form])
        self._separator = next(
            (found["separator"] for found in map(ISO.fullmatch, kept) if found and found["time"]),
            " ",
        )

    def notes(self) -> list[str]:
        """Notes on how the times were read, which affect what the numbers mean."""
        if not self._repeated:
            return []
        told = "in the hour that clocks repeat in autumn, read as the first of the two"
        return [f"times of {self._zone} {told}: {self._repeated}"]

    def column(
        self, texts: Sequence[str], name: str, unit: str = ""
    ) -> tuple[FloatArray, np.ndarray[Any, Any]]:
        """Seconds of the times in a column (NaN: none), and the faults of the others (or None)."""
        forms, seconds = self._quick(texts)
        seconds[(forms != self.form) | ((forms == RELATIVE) & (seconds < 0))] = nan
        faults = np.full(len(texts), None, dtype=object)
        for k in np.flatnonzero(np.isnan(seconds)).tolist():
            try:
                seconds[k] = self.read(texts[k], name)
            except MalformedError as fault:
                faults[k] = fault
        if self.form == RELATIVE:
            seconds *= UNIT_SECONDS[unit or self.unit]
        return seconds, faults

    def _quick(self, texts: Sequence[str]) -> tuple[np.ndarray[Any, Any], FloatArray]:
        """Forms and seconds of the commonest texts, all at once; of the others "" and NaN."""
        forms, seconds = np.full(len(texts), "", dtype=object), np.full(len(texts), nan)
        if self._format:
            return forms, seconds
        dated = np.array([QUICK.fullmatch(text) is not None for text in texts], dtype=bool)
        if self._zone is None and dated.any():
            with suppress(ValueError):  # one does not exist: each is read by itself
                moments = np.array(texts)[dated].astype("datetime64[s]").astype(float)
                is_near = (moments >= FIRST_SECOND) & (moments < LAST_SECOND)
                place = np.flatnonzero(dated)[is_near]
                forms[place], seconds[place] = LOCAL, moments[is_near]
        if not self._date_of_digits and not dated.all():
            values = numbers(texts)
            small = (np.abs(values) < FIRST_SECOND) & (not self._is_dated)
            small |= np.isfinite(values) & self._counts
            epoch = (values >= FIRST_SECOND) & (values < LAST_SECOND) & ~small
            forms[small], forms[epoch] = RELATIVE, SECONDS
            seconds[small | epoch] = values[small | epoch]
        return forms, seconds

    def read(self, text: str, column: str) -> float:
        """Seconds of a time in a cell of `column`, since 1970 or since the trace began."""
        try:
            form, seconds = self._parse(text)
        except _OtherFormError as found:
            raise MalformedError(f"bad {column}: {found}") from None
        if form != self.form:
            hint = "; --time-zone says which" if {form, self.form} == {LOCAL, ZONED} else ""
            raise MalformedError(f"bad {column}: {form}, but most are {self.form}{hint}")
        if form == RELATIVE and seconds < 0:  # often stands for a time that is not known
            raise MalformedError(f"bad {column}: below 0, expected {RELATIVE}")
        return seconds

    def second(self, text: str, seconds: float) -> float:
        """The second moment that a local time names, where clocks go back; else `seconds`."""
        if self._zone is None or self.form in EPOCH or self.form == RELATIVE:
            return seconds
        local = datetime.fromtimestamp(seconds, self._zone)
        has_zone = ISO.fullmatch(text) and ISO.fullmatch(text)["zone"]  # type: ignore[index]
        return seconds if has_zone else local.replace(fold=1).timestamp()

    def start(self, text: str) -> float | None:
        """Begin of the window of a trace by the option ``start``; None for busiest and first."""
        if text in ("busiest", "first"):
            return None
        allowed = {self.form, ZONED, *EPOCH} if self.form in (ZONED, *EPOCH) else {self.form}
        with suppress(_OtherFormError):
            form, seconds = self._iso_or_number(text)
            if form in allowed:
                return seconds
        if self._format:
            with suppress(_OtherFormError):
                return self._parse(text)[1]
        expected = f"expected busiest, first or {self._example()}"
        raise InstanceError("start", expected, text)

    def show(self, seconds: float) -> str:
        """The inverse of `start`."""
        if self.form in (RELATIVE, SECONDS):
            # 17 digits give back the same float, so that the option `start` finds the same window.
            return f"{seconds:.17g}"
        if self.form in EPOCH:
            return str(round(seconds * EPOCH[self.form]))
        zone = self._zone or UTC
        time = datetime.fromtimestamp(seconds, zone)
        if self.form == LOCAL:
            time = time.replace(tzinfo=None)
        return time.isoformat(sep=self._separator)

    def _example(self) -> str:
        if self.form in EPOCH or self.form == RELATIVE:
            return self.form
        zone = "+00:00" if self.form == ZONED else ""
        return f"a time such as 2017-10-09{self._separator}07:00:00{zone}"

    def _parse(self, text: str) -> tuple[str, float]:
        """Form and seconds of a time of the file."""
        if not self._format:
            return self._iso_or_number(text)
        try:
            time = datetime.strptime(text, self._format)
        except ValueError:
            found = f"{_form_of(text)}, expected --time-format {self._format!r}"
            raise _OtherFormError(found) from None
        return self._absolute(time)

    def _iso_or_number(self, text: str) -> tuple[str, float]:
        found = ISO.fullmatch(text)
        if found:
            return self._absolute(_iso_time(text, found))
        if NUMBER.fullmatch(text):
            return self._number(text)
        raise _OtherFormError(f"{_form_of(text)}, expected {self._wanted()}; {OTHERS}")

    def _absolute(self, time: datetime) -> tuple[str, float]:
        if not self._any_year and not FIRST_YEAR <= time.year <= LAST_YEAR:
            found = f"a time outside the years {FIRST_YEAR} to {LAST_YEAR}"
            raise _OtherFormError(f"{found}; --any-year takes it")
        if time.tzinfo is None:
            form = LOCAL if self._zone is None else ZONED
            time = self._in_zone(time)
        else:
            form = ZONED
        return form, time.timestamp()

    def _in_zone(self, time: datetime) -> datetime:
        """A time that names no zone in that of the options; where clocks change, it may be none."""
        # Where clocks change, the two readings of a time differ. A time that does not come back
        # from UTC was left out in spring; the others came twice in autumn.
        placed = time.replace(tzinfo=self._zone or UTC)
        if self._zone is None or placed.utcoffset() == placed.replace(fold=1).utcoffset():
            return placed
        if placed.astimezone(UTC).astimezone(self._zone).replace(tzinfo=None) != time:
            raise _OtherFormError(f"a time of day that the clocks of {self._zone} left out")
        self._repeated += 1
        return placed

    def _number(self, text: str) -> tuple[str, float]:
        if self._date_of_digits and text.isdecimal():  # a mistyped one is no number of seconds
            length = len(self._date_of_digits)
            found = f"a date of {length} digits, expected {self._wanted()}"
            raise _OtherFormError(f"{found}; --time-format {DATES_OF_DIGITS[length]} reads it")
        value = float(text)
        if not isfinite(value):
            raise _OtherFormError(f"too large a number, expected {self._wanted()}")
        if self._counts or (not self._is_dated and abs(value) < FIRST_SECOND):
            return RELATIVE, value
        for form, ticks in EPOCH.items():
            if FIRST_SECOND <= value / ticks < LAST_SECOND:
                # Nanoseconds have 19 digits, a float has 16: whole
                # numbers are divided before they are rounded.
                return form, int(text) / ticks if text.isdecimal() else value / ticks
        if self._any_year:
            return SECONDS if self._is_dated else RELATIVE, value
        digits = f"a number of {len(text)} digits" if text.isdecimal() else "a number"
        years = f"which is no epoch time of the years {FIRST_YEAR} to {LAST_YEAR}"
        raise _OtherFormError(f"{digits}, {years}, expected {self._wanted()}; {OTHERS}")

    def _wanted(self) -> str:
        return WANTED if self._is_dated else f"{RELATIVE}, {WANTED}"


class _OtherFormError(Exception):
    """Raised for a text that is no readable time; says its form, and the expected one."""


def _form_of(text: str) -> str:
    for pattern, name in OTHER_FORMS:
        if re.fullmatch(pattern, text):
            return name
    return "not a time"


def _iso_time(text: str, found: re.Match[str]) -> datetime:
    zone = {"Z": "+00:00", "UTC": "+00:00"}.get((found["zone"] or "").upper(), found["zone"] or "")
    time = f"T{found['time']}" if found["time"] else ""
    try:
        return datetime.fromisoformat(f"{found['date']}{time}{zone}")
    except ValueError:
        raise _OtherFormError("a date or a time of day that does not exist") from None


def _is_date_of_digits(text: str) -> bool:
    pattern = DATES_OF_DIGITS.get(len(text))
    if pattern is None or not FIRST_YEAR <= int(text[:4]) <= LAST_YEAR:
        return False
    try:
        datetime.strptime(text, pattern)
    except ValueError:
        return False
    return True


def _zone(name: str) -> tzinfo | None:
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        expected = "expected a time zone such as Europe/Berlin or UTC"
        raise InstanceError("time_zone", expected, name) from None


@lru_cache(maxsize=8)
def _check_format(pattern: str) -> None:
    if "%Z" in pattern.replace("%%", ""):  # strptime reads the name, and forgets it
        expected = "expected %z, an offset such as +02:00, or --time-zone for the name of a zone"
        raise InstanceError("time_format", f"{expected}, got %Z")
    try:
        # what strftime has written, strptime reads, unless it does not know the format
        datetime.strptime(datetime(2000, 1, 1, tzinfo=UTC).strftime(pattern), pattern)
    except (ValueError, re.error) as error:
        expected = "expected a format of Python's strptime such as %d/%m/%Y %H:%M"
        raise InstanceError("time_format", f"{expected}: {error}") from None


class Durations:
    """Reads durations: numbers of one unit, or days, hours, minutes and seconds."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self._numbers: list[FloatArray] = []
        self._column = "duration"

    def column(self, texts: Sequence[str], name: str) -> tuple[FloatArray, np.ndarray[Any, Any]]:
        """Seconds of the durations in a column (NaN: none), and the faults of the others."""
        values = numbers(texts)
        values[~np.isfinite(values) | (values < 0)] = nan
        told = values[values > 0]  # a job that never ran says nothing about the unit
        if told.size:
            self._numbers.append(told)
            self._column = name
        seconds = values * UNIT_SECONDS[self.unit]
        faults = np.full(len(texts), None, dtype=object)
        for k in np.flatnonzero(np.isnan(values)).tolist():
            try:
                seconds[k] = elapsed_seconds(texts[k], name)
            except MalformedError as fault:
                faults[k] = fault
        return seconds, faults

    def notes(self) -> list[str]:
        """How the numbers were read; refuse those that would be odd as seconds."""
        if not self._numbers:
            return []
        middle = float(np.median(np.concatenate(self._numbers)))
        if not self.unit and not SHORTEST_MEDIAN <= middle <= LONGEST_MEDIAN:
            odd = "below one second" if middle < SHORTEST_MEDIAN else "above thirty days"
            expected = "expected s, ms, min, h or d, the unit of the durations"
            found = f"the median of the column {self._column} is {middle:.6g}"
            raise InstanceError("duration_unit", f"{expected}: {found}, which in seconds is {odd}")
        words = UNIT_WORDS[self.unit or "s"]
        shown = f"{middle:.6g} {self.unit or 's'}"
        return [f"durations read as {words}; median {shown} (--duration-unit)"]


def elapsed_seconds(text: str, column: str = "Elapsed") -> float:
    """Seconds of an elapsed time such as 02:30:00, 1-00:00:00, 05:00, PT1H30M or 1h30m."""
    found = ELAPSED.fullmatch(text)
    if found is None:
        return _named_seconds(text, column)
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    seconds = float(found[4])
    # Only the first of the parts may be large: 90:00 is ninety minutes, 1:90:00 is a mistake.
    if seconds >= 60 or (found[2] and minutes >= 60) or (found[1] and hours >= 24):
        raise MalformedError(f"bad {column}", expected=DURATION)
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds


def _named_seconds(text: str, column: str) -> float:
    """Seconds of a duration whose parts name their units."""
    iso = ISO_DURATION.fullmatch(text)
    if iso and any(iso.groups()):
        parts = zip(iso.groups(), ("d", "h", "min", "s"), strict=True)
        return sum(float(amount) * UNIT_SECONDS[unit] for amount, unit in parts if amount)
    named = NAMED.findall(text)
    units = [UNITS.get(word.lower(), "") for _, word in named]
    sizes = [UNIT_SECONDS[unit] for unit in units]
    # Each unit once, the largest first: 30m1h or 5m5m are mistakes.
    is_ordered = all(units) and sizes == sorted(set(sizes), reverse=True)
    if not named or NAMED.sub("", text).strip() or not is_ordered:
        raise MalformedError(f"bad {column}", expected=DURATION)
    return sum(float(amount) * size for (amount, _), size in zip(named, sizes, strict=True))
