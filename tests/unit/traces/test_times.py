"""Times and durations of traces: their forms, units and zones, and what is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from oasis import InstanceError
from oasis.traces import PlainOptions
from oasis.traces.job_table import MachineOptions
from oasis.traces.plain_instance import PLAIN
from oasis.traces.table import MalformedError, TraceSource, numbers
from oasis.traces.times import (
    EPOCH,
    RELATIVE,
    TraceTimes,
    duration_seconds,
    notes_of_durations,
)
from tests.builders import rows

NOON = 1507532400.0  # 2017-10-09 07:00:00 UTC
ROWS = rows(__file__, "times.toml")


def clock(*texts: str, is_dated: bool = True, **options: Any) -> TraceTimes:
    made = TraceTimes(MachineOptions(**options), is_dated=is_dated)
    made.look_at(texts)
    return made


def at(made: TraceTimes, text: str, name: str = "Submit") -> float:
    return made.seconds(text, name)


def read(text: str, **options: Any) -> float:
    return at(clock(text, **options), text)


@pytest.mark.parametrize(("text", "form"), ROWS["moment"])
@pytest.mark.parametrize("is_dated", [True, False])
def test_one_moment_in_every_form(text, form, is_dated):
    made = clock(text, is_dated=is_dated)
    assert (made.form, at(made, text)) == (form, NOON)
    assert made.start(made.show(NOON)) == NOON
    assert read("2017-10-09") == NOON - 7 * 3600  # a date alone is its midnight


@pytest.mark.parametrize(("text", "pattern"), ROWS["own"])
def test_a_format_of_ones_own(text, pattern):
    made = clock(text, time_format=pattern)
    assert at(made, text) == made.start(made.show(NOON)) == made.start(text) == NOON
    expected = "bad Submit: not a time: '2017-W41-1', expected --time-format '%"
    with pytest.raises(MalformedError, match=expected):
        at(made, "2017-W41-1")


@pytest.mark.parametrize(("text", "found"), ROWS["bad"])
@pytest.mark.parametrize("is_dated", [True, False])
def test_the_form_that_was_found_is_named(text, found, is_dated):
    with pytest.raises(MalformedError) as caught:
        read(text, is_dated=is_dated)
    assert str(caught.value).startswith(f"bad Submit: {found}")
    if "outside" not in found and "exist" not in found:
        assert "ISO 8601 such as 2017-10-09 07:00:00" in str(caught.value)


def test_durations_and_their_units():
    for text, seconds in ROWS["elapsed"]:
        for unit in ("", "h"):  # they state their own units
            assert duration_seconds(text, "Elapsed", unit) == seconds, text
    for unit, seconds in ROWS["units"]:
        assert duration_seconds("90", "Elapsed", unit) == pytest.approx(seconds)
    # two parts in a column of hours may be hours and minutes
    assert duration_seconds("05:10", "Elapsed", "min") == 310.0
    bad = [(text, "", "bad Elapsed") for text in ROWS["no_duration"]]
    for text, unit, said in (*bad, ("05:10", "d", "bad Elapsed: mm:ss or hh:mm in days")):
        with pytest.raises(MalformedError) as caught:
            duration_seconds(text, "Elapsed", unit)
        assert str(caught.value) == said, text


def test_one_mistyped_date_of_digits_does_not_make_seconds_of_the_others():
    for texts in (["20171009", "20171010", "20171399"], ["20171009", "2017101"]):
        made = clock(*texts, is_dated=False)
        for text in texts:
            with pytest.raises(MalformedError, match=r"a date of 8 digits.*--time-format %Y%m%d"):
                at(made, text, "submitted")
    assert clock("20171009", "12902960", "12902961", is_dated=False).form == RELATIVE


def test_a_name_of_a_zone_that_strptime_would_forget_is_refused():
    with pytest.raises(InstanceError, match=r"^time_format: expected %z, an offset"):
        clock(time_format="%d/%m/%Y %H:%M %Z")
    literal = {"time_format": "%d/%m/%Y %H:%M UTC%%Z", "time_zone": "UTC"}
    assert read("09/10/2017 07:00 UTC%Z", **literal) == NOON


def test_small_numbers_are_seconds_since_the_trace_began_unless_it_has_dates():
    made = clock("0", "600", "20171009", is_dated=False)  # no column of dates: the others are none
    assert [at(made, text, "submitted") for text in ("0", "20171009")] == [0, 20171009]
    assert made.form == RELATIVE
    with pytest.raises(MalformedError, match=r"^bad submitted: below 0, expected seconds since"):
        at(made, "-5", "submitted")
    with pytest.raises(MalformedError, match="which is no epoch time of the years 1990 to 2100"):
        read("600")


def test_the_others_of_a_column_are_counted_by_their_form():
    made = clock("2017-10-09 07:00:00", "2017-10-09 07:10:00", "2017-10-09T07:00:00Z")
    message = r"^bad Submit: a time with a zone, but most are a time without a zone; --time-zone"
    with pytest.raises(MalformedError, match=message):
        at(made, "2017-10-09T07:00:00Z")
    made = clock("1507532400000", "1507532400001", "1507532400", is_dated=False)
    with pytest.raises(MalformedError, match="epoch seconds, but most are epoch milliseconds"):
        at(made, "1507532400")
    with pytest.raises(MalformedError, match="seconds since the trace began, but most are"):
        at(made, "0")


def test_one_zone_for_the_times_that_name_none():
    made = clock("2017-10-09 09:00:00", "2017-10-09T07:00:00Z", time_zone="Europe/Berlin")
    assert at(made, "2017-10-09 09:00:00") == NOON
    assert at(made, "2017-10-09T07:00:00Z") == NOON
    assert made.show(NOON) == "2017-10-09 09:00:00+02:00"
    assert made.start(made.show(NOON)) == NOON


def test_clocks_that_go_back_are_an_hour_more_in_a_zone():
    times = "2017-10-29 01:00:00", "2017-10-29 04:00:00"
    made = clock(*times, time_zone="Europe/Berlin")
    assert at(made, times[1], "End") - at(made, times[0], "Start") == 4 * 3600


def test_a_time_that_the_clocks_of_the_zone_left_out_is_refused():
    made = clock("2024-03-31 01:59:00", time_zone="Europe/Berlin")
    said = "bad Submit: a time of day that the clocks of Europe/Berlin left out"
    with pytest.raises(MalformedError, match=said):
        at(made, "2024-03-31 02:30:00")
    before, after = (at(made, f"2024-03-31 {time}:00") for time in ("01:59", "03:00"))
    assert after - before == pytest.approx(60.0)
    assert made.repeated == 0


def test_times_that_clocks_show_twice_are_counted():
    texts = ["2024-10-27 01:59:00", "2024-10-27 02:30:00", "2024-10-27 03:00:00"]
    made = clock(*texts, time_zone="Europe/Berlin")
    before, twice, after = (at(made, text) for text in texts)
    assert (twice - before, after - twice) == (31 * 60.0, 90 * 60.0)
    rows = ["id,submitted,duration,gpus", *(f"{k},{text},60,1" for k, text in enumerate(texts))]
    options = PlainOptions(time_zone="Europe/Berlin")
    notes = PLAIN.table(TraceSource("a.csv", tuple(rows)), options).notes
    assert notes[1:] == [
        "times of Europe/Berlin in the hour that clocks repeat in autumn, read as the first of "
        "the two: 1"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_format": "%Q"}, r"^time_format: expected a format of Python's strptime"),
        ({"time_format": "%d%"}, r"^time_format: expected a format of Python's strptime"),
        ({"time_zone": "Mars"}, r"^time_zone: expected a time zone such as Europe/Berlin"),
        ({"time_zone": "../x"}, r"^time_zone: expected a time zone such as Europe/Berlin"),
    ],
)
def test_a_format_or_a_zone_that_does_not_exist(options, message):
    with pytest.raises(InstanceError, match=message):
        clock("2017-10-09", **options)


def test_any_year():
    assert read("1970-01-02T00:00:00", any_year=True) == 86400.0
    assert read("86400", any_year=True) == 86400.0
    assert read("9999999999", any_year=True) == 9999999999.0
    assert read("700000000000", any_year=True) == 7e8  # milliseconds all the same


def test_where_the_window_begins():
    made = clock("5", is_dated=False)
    assert made.start("busiest") is None
    assert made.start("first") is None
    assert made.start("-3.5") == -3.5
    assert made.start(made.show(0.1)) == 0.1
    for text in ("noon", "2017-10-09 07:00:00"):
        with pytest.raises(
            InstanceError, match=r"^start: expected busiest, first or seconds since"
        ):
            made.start(text)
    with pytest.raises(
        InstanceError, match=r"such as 2017-10-09 07:00:00, got '2017-10-09T07:00Z'"
    ):
        clock("2017-10-09T07:00").start("2017-10-09T07:00Z")


@pytest.mark.parametrize("form", EPOCH)
def test_the_start_of_a_window_keeps_its_digits(form):
    moment = 1700000000.123 if EPOCH[form] > 1 else 1700000000.0
    text = str(round(moment * EPOCH[form]))
    made = clock(text)
    assert made.show(at(made, text)) in (text, f"{moment:.0f}")
    assert made.start(made.show(moment)) == pytest.approx(moment, abs=1e-6)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["0.5", "2", "0.25"], "expected s, ms, min, h or d.* duration is 0.5, .*below"),
        (["7200000"] * 3, r".* the column duration is 7.2e\+06, .* above thirty days"),
    ],
)
def test_durations_that_cannot_be_seconds_are_questioned(texts, message):
    with pytest.raises(InstanceError, match=f"^duration_unit: {message}"):
        notes_of_durations(numbers(texts), "duration", "", "duration_unit")
    for unit in ("s", "h"):
        assert notes_of_durations(numbers(texts), "duration", unit, "duration_unit")


def test_durations_with_units_of_their_own_and_zeros_are_not_questioned():
    notes = notes_of_durations(
        numbers(["0", "0", "00:00:00.5", "60"]), "duration", "", "duration_unit"
    )
    assert notes == ["durations read as seconds; median 60 s (--duration-unit)"]


@pytest.mark.parametrize(("unit", "second"), [("ms", "1800000"), ("min", "30"), ("s", "1800")])
def test_a_window_begins_at_a_time_in_the_unit_of_the_times(unit, second):
    options = PlainOptions(time_unit=unit, start=second, min_gpus=1, min_duration=0.0)
    lines = ("id,submitted,duration,gpus", "a,0,60,1", f"b,{second},60,1")
    trace = PLAIN.table(TraceSource("a.csv", lines), options)
    trace.frame = options.sized(trace.frame)
    trace.window(options)
    assert trace.frame["id"].tolist() == ["b"]
    assert trace.window_start == second
