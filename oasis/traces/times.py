"""Times and durations as traces write them; a column of times has one form (docs/traces)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from math import nan
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from oasis.model.errors import InstanceError
from oasis.model.rounding import FloatArray
from oasis.traces.options import UNIT_SECONDS, UNIT_WORDS, UNITS, TraceOptions
from oasis.traces.table import LARGEST, NUMBER, MalformedError, Objects, numbers, pd

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

ISO = re.compile(  # date, separator, time, zone
    r"(\d{4}-\d\d-\d\d)"
    r"(?:([Tt ])(\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?)\d* ?([Zz]|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
DATES_OF_DIGITS = {8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
NO_TIME = re.compile(r"(?i)unknown|none|n/?a|nan|null|\(null\)")
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


class _Found:
    """What was found in each text of a column: a form with its moments, or some problems."""

    def __init__(self, size: int) -> None:
        self.form, self.problem = np.full(size, "", dtype=object), np.full(size, "", dtype=object)
        self.seconds, self.second = np.full(size, nan), np.full(size, nan)


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
        self._digits = 0  # of dates without signs, if most numbers are such
        self._separator = " "
        self._repeated = 0  # times that the clocks of the zone showed twice
        self._last: tuple[Sequence[str], _Found] = ([], _Found(0))
        self.form = LOCAL if self._is_dated else RELATIVE
        self._wanted = f"expected {'' if self._is_dated else f'{RELATIVE}, '}{WANTED}; {OTHERS}"
        if self._format:
            _check_format(self._format)
            self._wanted = f"expected --time-format {self._format!r}"

    def look_at(self, texts: Iterable[str], unit: str = "") -> None:
        """Find the form of a column, whose name ends with `unit`: that of most of its times."""
        kept = [text for text in texts if text]
        # 20240301 is a number of seconds too. Where at least half of the whole numbers read as
        # dates, none is taken for seconds, and the error says how to read them.
        digits = [text for text in kept if text.isdecimal()]
        dates = [text for text in digits if _is_date_of_digits(text)]
        is_dates = bool(dates) and 2 * len(dates) >= len(digits) and not self._counts
        self._digits = len(dates[0]) if is_dates else 0
        if not self._counts and not self._is_dated and not is_dates:
            values = numbers(kept)
            # A name such as submit_ms is believed, unless the numbers are dates of our time.
            most = np.nanmax(values, initial=0.0)
            named = unit and most < FIRST_SECOND / UNIT_SECONDS[unit]
            self._counts = bool(named or np.any((values > 0) & (values < FIRST_SECOND)))
        found = self._parse(kept, self._format)
        self._last = (kept, found)
        # Of forms that are equally frequent, the one that came first.
        forms = Counter(form for form in found.form.tolist() if form)
        self.form = forms.most_common(1)[0][0] if forms else self.form
        parts = (match[2] for match in map(ISO.fullmatch, kept) if match and match[3])
        self._separator = next(parts, " ")

    def notes(self) -> list[str]:
        """Notes on how the times were read, which affect what the numbers mean."""
        told = "in the hour that clocks repeat in autumn, read as the first of the two"
        many = self._repeated
        return [f"times of {self._zone} {told}: {many}"] if many else []

    def column(self, texts: Sequence[str], name: str, unit: str = "") -> tuple[FloatArray, Objects]:
        """Seconds of the times in a column (NaN: none), and the faults of the others (or None)."""
        last, found = self._last  # a column is mostly read as it was looked at
        self._last = ([], _Found(0))
        if last != texts or not texts:
            found = self._parse(texts, self._format)
        form, problem, seconds = found.form, found.problem, found.seconds
        self._repeated += int(np.sum((found.second != seconds) & (form != "")))
        if self.form == RELATIVE:  # below 0, it often stands for an unknown time
            problem[(form == RELATIVE) & (seconds < 0)] = f"below 0, expected {RELATIVE}"
            seconds = seconds * UNIT_SECONDS[self.unit or unit]
        faults = np.full(len(texts), None, dtype=object)
        known: dict[str, MalformedError] = {}
        for k in np.flatnonzero((form != self.form) | (problem != "")).tolist():
            told = problem[k] or self._problem(texts[k], form[k])
            shown = f"{texts[k]!r:.40}, {self._wanted}" if told == NOT_A_TIME else ""
            faults[k] = known.setdefault(told, MalformedError(f"bad {name}: {told}", shown))
            seconds[k] = nan
        return seconds, faults

    def _problem(self, text: str, form: str) -> str:
        """Why a text is no time of this trace."""
        if form:
            hint = "; --time-zone says which" if {form, self.form} == {LOCAL, ZONED} else ""
            return f"{form}, but most are {self.form}{hint}"
        if not text or NO_TIME.fullmatch(text):
            return f"{'unknown' if text else 'empty'}, {self._wanted}"
        if self._format or not NUMBER.fullmatch(text):
            return NOT_A_TIME
        if np.isinf(float(text)):
            return f"too large a number, {self._wanted}"
        if self._digits and text.isdecimal():
            hint = f"--time-format {DATES_OF_DIGITS[self._digits]} reads it"
            return f"a date of {self._digits} digits, {self._wanted.replace(OTHERS, hint)}"
        digits = f" of {len(text)} digits" if text.isdecimal() else ""
        years = f"which is no epoch time of the years {FIRST_YEAR} to {LAST_YEAR}"
        return f"a number{digits}, {years}, {self._wanted}"

    def second(self, texts: Sequence[str], seconds: FloatArray) -> FloatArray:
        """The second moments that local times name, where clocks go back; else `seconds`."""
        if self._zone is None or self.form in EPOCH or self.form == RELATIVE:
            return seconds
        return self._parse(texts, self._format).second

    def start(self, text: str) -> float | None:
        """Begin of the window of a trace by the option ``start``; None for busiest and first."""
        if text in ("busiest", "first"):
            return None
        allowed = {self.form, ZONED, *EPOCH} if self.form in (ZONED, *EPOCH) else {self.form}
        for pattern in dict.fromkeys(("", self._format)):
            found = self._parse([text], pattern)
            if found.form[0] and (pattern or found.form[0] in allowed):
                return float(found.seconds[0])
        zone = "+00:00" if self.form == ZONED else ""
        example = f"a time such as 2017-10-09{self._separator}07:00:00{zone}"
        shown = self.form if self.form in (RELATIVE, *EPOCH) else example
        raise InstanceError("start", f"expected busiest, first or {shown}", text)

    def show(self, seconds: float) -> str:
        """The inverse of `start`."""
        if self.form in (RELATIVE, SECONDS):
            # 17 digits give back the same float, so that the option `start` finds the same window.
            return f"{seconds:.17g}"
        if self.form in EPOCH:
            return str(round(seconds * EPOCH[self.form]))
        time = datetime.fromtimestamp(seconds, self._zone or UTC)
        time = time.replace(tzinfo=None) if self.form == LOCAL else time
        return time.isoformat(sep=self._separator)

    def _parse(self, texts: Sequence[str], pattern: str) -> _Found:
        """Form, seconds and the second moment of that name of each text."""
        found = _Found(len(texts))
        if pattern:
            zoned = np.full(len(texts), "%z" in pattern)
            self._place(found, np.arange(len(texts)), list(texts), pattern, zoned)
            return found
        self._number(found, texts)
        parts = [(k, match) for k, match in enumerate(map(ISO.fullmatch, texts)) if match]
        places = np.array([k for k, _ in parts], dtype=int)
        found.problem[places] = "a date or a time of day that does not exist"
        zones = [(match[4] or "").upper().replace("UTC", "Z") for _, match in parts]
        moments = [
            f"{match[1]}T{(match[3] or '00:00').replace(',', '.')}{zone}"
            for (_, match), zone in zip(parts, zones, strict=True)
        ]
        self._place(found, places, moments, "ISO8601", np.array(zones, dtype=object) != "")
        return found

    def _place(self, found: _Found, place: Any, texts: list[str], form: str, zoned: Any) -> None:
        """Put dates into `found`; where clocks change, a time of a zone may be none, or two."""
        moments = pd.to_datetime(texts, format=form, errors="coerce", utc=True)
        exists, years = np.asarray(moments.notna()), np.asarray(moments.year)
        first = second = moments.as_unit("us").asi8 / 1e6
        if self._zone is not None and not zoned.all():
            local = moments.tz_localize(None)
            early, late = (
                local.tz_localize(
                    self._zone, ambiguous=np.full(len(texts), is_first), nonexistent="NaT"
                )
                for is_first in (True, False)
            )
            left_out = exists & ~zoned & np.asarray(early.isna())
            told = f"a time of day that the clocks of {self._zone} left out"
            found.problem[place[left_out]] = told
            exists &= ~left_out
            first, second = (
                np.where(zoned, first, each.as_unit("us").asi8 / 1e6) for each in (early, late)
            )
        if not self._any_year:
            outside = f"a time outside the years {FIRST_YEAR} to {LAST_YEAR}; --any-year takes it"
            far = exists & ((years < FIRST_YEAR) | (years > LAST_YEAR))
            found.problem[place[far]] = outside
            exists &= ~far
        good = place[exists]
        found.problem[good] = ""
        found.form[good] = np.where(zoned | (self._zone is not None), ZONED, LOCAL)[exists]
        found.seconds[good], found.second[good] = first[exists], second[exists]

    def _number(self, found: _Found, texts: Sequence[str]) -> None:
        """Put the times that are numbers into `found`."""
        values, form = numbers(texts), found.form
        finite = np.isfinite(values)
        for name, ticks in EPOCH.items():
            form[(values / ticks >= FIRST_SECOND) & (values / ticks < LAST_SECOND)] = name
        small = (np.abs(values) < FIRST_SECOND) & (not self._is_dated)
        form[finite & (self._counts | small)] = RELATIVE
        if self._any_year:
            form[finite & (form == "")] = SECONDS if self._is_dated else RELATIVE
        if self._digits:  # a mistyped one is no number of seconds
            form[[text.isdecimal() for text in texts]] = ""
        found.seconds[:] = values / [EPOCH.get(name, 1) for name in form.tolist()]
        # Nanoseconds have 19 digits, a float has 16: they are divided before they are rounded.
        for k in np.flatnonzero(finite & (values > LARGEST) & (form != "")).tolist():
            if texts[k].isdecimal():
                found.seconds[k] = int(texts[k]) / EPOCH.get(form[k], 1)
        found.second[:] = found.seconds


def _is_date_of_digits(text: str) -> bool:
    pattern = DATES_OF_DIGITS.get(len(text))
    if pattern is None or not FIRST_YEAR <= int(text[:4]) <= LAST_YEAR:
        return False
    return bool(pd.notna(pd.to_datetime(text, format=pattern, errors="coerce")))


def _zone(name: str) -> tzinfo | None:
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        expected = "expected a time zone such as Europe/Berlin or UTC"
        raise InstanceError("time_zone", expected, name) from None


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

    def column(self, texts: Sequence[str], name: str) -> tuple[FloatArray, Objects]:
        """Seconds of the durations in a column (NaN: none), and the faults of the others."""
        values = numbers(texts)
        values[~np.isfinite(values) | (values < 0)] = nan
        told = values[values > 0]  # a job that never ran says nothing about the unit
        if told.size:
            self._numbers.append(told)
            self._column = name
        seconds = values * UNIT_SECONDS[self.unit]
        faults = np.full(len(texts), None, dtype=object)
        words = UNIT_WORDS.get(self.unit, "")
        unsure = MalformedError(f"bad {name}: mm:ss or hh:mm in {words}", expected="hh:mm:ss")
        for k in np.flatnonzero(np.isnan(values)).tolist():
            if self.unit in ("h", "d") and MINUTES.fullmatch(texts[k]):
                faults[k] = unsure
            else:
                seconds[k] = elapsed_seconds(texts[k])
        bad = np.isnan(seconds) & np.equal(faults, None)
        faults[bad] = MalformedError(f"bad {name}", expected=DURATION)
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


def elapsed_seconds(text: str) -> float:
    """Seconds of an elapsed time such as 02:30:00, 1-00:00:00, 05:00, PT1H30M or 1h30m; or NaN."""
    named = NAMED.fullmatch(text)
    if named and any(named.groups()):
        parts = zip(named.groups(), LONGEST_FIRST, strict=True)
        return sum(float(amount) * UNIT_SECONDS[unit] for amount, unit in parts if amount)
    found = ELAPSED.fullmatch(text)
    if found is None:
        return nan
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    seconds = float(found[4])
    # Only the first of the parts may be large: 90:00 is ninety minutes, 1:90:00 is a mistake.
    if seconds >= 60 or (found[2] and minutes >= 60) or (found[1] and hours >= 24):
        return nan
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds
