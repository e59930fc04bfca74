"""Times and durations as traces write them; a column of times has one form (docs/traces)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isinf, nan
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.rounding import FloatArray
from oasis.traces.plain_job import FACTS
from oasis.traces.table import LARGEST, MISSING, NUMBER, MalformedError, numbers

UNIT_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86400.0}
UNIT_WORDS = {"s": "seconds", "ms": "milliseconds", "min": "minutes", "h": "hours", "d": "days"}
# Words, also at the end of a column's name -> the unit of its numbers.
UNITS: Mapping[str, str] = {word: unit for unit in FACTS["units"] for word in FACTS["units"][unit]}

LOCAL, ZONED = "a time without a zone", "a time with a zone"
RELATIVE, SECONDS = "seconds since the trace began", "epoch seconds"
# Form -> ticks in a second.
EPOCH = {f"epoch {part}seconds": 1000**k for k, part in enumerate(("", "milli", "micro", "nano"))}
# Within these years no number can be both epoch seconds and milliseconds.
FIRST_YEAR, LAST_YEAR = 1990, 2100
FIRST_SECOND = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()
BEGIN = datetime(1970, 1, 1)
LAST_SECOND = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()
WANTED = "ISO 8601 such as 2017-10-09 07:00:00, or epoch seconds or milliseconds"
OTHERS = "--time-format reads others"

ISO = re.compile(  # date, separator, time, zone
    r"(\d{4}-\d\d-\d\d)"
    r"(?:([Tt ])((?!24)\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?)\d* ?([Zz]|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
DIGITS = re.compile(  # a date without signs between its parts
    r"(?:199\d|20\d\d|2100)(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"(?:(?:[01]\d|2[0-3])(?:[0-5]\d){0,2})?"
)
DATE_OF_DIGITS = "%Y%m%d%H%M%S"
NOT_A_TIME = "not a time"

ELAPSED = re.compile(r"(?:(?:(\d+)(?:-| days?,? ))?(\d+):)?(\d+):(\d\d(?:\.\d+)?)")
LONGEST_FIRST = ("d", "h", "min", "s", "ms")  # units, each at most once: 30m1h is a mistake
NAMED = re.compile(  # 1h30m, 2 days 4 hours, PT1H30M
    "(?i)P?T?"
    + "".join(
        rf"(?:(\d+(?:\.\d+)?)\s*(?:{'|'.join(w for w in UNITS if UNITS[w] == unit)})[\s,T]*)?"
        for unit in LONGEST_FIRST
    )
)
MINUTES = re.compile(r"\d+:\d\d")  # mm:ss; in a column of hours, as likely hours and minutes
DURATION = "a number >= 0, or days, hours, minutes and seconds as d-hh:mm:ss"
# Medians outside of this are those of hours as small numbers, or of milliseconds.
SHORTEST_MEDIAN = 1.0
LONGEST_MEDIAN = 30 * 86400.0

# A form (empty: none), seconds, and what is wrong.
Moment = tuple[str, float, str]


class TraceTimes:
    """Parses the times of one trace, all of which must have the form that most of them have."""

    def __init__(self, options: Any, *, is_dated: bool) -> None:
        self._format, self._any_year = options.time_format, options.any_year
        try:
            self.zone = ZoneInfo(options.time_zone) if options.time_zone else None
        except (ZoneInfoNotFoundError, ValueError, OSError):
            expected = "expected a time zone such as Europe/Berlin or UTC"
            raise InstanceError("time_zone", expected, options.time_zone) from None
        # Of numbers; empty: seconds, or what they look like. The first is that of the option.
        self._chosen_unit = self.unit = options.time_unit
        self._is_dated = is_dated and not self.unit
        self._counts = bool(self.unit)  # whether every number is a time since some moment
        self._digits = 0  # of dates without signs, if most numbers are such
        self._known: dict[str, Moment] = {}  # of a column that was looked at
        self.second: dict[str, float] = {}  # of times that the clocks of the zone showed twice
        self.repeated = 0  # how many cells have such times
        self.form = LOCAL if self._is_dated else RELATIVE
        self._expected = f"expected {'' if self._is_dated else f'{RELATIVE}, '}{WANTED}; {OTHERS}"
        if self._format:
            self._expected = f"expected --time-format {self._format!r}"
            if "%Z" in self._format.replace("%%", ""):  # strptime reads the name, and forgets it
                expected = "expected %z, an offset such as +02:00, or --time-zone for a zone's name"
                raise InstanceError("time_format", f"{expected}, got %Z")
            try:
                # what strftime has written, strptime reads, unless it does not know the format
                written = datetime(2000, 1, 1, tzinfo=UTC).strftime(self._format)
                datetime.strptime(written, self._format)
            except (ValueError, re.error) as error:
                expected = "expected a format of Python's strptime such as %d/%m/%Y %H:%M"
                raise InstanceError("time_format", f"{expected}: {error}") from None

    def look_at(self, texts: Sequence[str], unit: str = "") -> None:
        """Set the expected form to the most frequent in `texts`; `unit` is in the column's name."""
        # 20240301 is a number of seconds too. Where at least half of the whole numbers read as
        # dates, none is taken for seconds, and the error says how to read them.
        digits = [text for text in texts if text.isdecimal()]
        dates = [text for text in digits if DIGITS.fullmatch(text)]
        is_dates = bool(dates) and 2 * len(dates) >= len(digits) and not self._counts
        self._digits = len(dates[0]) if is_dates else 0
        if not self._counts and not self._is_dated and not is_dates:
            values = numbers(texts)
            # A name such as submit_ms is believed, unless the numbers are dates of our time.
            most = np.nanmax(values, initial=0.0)
            named = unit and most < FIRST_SECOND / UNIT_SECONDS[unit]
            # One number that is too small for a date of 1990 says so of all of them.
            self._counts = bool(named or np.any((values > 0) & (values < FIRST_SECOND)))
        self.unit = self.unit or unit
        # Of forms that are equally frequent, the one that came first.
        self._known = {text: self._parse(text, self._format) for text in dict.fromkeys(texts)}
        forms = Counter(filter(None, (self._known[text][0] for text in texts)))
        self.form = forms.most_common(1)[0][0] if forms else self.form

    def seconds(self, text: str, name: str, unit: str = "") -> float:
        """Convert a time to seconds; `name` is its column, `unit` the unit in that name."""
        known = self._known.pop(text, None)
        form, seconds, fault = known or self._parse(text, self._format)
        if form and form != self.form:
            hint = "; --time-zone says which" if {form, self.form} == {LOCAL, ZONED} else ""
            fault = f"{form}, but most are {self.form}{hint}"
        elif form == RELATIVE:
            seconds *= UNIT_SECONDS[self._chosen_unit or unit]
            if not 0 <= seconds <= LARGEST:  # below 0, it often stands for an unknown time
                fault = f"{'below 0' if seconds < 0 else 'above 2^53'}, expected {RELATIVE}"
        if fault:
            shown = f"{text!r:.40}, {self._expected}" if fault == NOT_A_TIME else ""
            raise MalformedError(f"bad {name}: {fault}", shown)
        return seconds

    def start(self, text: str) -> float | None:
        """Parse the option ``start``: seconds, or None for ``busiest`` and ``first``."""
        if text in ("busiest", "first"):
            return None
        allowed = {self.form, ZONED, *EPOCH} if self.form in (ZONED, *EPOCH) else {self.form}
        for pattern in dict.fromkeys(("", self._format)):
            form, seconds, _ = self._parse(text, pattern)
            if form and (pattern or form in allowed):
                return seconds * (UNIT_SECONDS[self.unit] if form == RELATIVE else 1)
        example = f"a time such as 2017-10-09 07:00:00{'+00:00' if self.form == ZONED else ''}"
        relative = RELATIVE.replace("seconds", UNIT_WORDS[self.unit or "s"])
        shown = {RELATIVE: relative, **dict.fromkeys(EPOCH, self.form)}.get(self.form, example)
        raise InstanceError("start", f"expected busiest, first or {shown}", text)

    def show(self, seconds: float) -> str:
        """Format `seconds` as the trace writes times, so that `start` returns the same number."""
        if self.form in (RELATIVE, SECONDS):
            # 17 digits give back the same float, so that the option `start` finds the same window;
            # a quotient is off in the last two.
            unit = UNIT_SECONDS[self.unit] if self.form == RELATIVE else 1
            return f"{seconds / unit:.{17 if unit == 1 else 15}g}"
        if self.form in EPOCH:
            return str(round(seconds * EPOCH[self.form]))
        time = datetime.fromtimestamp(seconds, self.zone or UTC)
        time = time.replace(tzinfo=None) if self.form == LOCAL else time
        return time.isoformat(sep=" ")

    def _parse(self, text: str, pattern: str) -> Moment:
        """Parse a time by `pattern`; an empty pattern reads ISO dates and numbers."""
        match = None if pattern else ISO.fullmatch(text)
        if not match and not pattern and NUMBER.fullmatch(text):
            return self._number(text)
        try:
            if match:
                if zone := match[4]:
                    text = f"{match[1]}T{match[3]}{zone.upper().replace('UTC', 'Z')}"
                return self._date(datetime.fromisoformat(text), match[0])
            if pattern:
                return self._date(datetime.strptime(text, pattern), text)
        except (ValueError, OverflowError):
            if match:
                return "", nan, "a date or a time of day that does not exist"
        if MISSING.fullmatch(text):
            return "", nan, f"{'unknown' if text else 'empty'}, {self._expected}"
        return "", nan, NOT_A_TIME

    def _date(self, moment: datetime, text: str) -> Moment:
        """Convert a date to a `Moment`; note local times that occur twice, refuse skipped ones."""
        zone = moment.tzinfo or self.zone
        if zone is None:
            seconds = (moment - BEGIN).total_seconds()
        elif moment.tzinfo is not None:
            seconds = moment.timestamp()
        else:
            seconds = moment.replace(tzinfo=zone).timestamp()
            if datetime.fromtimestamp(seconds, zone).replace(tzinfo=None) != moment:
                return "", nan, f"a time of day that the clocks of {zone} left out"
            if (second := moment.replace(tzinfo=zone, fold=1).timestamp()) != seconds:
                self.second[text] = second
        if not (self._any_year or FIRST_SECOND <= seconds < LAST_SECOND):
            outside = f"a time outside the years {FIRST_YEAR} to {LAST_YEAR}; --any-year takes it"
            return "", nan, outside
        return ZONED if zone else LOCAL, seconds, ""

    def _number(self, text: str) -> Moment:
        """Interpret a number as relative seconds or as an epoch time; an odd one has a fault."""
        value = float(text)
        if isinf(value):
            return "", nan, f"too large a number, {self._expected}"
        if self._counts:
            return RELATIVE, value, ""
        if self._digits and text.isdecimal():  # a mistyped one is no number of seconds
            hint = f"--time-format {DATE_OF_DIGITS[: self._digits - 2]} reads it"
            fault = f"a date of {self._digits} digits, {self._expected.replace(OTHERS, hint)}"
            return "", nan, fault
        ticks = (form for form in EPOCH if FIRST_SECOND <= value / EPOCH[form] < LAST_SECOND)
        form = next(ticks, "")
        if abs(value) < FIRST_SECOND and not self._is_dated:
            form = RELATIVE
        elif self._any_year:
            form = form or (SECONDS if self._is_dated else RELATIVE)
        if not form:
            digits = f" of {len(text)} digits" if text.isdecimal() else ""
            years = f"which is no epoch time of the years {FIRST_YEAR} to {LAST_YEAR}"
            return "", nan, f"a number{digits}, {years}, {self._expected}"
        # Nanoseconds have 19 digits, a float has 16: they are divided before they are rounded.
        seconds = (int(text) if text.isdecimal() else value) / EPOCH.get(form, 1)
        return form, seconds, ""


def duration_seconds(text: str, name: str, unit: str) -> float:
    """Convert a duration of column `name` to seconds: a number of `unit`s, or a text with units."""
    value = float(text) * UNIT_SECONDS[unit] if NUMBER.fullmatch(text) else -1.0
    if 0 <= value <= LARGEST:
        return value
    if unit in ("h", "d") and MINUTES.fullmatch(text):
        kind = f"bad {name}: mm:ss or hh:mm in {UNIT_WORDS[unit]}"
        raise MalformedError(kind, expected="hh:mm:ss")
    seconds = elapsed_seconds(text)
    if not seconds <= LARGEST:
        excess = ": above 2^53 seconds" if max(value, seconds) > LARGEST else ""
        raise MalformedError(f"bad {name}{excess}", expected=DURATION)
    return seconds


def notes_of_durations(durations: FloatArray, name: str, unit: str, option: str) -> list[str]:
    """Return a note on the unit durations were read in; refuse odd medians without a unit."""
    durations = durations[durations > 0]  # a job that never ran says nothing about the unit
    if not len(durations):
        return []
    middle = float(np.median(durations))
    if not unit and not SHORTEST_MEDIAN <= middle <= LONGEST_MEDIAN:
        odd = "below one second" if middle < SHORTEST_MEDIAN else "above thirty days"
        expected = "expected s, ms, min, h or d, the unit of the durations"
        median = f"the median of {f'the column {name}' if name else 'them'} is {middle:.6g}"
        raise InstanceError(option, f"{expected}: {median}, which in seconds is {odd}")
    shown = f"{UNIT_WORDS[unit or 's']}; median {middle:.6g} {unit or 's'}"
    return [f"durations read as {shown} (--{option.replace('_', '-')})"]


def elapsed_seconds(text: str) -> float:
    """Parse an elapsed time such as 02:30:00, 1-00:00:00, 05:00, PT1H30M or 1h30m; NaN if none."""
    named = NAMED.fullmatch(text)
    if named and any(named.groups()):
        parts = zip(named.groups(), LONGEST_FIRST, strict=True)
        return sum(float(amount) * UNIT_SECONDS[unit] for amount, unit in parts if amount)
    match = ELAPSED.fullmatch(text)
    if match is None:
        return nan
    days, hours, minutes = (int(part or 0) for part in match.groups()[:3])
    seconds = float(match[4])
    # Only the first of the parts may be large: 90:00 is ninety minutes, 1:90:00 is a mistake.
    if seconds >= 60 or (match[2] and minutes >= 60) or (match[1] and hours >= 24):
        return nan
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds
