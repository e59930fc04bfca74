"""Lines of the controller's log."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

from oasis.kubernetes.control.settings import JsonFormatter
from oasis.kubernetes.control.statuses import StatusWriter
from oasis.kubernetes.objects.oasis_job import SlotClock


def record(**more: object) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": "%d jobs", "args": (3,), "levelname": "WARNING", **more})


def test_a_line_of_json_has_what_was_given_and_nothing_else() -> None:
    made = json.loads(JsonFormatter().format(record(slot=7, job="ns/a", secret="x", created=0.5)))
    assert made == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "warning",
        "message": "3 jobs",
        "slot": 7,
        "job": "ns/a",
    }


def test_an_error_is_part_of_its_line() -> None:
    try:
        int("what went wrong")
    except ValueError:
        line = JsonFormatter().format(record(exc_info=sys.exc_info()))
    assert "\n" not in line
    assert "what went wrong" in json.loads(line)["error"]


def test_a_verbose_controller_says_each_line_once() -> None:
    code = """
import logging
from experiments.cli.commands.kubernetes.running import log_as
from experiments.cli.verbose import logging_to_stderr
with logging_to_stderr():
    log_as("text")
    logging.getLogger("oasis.kubernetes").debug("only once")
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stderr.count("only once") == 1


def test_what_is_told_on_a_job_is_logged_with_its_fields(caplog) -> None:  # type: ignore[no-untyped-def]
    job = StatusWriter({"metadata": {"namespace": "ns", "name": "a", "uid": "u"}}, SlotClock(60.0))
    with caplog.at_level(logging.INFO, "oasis.kubernetes"):
        job.say("Placed", "True", "Planned", "2 workers", 0.0)
        job.say("Placed", "True", "Planned", "3 workers", 1.0)
    (line,) = caplog.records
    assert (line.job, line.reason) == ("ns/a", "Planned")
    assert line.getMessage() == "ns/a: Planned: 2 workers"
